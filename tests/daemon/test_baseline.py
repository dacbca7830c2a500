"""The baseline of a report, and the table at the end of a run that shows it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import dummy, metrics, stats

from streamkernel.daemon.monitoring.tables import figure_rows
from streamkernel.daemon.monitoring.view import View
from streamkernel.daemon.stream.quality import REPORTS, Quality


@given(st.lists(st.lists(st.sampled_from("abcd"), max_size=9), max_size=6))
def test_the_majority_class_is_rivers_prior_classifier(chunks: list[list[str]]) -> None:
    quality = Quality("classification", REPORTS["classification"], window=5)
    for chunk in chunks:
        quality.add(chunk, chunk, [{label: 1.0} for label in chunk])
    model, accuracy, loss, f1 = dummy.PriorClassifier(), metrics.Accuracy(), stats.Mean(), metrics.MacroF1()
    labels = [label for chunk in chunks for label in chunk]
    for place, label in enumerate(labels):
        if place:
            predicted = model.predict_one({})
            accuracy.update(label, predicted)
            f1.update(label, predicted)
            loss.update(-math.log(max(model.predict_proba_one({}).get(label, 0.0), 1e-15)))
        model.learn_one({}, label)
    found = quality.baseline()
    assert bool(found) == (len(labels) > 1)
    if found:
        assert found["accuracy"] == pytest.approx(accuracy.get())
        assert found["log_loss"] == pytest.approx(loss.get())
        # River counts the first class, too, where it was predicted and did not come again.
        came = set(labels[1:])
        assert found["macro_f1"] == pytest.approx(f1.get() * len({*came, labels[0]}) / len(came))


@given(st.lists(st.lists(st.floats(-1e6, 1e6), max_size=9), max_size=6))
def test_the_mean_so_far_is_rivers_statistic_regressor(chunks: list[list[float]]) -> None:
    quality = Quality("regression", REPORTS["regression"], window=5)
    for chunk in chunks:
        quality.add(chunk, chunk, None)
    model: Any = dummy.StatisticRegressor(stats.Mean())
    mae, rmse = metrics.MAE(), metrics.RMSE()
    targets = [target for chunk in chunks for target in chunk]
    for place, target in enumerate(targets):
        if place:
            mae.update(target, model.predict_one({}))
            rmse.update(target, model.predict_one({}))
        model.learn_one({}, target)
    wanted = {"mae": mae.get(), "rmse": rmse.get()} if len(targets) > 1 else {}
    assert quality.baseline() == pytest.approx(wanted, rel=1e-6, abs=1e-6)


def test_the_table_names_each_loss_and_the_baseline_and_has_no_nan() -> None:
    overall = {"accuracy": 0.9, "log_loss": 0.2, "macro_f1": math.nan}
    view = View(
        overall=overall, baseline={"accuracy": 0.6, "log_loss": 0.7, "macro_f1": 0.4}, loss=0.3, window=1000, taken=800
    )
    shown = {label: figure.text for label, (figure,) in figure_rows({"a": view}).items() if figure}
    assert shown == {
        "records": "800",
        "accuracy": "0.9000",
        "accuracy of the majority class": "0.6000",
        "log loss, all records": "0.2000",
        "log loss of the class shares": "0.7000",
        "progressive loss, last 800": "0.3000",
    }
    rows = figure_rows({"a": View(overall={"mae": 1.0}, baseline={"mae": 2.0}), "b": View()})
    assert rows["mae of the mean so far"][0] is not None
    assert rows["mae of the mean so far"][1] is None
