"""Curves and marks of an evaluation: rolling metrics, drifts, metrics learnt, and few points of a long stream."""

from __future__ import annotations

import csv
import json
import math
import random
from pathlib import Path

import pytest

from streamkernel import AdaptiveKernelClassifier
from streamkernel.daemon.cli import main
from streamkernel.daemon.evaluate import evaluate
from streamkernel.daemon.monitoring import curve_recorder
from streamkernel.daemon.monitoring.evaluation import Evaluation
from streamkernel.daemon.monitoring.figures import figure_rows
from streamkernel.daemon.monitoring.line_styles import line_style
from streamkernel.daemon.monitoring.panels import panels_of
from streamkernel.daemon.monitoring.view import View
from streamkernel.daemon.stream.stop import StopSignals
from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.conftest import Home

ADAPTIVE = [{"streamkernel.AdaptiveKernelClassifier": {"n_features": 16, "seed": 1}}]
PHISHING = {"kind": "river", "dataset": "Phishing"}


def evaluated(config: Path) -> Evaluation:
    return evaluate(prepare(config), StopSignals())


def write_drifting(path: Path, records: int = 900, at: int = 500) -> None:
    """Write a CSV stream of two rings whose labels change places."""
    draw = random.Random(1)
    lines = ["a,b,y"]
    for number in range(records):
        a, b = draw.gauss(0, 1), draw.gauss(0, 1)
        lines.append(f"{a:.5f},{b:.5f},{'yes' if (a * a + b * b < 1.2) != (number >= at) else 'no'}")
    path.write_text("\n".join(lines) + "\n")


def test_marks_stand_where_a_loop_by_hand_finds_them(home: Home) -> None:
    write_drifting(home.folder / "stream.csv")
    home.configure(source={"kind": "csv", "path": str(home.folder / "stream.csv"), "target": "y"}, model=ADAPTIVE)
    found = evaluated(home.config)
    model = AdaptiveKernelClassifier(n_features=16, seed=1)
    drifts, metrics = [], []
    with (home.folder / "stream.csv").open() as file:
        for number, row in enumerate(csv.DictReader(file), 1):
            before = model.n_drifts_detected, model.n_metric_relearnings
            model.learn_one({"a": float(row["a"]), "b": float(row["b"])}, row["y"])
            drifts += [number] * (model.n_drifts_detected - before[0])
            # The curves have their points, and the marks their places, after every 50th record.
            metrics += [math.ceil(number / 50) * 50] * (model.n_metric_relearnings - before[1])
    assert len(drifts) == 1
    assert 500 < drifts[0] <= 800
    assert found.drifts == drifts
    assert found.relearnings == metrics
    curve = found.to_json()["curve"]
    assert (curve["drifts"], curve["metric_relearnings"]) == (drifts, metrics)


def test_rolling_metrics_have_a_point_with_every_loss(home: Home) -> None:
    found = evaluated(home.configure(source=PHISHING, model=ADAPTIVE, metrics={"port": 1, "window": 100}))
    assert list(found.rolling) == ["accuracy", "macro_f1", "log_loss"]
    for curve in found.rolling.values():
        assert len(curve) == len(found.records) == len(found.loss)
    assert {name: curve[-1] for name, curve in found.rolling.items()} == found.view.rolling
    assert found.to_json()["curve"]["rolling"] == found.rolling


def test_a_long_stream_has_few_points(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are left are the same points, at the same distance, and the end."""
    model = [{"streamkernel.KernelClassifier": {"seed": 1}}]
    home.configure(source=PHISHING, model=model)
    whole = evaluated(home.config)
    monkeypatch.setattr(curve_recorder, "MOST_POINTS", 10)
    thin = evaluated(home.config)
    assert thin.records == [*range(200, 1250, 200), 1250]
    places = [whole.records.index(record) for record in thin.records]
    assert thin.loss == [whole.loss[place] for place in places]
    assert thin.features == [whole.features[place] for place in places]
    assert thin.rolling == {name: [curve[place] for place in places] for name, curve in whole.rolling.items()}
    assert thin.view.loss == whole.view.loss


def test_challengers_have_their_own_curves_and_marks(here: Home) -> None:
    write_drifting(here.folder / "stream.csv")
    models = {"steady": [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 256}}], "adaptive": ADAPTIVE}
    config = here.config
    written = json.dumps({"source": {"kind": "csv", "path": "stream.csv", "target": "y"}, "models": models})
    config.write_text(written)
    assert main(["evaluate", "config.yaml", "--json", "figures.json"]) == 0
    figures = json.loads((here.folder / "figures.json").read_text())
    assert list(figures) == ["config: steady", "config: adaptive"]
    steady, adaptive = (one["curve"] for one in figures.values())
    assert len(adaptive["records"]) == len(adaptive["progressive_loss"])
    assert adaptive["records"][-1] == steady["records"][-1] == 900
    assert steady["drifts"] == steady["metric_relearnings"] == []
    assert len(adaptive["drifts"]) == 1
    assert "features" not in adaptive
    assert len(steady["features"]) == len(adaptive["records"])
    assert adaptive["rolling"]["accuracy"] != steady["rolling"]["accuracy"]


def test_a_model_that_was_disabled_has_no_features_from_there_on() -> None:
    found = Evaluation(View())
    found.add(50, 1.0, {"features": 32}, {})
    found.add(100, 1.0, {}, {})
    assert found.features == [32, None]
    (loss, features) = panels_of({"a": found}, all_metrics=True)
    assert [panel.title for panel in (loss, features)] == ["progressive loss", "random features"]
    assert math.isnan(features.curves[0].last)


def test_the_best_of_a_metric_is_known_where_runs_differ() -> None:
    views = {
        name: View(overall={"accuracy": accuracy, "log_loss": loss, "flagged": accuracy})
        for name, accuracy, loss in (("a", 0.9, 0.5), ("b", 0.9, 0.2), ("c", math.nan, 0.3))
    }
    rows = figure_rows(views)
    best = {label: [figure is not None and figure.best for figure in row] for label, row in rows.items()}
    assert best["log loss"] == [False, True, False]
    for label in ("accuracy", "flagged", "records", "progressive loss"):
        assert best[label] == [False] * 3  # the same, of no known direction, or chance


def test_the_first_49_runs_look_different() -> None:
    assert len({line_style(index) for index in range(49)}) == 49
