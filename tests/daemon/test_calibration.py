"""The report metrics equal River's, and the figures of probabilities and deviations equal their twins."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import metrics

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.monitoring.view import View
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream import loop_time
from streamkernel.daemon.stream.calibration import (
    SAMPLED,
    CalibrationError,
    IntervalCoverage,
    make_calibration,
)
from streamkernel.daemon.stream.quality import REPORTS, Quality
from streamkernel.daemon.stream.record_batch import Labeled
from tests.daemon.conftest import Home, write_stream
from tests.naive.calibration import expected_calibration_error, interval_coverage

probability = st.floats(0, 1) | st.sampled_from([0.1, 0.3, 0.7, 1.0, math.nan])
judged = st.tuples(
    st.sampled_from("abc"),
    st.sampled_from(["a", "b", "c", None]),
    st.dictionaries(st.sampled_from("ab"), probability),
)
number = st.floats(-100, 100)
measured = st.tuples(number, number | st.none(), st.floats(0.1, 30) | st.just(math.nan))


@given(st.lists(st.lists(judged, max_size=SAMPLED), max_size=6), st.integers(1, 60))
def test_the_error_of_probabilities_equals_its_twin(chunks: list[list[tuple[Any, ...]]], window: int) -> None:
    error = CalibrationError(window)
    for chunk in chunks:
        error.add(
            Labeled(
                targets=[y for y, *_ in chunk],
                predictions=[p for _, p, _ in chunk],
                probabilities=[g for *_, g in chunk],
            )
        )
    told = [
        one
        for chunk in chunks
        for one in chunk
        if one[1] is not None and one[2] and not math.isnan(one[2].get(one[1], 0.0))
    ]
    columns: list[Any] = list(zip(*told[-window:], strict=True)) or [[], [], []]
    assert error.value() == pytest.approx(expected_calibration_error(*columns), abs=1e-12, nan_ok=True)


@given(st.lists(st.lists(measured, max_size=SAMPLED), max_size=6), st.integers(1, 60))
def test_the_coverage_of_intervals_equals_its_twin(chunks: list[list[tuple[Any, ...]]], window: int) -> None:
    coverage = IntervalCoverage(window)
    for chunk in chunks:
        deviations = np.array([d for *_, d in chunk])
        coverage.add(
            Labeled(targets=[y for y, *_ in chunk], predictions=[p for _, p, _ in chunk], deviations=deviations)
        )
    told = [one for chunk in chunks for one in chunk if one[1] is not None and not math.isnan(one[2])]
    columns: list[Any] = list(zip(*told[-window:], strict=True)) or [[], [], []]
    assert coverage.value() == pytest.approx(interval_coverage(*columns), nan_ok=True)


def test_what_says_nothing_of_how_sure_it_is_has_no_figure() -> None:
    error, coverage = CalibrationError(10), IntervalCoverage(10)
    for figure in (error, coverage):
        figure.add(Labeled())
        figure.add(Labeled(targets=[1.0], predictions=[None], probabilities=[{}], deviations=np.ones(1)))
        figure.add(Labeled(targets=[1.0], predictions=[1.0]))
        assert math.isnan(figure.value())
    error.add(Labeled(targets=["a"], predictions=["a"], probabilities=[{"a": math.nan}]))
    coverage.add(Labeled(targets=[1.0], predictions=[1.0], deviations=np.array([math.nan])))
    assert math.isnan(error.value())
    assert math.isnan(coverage.value())
    assert make_calibration("novelty", 10) is make_calibration("density_ratio", 10) is None


def lines_of(home: Home) -> list[dict[str, Any]]:
    """The lines of predictions whose record brought a target and got a prediction."""
    lines = home.lines("out/predictions.jsonl")
    return [line for line in lines if line["target"] is not None and line["prediction"] is not None]


def served(monkeypatch: pytest.MonkeyPatch) -> list[Exporter]:
    """The exporters of runs to come, of which all is kept that they export."""
    seen: list[Exporter] = []
    refresh = Exporter.refresh
    monkeypatch.setattr(Exporter, "refresh", lambda self, *rest: (seen.append(self), refresh(self, *rest))[1])
    return seen


def run_exactly(home: Home, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> tuple[Exporter, View]:
    """Run with chunks so short that each record is looked at."""
    monkeypatch.setattr(loop_time, "MOST_RECORDS", SAMPLED)
    exporters = served(monkeypatch)
    home.configure(**settings)
    view = run(prepare(home.config))
    return exporters[-1], view


@pytest.mark.usefixtures("processes")
def test_a_run_serves_the_error_of_its_lines(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    write_stream(home.folder / "stream.csv", 400)
    exporter, view = run_exactly(home, monkeypatch, metrics={"port": 0, "window": 300})
    lines = lines_of(home)[-300:]
    expected = expected_calibration_error(
        *([line[key] for line in lines] for key in ("target", "prediction", "probabilities"))
    )
    assert 0.0 < expected < 0.5
    assert view.calibration_error == pytest.approx(expected)
    assert math.isnan(view.interval_coverage)
    assert exporter.registry.get_sample_value("streamkernel_calibration_error") == view.calibration_error


@pytest.mark.usefixtures("processes")
def test_a_run_serves_the_coverage_of_its_lines(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(3)
    rows = [(draw.gauss(0, 1), draw.gauss(0, 1)) for _ in range(500)]
    numbers = [f"{a!r},{b!r},{math.sin(2 * a) + b + draw.gauss(0, 0.2)!r}" for a, b in rows]
    (home.folder / "stream.csv").write_text("\n".join(["a,b,y", *numbers]) + "\n")
    exporter, view = run_exactly(
        home,
        monkeypatch,
        source={"kind": "csv", "path": "stream.csv", "target": "y", "target_type": "float"},
        model=[{"streamkernel.AdaptiveKernelRegressor": {"n_features": 16, "seed": 1}}],
        metrics={"port": 0, "window": 300},
    )
    lines = [line for line in lines_of(home) if line["std"] is not None][-300:]
    expected = interval_coverage(*([line[key] for line in lines] for key in ("target", "prediction", "std")))
    assert 0.7 < expected < 1.0
    assert view.interval_coverage == pytest.approx(expected)
    assert (
        exporter.registry.get_sample_value("streamkernel_interval_coverage", {"level": "0.9"}) == view.interval_coverage
    )


def stream(task: str, records: int) -> tuple[list[Any], list[Any], list[dict[str, float]] | None]:
    draw = random.Random(3)
    if task == "regression":
        targets = [draw.gauss(5, 3) for _ in range(records)]
        return targets, [target + draw.gauss(0, 1) for target in targets], None
    targets = [draw.choice("abc") for _ in range(records)]
    given_ = []
    for _ in targets:
        weights = [draw.random() for _ in "abc"]
        given_.append({label: weight / sum(weights) for label, weight in zip("abc", weights, strict=True)})
    return targets, [max(p, key=lambda label: p[label]) for p in given_], given_


def of_river(task: str, rows: list[tuple[Any, Any, Any]]) -> dict[str, float]:
    made: dict[str, Any] = (
        {"mae": metrics.MAE(), "rmse": metrics.RMSE(), "r2": metrics.R2()}
        if task == "regression"
        else {"accuracy": metrics.Accuracy(), "macro_f1": metrics.MacroF1(), "log_loss": metrics.CrossEntropy()}
    )
    for target, prediction, probabilities in rows:
        for name, metric in made.items():
            metric.update(target, probabilities if name == "log_loss" else prediction)
    return {name: metric.get() for name, metric in made.items()}


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_they_equal_rivers_over_all_and_over_the_window(task: str) -> None:
    targets, predictions, probabilities = stream(task, 1000)
    quality = Quality(task, REPORTS[task], window=300)
    for start, end in ((0, 1), (1, 1), (1, 250), (250, 900), (900, 1000)):
        part = None if probabilities is None else probabilities[start:end]
        quality.add(targets[start:end], predictions[start:end], part)
    rows = list(zip(targets, predictions, probabilities or predictions, strict=True))
    assert quality.overall() == pytest.approx(of_river(task, rows), rel=1e-9)
    assert quality.rolling() == pytest.approx(of_river(task, rows[-300:]), rel=1e-9)


rows = st.tuples(
    st.sampled_from("abc"),
    st.sampled_from(["a", "b", "c", None]),
    st.fixed_dictionaries({"a": st.floats(0, 1) | st.just(math.nan), "b": st.floats(0, 1)}),
)
