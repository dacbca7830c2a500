"""Metrics of a model's own life: drifts, metrics learnt anew, the margin of the check; and what a restart keeps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from streamkernel import (
    AdaptiveKernelClassifier,
    AdaptiveKernelRegressor,
    KernelClassifier,
    KernelDensityRatio,
    KernelNoveltyDetector,
    growth,
)
from streamkernel.daemon.monitoring.exporter.exporter import Exporter
from streamkernel.daemon.monitoring.exporter.metric_facts import after_restart
from streamkernel.daemon.monitoring.exporter.model_metrics import metrics_of
from streamkernel.daemon.monitoring.growth import changes_of, check_margin_of
from streamkernel.daemon.monitoring.view import View
from streamkernel.daemon.runtime import run
from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.conftest import Home
from tests.daemon.test_calibration import served


def drifting(n: int = 1_500) -> tuple[list[dict[str, float]], list[float]]:
    """A stream whose targets change their sign after 700 records."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 2))
    y = np.sin(2 * X[:, 0]) * np.where(np.arange(n) < 700, 1, -1)
    return [{"a": float(a), "b": float(b)} for a, b in X], y.tolist()


class TestChanges:
    def test_drifts_and_metrics_are_counted_from_the_process_on(self) -> None:
        xs, ys = drifting()
        model = AdaptiveKernelRegressor(n_features=8, n_trees=0, seed=1)
        model.advance(xs[:1_000], ys[:1_000])
        before = model.n_drifts_detected, model.n_metric_relearnings
        assert min(before) > 0
        exporter = Exporter(model, ["mae"], 10)
        value = exporter.registry.get_sample_value
        assert value("streamkernel_drift_events_total") == value("streamkernel_metric_relearnings_total") == 0
        model.advance(xs[1_000:], ys[1_000:])
        model.advance(xs[700:], (-np.array(ys[700:])).tolist())
        exporter.refresh(View(account={"consumed": 1}, loss=0.5, loss_sum=0.5), 1.0)
        assert value("streamkernel_drift_events_total") == model.n_drifts_detected - before[0] > 0
        assert value("streamkernel_metric_relearnings_total") == model.n_metric_relearnings - before[1] > 0

    def test_metrics_are_counted_where_they_take_effect(self) -> None:
        xs, ys = drifting(600)
        model = AdaptiveKernelRegressor(n_features=8, n_trees=0, metric_schedule=(50, 200), seed=1)
        importances = []
        for x, y in zip(xs, ys, strict=True):
            model.learn_one(x, y)
            if (now := model.feature_importances_) != (importances[-1:] or [{}])[0]:
                importances.append(now)
        assert model.n_drifts_detected == 0
        assert model.n_metric_relearnings == len(importances) == 2
        assert model.clone(include_attributes=True).n_metric_relearnings == 0  # it is not in the state
        never = AdaptiveKernelRegressor(n_features=8, n_trees=0, metric_schedule=None, seed=1)
        never.advance(xs, ys)
        assert never.n_metric_relearnings == 0

    def test_both_cores_of_a_model_with_lags_count(self) -> None:
        xs, ys = drifting(400)
        model = AdaptiveKernelRegressor(n_features=8, n_trees=0, metric_schedule=(100,), lags=2, seed=1)
        model.advance(xs, ys)
        assert model.n_metric_relearnings == 2

    def test_another_model_of_a_reload_adds_nothing_of_its_past(self) -> None:
        xs, ys = drifting()
        fresh, learnt = (AdaptiveKernelRegressor(n_features=8, n_trees=0, seed=1) for _ in range(2))
        learnt.advance(xs, ys)
        registry = CollectorRegistry()
        metrics = metrics_of(fresh, "streamkernel", registry)
        assert metrics is not None
        metrics.follow(learnt)
        metrics.refresh()
        assert registry.get_sample_value("streamkernel_drift_events_total") == 0

    def test_other_models_have_none(self) -> None:
        assert changes_of(KernelClassifier()) == {}
        assert changes_of(AdaptiveKernelClassifier()) == {"drifts": 0, "metric_relearnings": 0}


