"""Novelty detectors and density ratios in the daemon: from a configuration into lines, metrics and checkpoints."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from river import preprocessing

from streamkernel import KernelDensityRatio, KernelNoveltyDetector
from streamkernel.daemon.assembly.plan import prepare
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
