"""Novelty detectors and density ratios in the daemon: from a configuration into lines, metrics and checkpoints."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from river import preprocessing

from streamkernel import KernelDensityRatio, KernelNoveltyDetector
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.components.caveats import caveats
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.run_state.models import published_entry
from streamkernel.daemon.runtime import run
from tests.daemon.configurations import lines_of
from tests.daemon.conftest import Home

NOVELTY = {"streamkernel.KernelNoveltyDetector": {"nu": 0.1, "batch_size": 8, "seed": 1}}
RATIO = {"streamkernel.KernelDensityRatio": {"p": "live", "q": "reference", "batch_size": 8, "seed": 1}}


def rows(n: int) -> list[dict[str, Any]]:
    rng = random.Random(1)
    samples = [rng.choice(["live", "reference", None]) for _ in range(400)]
    return [{"a": rng.gauss(sample == "live", 1), "b": rng.gauss(0, 1), "y": sample} for sample in samples][:n]


def configured(home: Home, n: int, *steps: Any, **sections: Any) -> Any:
    (home.folder / "stream.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows(n)))
    source = {"kind": "jsonl", "path": "stream.jsonl", "target": "y"}
    return prepare(home.configure(**{"source": source, "model": list(steps), **sections}))


def inputs(n: int) -> list[dict[str, Any]]:
    return [{name: row[name] for name in "ab"} for row in rows(n)]


BOTH = pytest.mark.parametrize(
    ("step", "kind"),
    [(NOVELTY, KernelNoveltyDetector), (RATIO, KernelDensityRatio)],
    ids=["novelty", "density ratio"],
)


@BOTH
def test_it_learns_what_it_can_and_goes_on_after_a_restart(home: Home, step: dict[str, Any], kind: type[Any]) -> None:
    """A novelty detector learns every record, a density ratio those whose sample is known."""
    run(configured(home, 230, step))
    account = dict(run(configured(home, 400, step)).account)
    samples = [row["y"] for row in rows(400)]
    n_unlabeled = samples.count(None) if step is RATIO else 0
    assert (account["learned"], account["unlabeled"]) == (400 - n_unlabeled, n_unlabeled)
    alone = kind(**step[f"streamkernel.{kind.__name__}"])
    scores = alone.advance(inputs(400), samples if step is RATIO else None).predictions
    lines = home.lines("out/predictions.jsonl")
    assert [line["prediction"] for line in lines] == scores
    assert [line["target"] for line in lines] == samples
    assert published_entry(home.header())["state_digest"] == alone.state_digest()


def test_a_novelty_detector_behind_a_scaler(home: Home) -> None:
    account = dict(run(configured(home, 60, "river.preprocessing.StandardScaler", NOVELTY)).account)
    assert account["learned"] == 60
    model = preprocessing.StandardScaler() | KernelNoveltyDetector(nu=0.1, batch_size=8, seed=1)
    for x, line in zip(inputs(60), home.lines("out/predictions.jsonl"), strict=True):
        assert line["prediction"] == model.score_one(x)
        model.learn_one(x)


def test_a_density_ratio_behind_a_scaler(home: Home) -> None:
    account = dict(run(configured(home, 60, "river.preprocessing.StandardScaler", RATIO)).account)
    assert account["learned"] == 60 - [row["y"] for row in rows(60)].count(None)
    assert all(math.isfinite(line["prediction"]) for line in home.lines("out/predictions.jsonl"))


@pytest.mark.parametrize("target", [None, "float"], ids=["no target", "a number"])
def test_scores_in_an_output_of_one_type(home: Home, target: str | None) -> None:
    """Parquet has one type for predictions and targets: a score is a number, and so must the target be."""
    with (home.folder / "scored.jsonl").open("w") as stream:
        stream.writelines(
            json.dumps({**x, **({"y": n / 2} if target else {})}) + "\n" for n, x in enumerate(inputs(60))
        )
    source = {"kind": "jsonl", "path": "scored.jsonl"}
    if target:
        source |= {"target": "y", "target_type": target}
    output = {"kind": "parquet", "path": "out/scores"}
    account = dict(run(configured(home, 0, NOVELTY, source=source, predictions=output)).account)
    assert account["learned"] == 60
    table = pq.read_table(home.folder / "out/scores")
    alone = KernelNoveltyDetector(nu=0.1, batch_size=8, seed=1)
    assert table.column("prediction").to_pylist() == alone.advance(inputs(60)).predictions
    assert table.column("target").to_pylist() == [n / 2 if target else None for n in range(60)]


def test_a_density_ratio_that_only_predicts_writes_an_output_of_one_type(home: Home) -> None:
    run(configured(home, 200, RATIO))
    with (home.folder / "new.jsonl").open("w") as stream:
        stream.writelines(json.dumps(x) + "\n" for x in inputs(50))
    plan = configured(
        home,
        200,
        RATIO,
        mode="predict",
        serve_from="out/state",
        checkpoint=None,
        dead_letters={"kind": "none"},
        source={"kind": "jsonl", "path": "new.jsonl"},
        predictions={"kind": "parquet", "path": "out/ratios"},
    )
    assert dict(run(plan).account)["learned"] == 0
    model = KernelDensityRatio(p="live", q="reference", batch_size=8, seed=1)
    model.advance(inputs(200), [row["y"] for row in rows(200)])
    ratios = pq.read_table(home.folder / "out/ratios").column("prediction").to_pylist()
    assert ratios == [model.predict_one(x) for x in inputs(50)]


@BOTH
def test_a_warm_start_ends_as_one_run_over_both_streams(home: Home, step: dict[str, Any], kind: type[Any]) -> None:
    with (home.folder / "history.jsonl").open("w") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows(150))
    warm = {"source": {"kind": "jsonl", "path": "history.jsonl", "target": "y"}}
    run(configured(home, 250, step, warm_start=warm))
    alone = kind(**step[f"streamkernel.{kind.__name__}"])
    both = [*inputs(150), *inputs(250)]
    samples = [row["y"] for row in [*rows(150), *rows(250)]]
    scores = alone.advance(both, samples if step is RATIO else None).predictions
    assert [line["prediction"] for line in home.lines("out/predictions.jsonl")] == scores[150:]
    assert published_entry(home.header())["state_digest"] == alone.state_digest()
    assert home.header()["warm_start"]["done"]


def test_their_metrics() -> None:
    model = KernelNoveltyDetector(nu=0.1, batch_size=8, seed=1)
    value = Exporter(model, [], 10).registry.get_sample_value
    model.advance(inputs(400))
    assert value("streamkernel_novelty_threshold") == model.threshold
    assert value("streamkernel_novelties_total") == model.n_flagged > 0
    ratio = KernelDensityRatio(p="live", q="reference", batch_size=8, seed=1)
    value = Exporter(ratio, [], 10).registry.get_sample_value
    assert math.isnan(value("streamkernel_divergence_nats") or 0)
    ratio.advance(inputs(400), [row["y"] for row in rows(400)])
    assert value("streamkernel_divergence_nats") == ratio.divergence
    assert value("streamkernel_sample_share", {"sample": "p"}) == pytest.approx(0.5, abs=0.1)


CSV = "source: {kind: csv, path: a.csv, target: y}\n"
NOVEL = CSV + "model: [streamkernel.KernelNoveltyDetector]\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "source: {kind: csv, path: a.csv}\nmodel: [streamkernel.KernelNoveltyDetector]\n"
            "labels: {key: id, source: {kind: csv, path: b.csv, target: y}}",
            "labels: not for a novelty detector, which learns each record without a label: leave it out",
        ),
        (NOVEL + "metrics: {report: [mae]}", "metrics.report[0]: mae does not fit a model for novelty, use flagged"),
        (
            CSV + "model: [streamkernel.KernelDensityRatio]\nmetrics: {report: [mae]}",
            "metrics.report[0]: mae does not fit a model for density_ratio, for which there are none",
        ),
        (
            CSV + "model: [{streamkernel.KernelDensityRatio: {p: true, q: false}}]",
            "source.target_type: must be bool for the samples True and False, is str",
        ),
        (
            CSV + "model: [{streamkernel.KernelDensityRatio: {p: yes, q: 'yes'}}]",
            "model: the samples True (bool) and 'yes' (str) must both have the type of source.target_type, "
            "str (in YAML, yes and no without quotes are booleans)",
        ),
        (
            NOVEL + "predictions: {kind: parquet, path: p}",
            "predictions: a score is a number, source.target is a str, and this output needs one type for both: "
            "use jsonl, csv or json",
        ),
        (
            NOVEL + "predictions: {kind: kafka, topic: p, "
            "bootstrap_servers: a:1, value_format: avro, schema_registry: {url: 'https://registry:8081'}}",
            "predictions: a score is a number, source.target is a str, and this output needs one type for both: "
            "use jsonl, csv or json",
        ),
        (
            CSV + "model: [{streamkernel.KernelNoveltyDetector: {nu: 0}}]",
            "model[0].nu: must be in (0, 1], the share of records to flag, got 0",
        ),
    ],
)
def test_what_does_not_fit_is_told(tmp_path: Path, text: str, line: str) -> None:
    assert line in lines_of(tmp_path, text)


def test_check_tells_of_a_filter_that_keeps_a_detector_from_learning(home: Home) -> None:
    def told(**given: Any) -> list[str]:
        filtered = {"river.anomaly.QuantileFilter": {"anomaly_detector": NOVELTY, "q": 0.9, **given}}
        steps = [filtered, {"river.linear_model.LogisticRegression": {}}]
        plan = configured(home, 10, {"river.compose.Pipeline": {"args": steps}})
        return [line for line in caveats(plan, {}) if "protect_anomaly_detector: false" in line]

    assert len(told()) == 1
    assert told(protect_anomaly_detector=False) == []


def test_one_that_needs_no_label_is_not_said_to_learn_nothing(home: Home) -> None:
    source = {"kind": "jsonl", "path": "stream.jsonl"}
    assert not [line for line in caveats(configured(home, 10, NOVELTY, source=source), {}) if "no record" in line]
    assert [line for line in caveats(configured(home, 10, RATIO, source=source), {}) if "no record" in line]