class TestCheckMargin:
    def margin(self, **arguments: Any) -> tuple[float, Any]:
        model = KernelClassifier(batch_size=8, block_size=8, seed=1, **arguments)
        exporter = Exporter(model, ["accuracy"], 10)
        value = exporter.registry.get_sample_value
        assert math.isnan(value("streamkernel_check_margin") or 0)
        xs, ys = drifting(400)
        model.advance(xs, [y > 0 for y in ys])
        exporter.refresh(View(account={"consumed": 1}, loss=0.5, loss_sum=0.5), 1.0)
        return value("streamkernel_check_margin") or 0, model

    def test_it_is_that_of_the_last_reuse(self) -> None:
        margin, model = self.margin(growth=growth.CDSG(), precondition=False)
        assert model.n_reused > 0
        assert margin == model.last_check_margin == check_margin_of(model)

    @pytest.mark.parametrize("arguments", [{"growth": growth.DSG()}, {"growth": growth.CDSG(), "precondition": True}])
    def test_where_nothing_is_checked_there_is_none(self, arguments: dict[str, Any]) -> None:
        assert math.isnan(self.margin(**arguments)[0])

    def test_other_models_have_none(self) -> None:
        assert math.isnan(check_margin_of(AdaptiveKernelClassifier()))


@pytest.mark.usefixtures("processes")
def test_a_run_shows_them(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    xs, ys = drifting()
    lines = ["a,b,y", *(f"{x['a']!r},{x['b']!r},{y!r}" for x, y in zip(xs, ys, strict=True))]
    (home.folder / "stream.csv").write_text("\n".join(lines) + "\n")
    exporters = served(monkeypatch)
    home.configure(
        source={"kind": "csv", "path": "stream.csv", "target": "y", "target_type": "float"},
        model=[{"streamkernel.AdaptiveKernelRegressor": {"n_features": 8, "n_trees": 0, "seed": 1}}],
        metrics={"port": 0},
    )
    view = run(prepare(home.config))
    assert view.changes["drifts"] > 0
    assert view.changes["metric_relearnings"] > 1
    assert view.to_json()["drifts"] == view.changes["drifts"]
    value = exporters[-1].registry.get_sample_value
    assert value("streamkernel_drift_events_total") == view.changes["drifts"]
    assert value("streamkernel_metric_relearnings_total") == view.changes["metric_relearnings"]


@pytest.mark.parametrize(
    "model",
    [
        KernelClassifier(growth=growth.CDSG(), precondition=False, seed=1),
        AdaptiveKernelClassifier(n_features=8, n_trees=0, seed=1),
        KernelNoveltyDetector(seed=1),
        KernelDensityRatio(p=True, q=False, seed=1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_is_said_to_go_on_does_and_counters_begin_at_0(model: Any) -> None:
    xs, ys = drifting(900)
    model = model.clone()
    before = Exporter(model, [], 10)
    model.advance(xs, [y > 0 for y in ys])
    before.refresh(View(account={"consumed": 1}, loss=0.5, loss_sum=0.5), 1.0)
    restored = model.clone()
    restored.__setstate__(model.__getstate__())
    families = {family.name: family for family in Exporter(restored, [], 10).registry.collect()}
    gone_on = set()
    for family in before.registry.collect():
        again = families[family.name]
        bare = family.name.removeprefix("streamkernel_")
        restart = after_restart(bare, family.type)
        if restart == "0" and bare != "process_cpu_seconds":
            assert all(sample.value == 0 for sample in again.samples), family.name
        elif restart == "goes on" and bare not in ("lifetime_records", "checkpoint_last_success_timestamp_seconds"):
            gone_on.add(bare)
            assert [sample.value for sample in again.samples] == [sample.value for sample in family.samples]
    assert "random_features" in gone_on
    assert len(gone_on) > 1
