"""The report metrics equal River's, though they are fed by the chunk."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import metrics

from streamkernel.daemon.stream.quality import REPORTS, ProgressiveLoss, Quality, log_losses


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


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_before_the_first_record_there_is_no_number(task: str) -> None:
    quality = Quality(task, REPORTS[task], window=10)
    quality.add([], [], None)
    assert all(math.isnan(value) for value in {**quality.overall(), **quality.rolling()}.values())


def test_a_record_without_a_prediction_is_left_out() -> None:
    quality = Quality("classification", ["accuracy", "log_loss"], window=10)
    quality.add(["a", "a"], [None, "a"], [{}, {"a": 1.0}])
    assert quality.overall() == {"accuracy": 1.0, "log_loss": 0.0}


rows = st.tuples(
    st.sampled_from("abc"),
    st.sampled_from(["a", "b", "c", None]),
    st.fixed_dictionaries({"a": st.floats(0, 1) | st.just(math.nan), "b": st.floats(0, 1)}),
)


@given(st.lists(st.lists(rows, max_size=20), max_size=6), st.integers(1, 15))
def test_in_any_chunks_they_are_what_the_records_make_one_by_one(
    chunks: list[list[tuple[str, str | None, dict[str, float]]]], window: int
) -> None:
    quality = Quality("classification", REPORTS["classification"], window)
    for chunk in chunks:
        quality.add([row[0] for row in chunk], [row[1] for row in chunk], [row[2] for row in chunk])
    told = [row for chunk in chunks for row in chunk if row[1] is not None]
    for found, last in ((quality.overall(), told), (quality.rolling(), told[-window:])):
        if not last:
            assert all(map(math.isnan, found.values()))
            continue
        chances = [given_.get(target, 0.0) for target, _, given_ in last]
        losses = [-math.log(max(chance, 1e-15)) for chance in chances if not math.isnan(chance)]
        of_rivers = of_river("classification", [(row[0], row[1], {}) for row in last])
        assert found["accuracy"] == pytest.approx(of_rivers["accuracy"])
        assert found["macro_f1"] == pytest.approx(of_rivers["macro_f1"])
        assert found["log_loss"] == pytest.approx(np.mean(losses) if losses else math.nan, nan_ok=True)


def test_a_class_that_had_no_probability_costs_what_a_tiny_one_does() -> None:
    assert log_losses(["new"], [{"old": 1.0}])[0] == pytest.approx(-math.log(1e-15))


def test_a_classifier_without_probabilities_has_no_log_loss() -> None:
    quality = Quality("classification", ["accuracy", "log_loss"], window=10)
    quality.add(["a"], ["a"], None)
    assert quality.overall()["accuracy"] == 1.0
    assert math.isnan(quality.overall()["log_loss"])


@given(st.lists(st.lists(st.floats(-100, 100) | st.just(math.nan), max_size=20), max_size=10), st.integers(1, 15))
def test_the_progressive_loss_is_the_mean_of_the_last(chunks: list[list[float]], window: int) -> None:
    loss = ProgressiveLoss(window)
    for chunk in chunks:
        loss.add(chunk)
    seen = [value for chunk in chunks for value in chunk if not math.isnan(value)]
    assert loss.count == len(seen)
    assert loss.sum == pytest.approx(sum(seen))
    if seen:
        assert loss.mean() == pytest.approx(np.mean(seen[-window:]))
    else:
        assert math.isnan(loss.mean())
