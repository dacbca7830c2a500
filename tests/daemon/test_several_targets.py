"""A daemon with several targets: what it learns, writes, shows and measures, and what cannot be with them."""

from __future__ import annotations

import csv
import json
import math
import random
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

from streamkernel import KernelMultiTargetRegressor
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.check import check
from streamkernel.daemon.cli import main
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.monitoring.tables import summary_table
from streamkernel.daemon.run_state.models import published_entry
from streamkernel.daemon.runtime import run
from tests.daemon.configurations import lines_of
from tests.daemon.conftest import Home
from tests.daemon.endpoint import values_of

NUMBERS = {"kind": "csv", "path": "d.csv", "target": ["sum", "wave"], "target_type": "float"}
NUMBERS["inputs"] = {"exclude": ["right"]}
LABELS = {"kind": "jsonl", "path": "d.jsonl", "target": ["right", "far"], "target_type": "bool"}
REGRESSOR = [{"streamkernel.KernelMultiTargetRegressor": {"seed": 1, "max_features": 256}}]
CLASSIFIER = [{"streamkernel.KernelMultiLabelClassifier": {"seed": 1, "max_features": 256}}]


def _records(n: int) -> list[dict[str, Any]]:
    rng = random.Random(3)
    records: list[dict[str, Any]] = []
    for i in range(n):
        x, z = rng.gauss(0, 1), rng.gauss(0, 1)
        records.append({"x": x, "z": z, "sum": x + z if i % 4 else None, "wave": 9 * math.sin(x), "right": x > 0})
    return records


