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
from streamkernel.daemon.monitoring.watch import Watch
from streamkernel.daemon.stream.baseline import MajorityClass, MeanSoFar
from streamkernel.daemon.stream.quality import REPORTS, Quality
from tests.daemon.test_losses import processor_of, records


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


@pytest.mark.parametrize(
    ("baseline", "name"), [(MajorityClass, "accuracy"), (MajorityClass, "macro_f1"), (MeanSoFar, "mae")]
)
def test_it_is_the_same_however_the_stream_is_cut(baseline: type[Any], name: str) -> None:
    targets = [n * n % 7 + 1 for n in range(60)]
    whole, cut = baseline(), baseline()
    whole.add(targets)
    for start in range(0, 60, 7):
        cut.add(targets[start : start + 7])
    assert whole.get(name) == pytest.approx(cut.get(name), rel=1e-12)


def test_classes_past_the_limit_are_never_the_majority() -> None:
    quality = Quality("classification", ["accuracy"], window=5, max_classes=1)
    quality.add(["a", "b", "c", "d", "a"], ["a"] * 5, None)
    assert quality.baseline() == {"accuracy": 0.25}


def test_scores_have_no_baseline_and_r2_is_its_own() -> None:
    assert Quality("novelty", ["flagged"], 5).baseline() == {}
    quality = Quality("regression", ["r2"], 5)
    quality.add([1.0, 2.0], [1.0, 2.0], None)
    assert quality.baseline() == {}


def test_a_class_that_left_the_window_does_not_lower_its_macro_f1() -> None:
    quality = Quality("classification", ["macro_f1"], window=10)
    quality.add(["a", "b"] * 5, ["a", "b"] * 5, None)
    quality.add(["a"] * 10, ["a"] * 9 + ["b"], None)
    assert quality.rolling()["macro_f1"] == pytest.approx(18 / 19)
    assert quality.overall()["macro_f1"] == pytest.approx((28 / 29 + 10 / 11) / 2)


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


def test_the_rate_begins_with_the_end_of_the_first_batch() -> None:
    now = 100.0
    processor = processor_of(dummy.StatisticRegressor(stats.Mean()))
    watch = Watch(processor, None, clock=lambda: now)
    now = 130.0  # so long the first batch compiles
    watch.chunk(*processor.process(records(50)))
    now = 131.0
    assert math.isnan(watch.refresh().rate)
    assert [label for label in figure_rows({"a": watch.view}) if label == "records/s"] == []
    watch.chunk(*processor.process(records(20)))
    now = 132.0
    view = watch.refresh()
    assert view.rate == 10.0
    assert view.to_json()["records_per_second"] == 10.0