@pytest.fixture
def targets(home: Home) -> Home:
    """A home with a model of two numbers, and streams of numbers and labels; one number is a word."""
    records = _records(420)
    out = StringIO()
    writer = csv.DictWriter(out, records[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows([{**one, "wave": "oops"} if i == 7 else one for i, one in enumerate(records)])
    (home.folder / "d.csv").write_text(out.getvalue())
    labels = [{"x": x["x"], "z": x["z"], "right": x["right"], "far": x["z"] > 1 or None} for x in records]
    (home.folder / "d.jsonl").write_text("\n".join(map(json.dumps, labels)))
    home.configure(source=NUMBERS, model=REGRESSOR, predictions={"kind": "csv", "path": "out/p.csv"})
    return home


def _twin() -> tuple[KernelMultiTargetRegressor, list[dict[str, float]]]:
    """The model of Python that learned the same records, and what it predicted of each before."""
    model = KernelMultiTargetRegressor(seed=1, max_features=256)
    records = [one for i, one in enumerate(_records(420)) if i != 7]
    xs = [{"x": one["x"], "z": one["z"]} for one in records]
    return model, model.advance(xs, [{"sum": one["sum"], "wave": one["wave"]} for one in records]).predictions


def test_a_run_writes_a_column_for_each_target_as_the_model_predicts_in_python(targets: Home) -> None:
    view = run(prepare(targets.config))
    _, expected = _twin()
    rows = list(csv.DictReader(StringIO((targets.folder / "out/p.csv").read_text())))
    assert list(rows[0]) == ["position", "prediction_sum", "prediction_wave", "target_sum", "target_wave"]
    names = ("sum", "wave")
    written = [{name: float(row[f"prediction_{name}"]) for name in names if row[f"prediction_{name}"]} for row in rows]
    assert written == expected
    assert rows[4]["target_sum"] == ""
    assert (targets.lines("out/dead.jsonl")[0]["reason"], view.account["learned"]) == ("target", 419)
    of_wave = [(float(row["target_wave"]), one["wave"]) for row, one in zip(rows, expected, strict=True) if one]
    assert view.targets["wave"]["mae"] == pytest.approx(sum(abs(y - p) for y, p in of_wave) / len(of_wave))
    assert view.overall["r2"] == pytest.approx((view.targets["sum"]["r2"] + view.targets["wave"]["r2"]) / 2)
    shown = summary_table({"": view}).columns[0]._cells
    assert "mae of wave" in shown
    assert view.to_json()["targets"]["sum"]["r2"] == view.targets["sum"]["r2"]


def test_a_run_that_is_resumed_ends_with_the_same_lines_and_state(targets: Home) -> None:
    run(prepare(targets.config), max_records=250)
    run(prepare(targets.config))
    model, expected = _twin()
    assert len((targets.folder / "out/p.csv").read_text().splitlines()) == len(expected) + 1
    assert published_entry(targets.header())["state_digest"] == model.state_digest()


def test_labels_come_from_json_and_have_probabilities(targets: Home) -> None:
    targets.configure(source=LABELS, model=CLASSIFIER)
    view = run(prepare(targets.config))
    line = targets.lines("out/predictions.jsonl")[-1]
    assert line["prediction"].keys() == line["probabilities"].keys() == {"right", "far"}
    assert line["probabilities"]["right"].keys() == {"true", "false"}
    assert view.targets["right"]["accuracy"] > 0.8
    assert view.account["learned"] == 420


def test_each_target_has_metrics_of_its_own(targets: Home) -> None:
    view = run(prepare(targets.config))
    exporter = Exporter(KernelMultiTargetRegressor(), ["mae", "rmse", "r2"], 1000)
    exporter.refresh(view)
    values = values_of(generate_latest(exporter.registry).decode())
    of = {name: values[f"rolling_target_metric{{metric=rmse,target={name},window=1000}}"] for name in ("sum", "wave")}
    assert of == {name: view.rolling_targets[name]["rmse"] for name in of}
    assert values["rolling_metric{metric=rmse,window=1000}"] == pytest.approx(sum(of.values()) / 2)


def test_check_shows_each_target_and_predict_reads_them_as_the_run_did(targets: Home, capsys: Any) -> None:
    found = check(prepare(targets.config))
    assert "target, missing" in str(found.columns)
    assert "excluded" in str(found.columns)
    assert found.bad == []
    run(prepare(targets.config))
    assert main(["predict", "out/state", "d.csv"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert lines[-1]["prediction"].keys() == {"sum", "wave"}
    assert lines[-1]["target"]["wave"] == _records(420)[-1]["wave"]


TWO = "source: {kind: csv, path: a.csv, target: [a, b], target_type: float}\n"
MODEL = "model: [streamkernel.KernelMultiTargetRegressor]\n"
ONE = "source: {kind: csv, path: a.csv, target: a, target_type: float}\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (ONE + MODEL, "source.target: must be a list of columns for a multi-target regressor"),
        (TWO + "model: [streamkernel.KernelRegressor]\n", "source.target: must be one column, a model for regression"),
        (TWO.replace("float", "str") + MODEL, "source.target_type: must be float for a regressor, is str"),
        (TWO + "model: [streamkernel.KernelMultiLabelClassifier]", "source.target_type: must be bool for labels that"),
        (TWO.replace("[a, b]", "[a, a]") + MODEL, "source.target: must name each column once"),
        (TWO.replace("[a, b]", "[]") + MODEL, "source.target: must name a column, got an empty list"),
        (TWO.replace("[a, b]", "[a, 1]") + MODEL, "source.target: must be text, got ['a', 1]"),
        (
            TWO.replace("float}", "float, inputs: {exclude: [b]}}") + MODEL,
            "source.inputs.exclude: must not name the target 'b'",
        ),
        (
            TWO + MODEL + "labels: {key: id, source: {kind: csv, path: b.csv, target: y}}\n",
            "labels: not with several targets in source.target",
        ),
        (TWO + MODEL + "serve: {}\n", "serve: not with several targets in source.target"),
        (
            TWO + MODEL + "warm_start: {source: {kind: csv, path: b.csv, target: a, target_type: float}}\n",
            "warm_start.source.target: must",
        ),
        (TWO + MODEL + "predictions: {kind: parquet, path: p}\n", "predictions: this output has one column for the"),
        (TWO + MODEL + "predictions: {kind: csv, path: p, classes: [a]}\n", "predictions.classes: not with several"),
        (
            TWO + MODEL + "predictions: {kind: csv, path: p, include: [target_b]}\n",
            "predictions.include[0]: each line has target_b already",
        ),
        (TWO + MODEL + "metrics: {report: [accuracy]}\n", "metrics.report[0]: accuracy does not fit a model for"),
        ("source: {kind: river, dataset: SolarFlare}\n" + MODEL, "source.kind: a data set has one target here"),
        (
            TWO + "model: [river.preprocessing.StandardScaler, streamkernel.KernelMultiTargetRegressor]\n",
            "model: a multi-target regressor must be the whole model: remove the steps before it",
        ),
        (
            TWO + "model: [{river.multioutput.RegressorChain: {model: {river.linear_model.LinearRegression: {}}}}]\n",
            "RegressorChain predicts several targets: use streamkernel.KernelMultiTargetRegressor",
        ),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path: Path, text: str, line: str) -> None:
    assert [one for one in lines_of(tmp_path, text) if line in one]
