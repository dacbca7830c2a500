"""Metrics of a model's own life: drifts, weights of experts, importance of inputs; and what a restart keeps."""

from __future__ import annotations

import math
import random
import re
from typing import Any

import numpy as np
import pytest
from prometheus_client import generate_latest
from river import base

from streamkernel import (
    AdaptiveKernelClassifier,
    AdaptiveKernelRegressor,
    KernelClassifier,
    KernelDensityRatio,
    KernelNoveltyDetector,
    growth,
)
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.monitoring.metrics import METRICS
from streamkernel.daemon.monitoring.view import View, check_margin_of
from tests.daemon.endpoint import values_of


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
        exporter.refresh(View(account={"consumed": 1}, loss=0.5, loss_sum=0.5))
        assert value("streamkernel_drift_events_total") == model.n_drifts_detected - before[0] > 0
        assert value("streamkernel_metric_relearnings_total") == model.n_metric_relearnings - before[1] > 0

    def test_another_model_of_a_reload_adds_nothing_of_its_past(self) -> None:
        xs, ys = drifting()
        fresh, learned = (AdaptiveKernelRegressor(n_features=8, n_trees=0, seed=1) for _ in range(2))
        learned.advance(xs, ys)
        exporter = Exporter(fresh, ["mae"], 10)
        exporter.follow(learned)
        assert exporter.registry.get_sample_value("streamkernel_drift_events_total") == 0


class TestCheckMargin:
    def margin(self, **arguments: Any) -> tuple[float, Any]:
        model = KernelClassifier(batch_size=8, block_size=8, seed=1, **arguments)
        exporter = Exporter(model, ["accuracy"], 10)
        value = exporter.registry.get_sample_value
        assert math.isnan(value("streamkernel_check_margin") or 0)
        xs, ys = drifting(400)
        model.advance(xs, [y > 0 for y in ys])
        exporter.refresh(View(account={"consumed": 1}, loss=0.5, loss_sum=0.5))
        return value("streamkernel_check_margin") or 0, model

    def test_it_is_that_of_the_last_reuse(self) -> None:
        margin, model = self.margin(growth=growth.CDSG(), precondition=False)
        assert model.n_reused > 0
        assert margin == model.last_check_margin == check_margin_of(model)


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
    before.refresh(View(account={"consumed": 1}, loss=0.5, loss_sum=0.5))
    restored = model.clone()
    restored.__setstate__(model.__getstate__())
    families = {family.name: family for family in Exporter(restored, [], 10).registry.collect()}
    gone_on = set()
    for family in before.registry.collect():
        again = families[family.name]
        bare = family.name.removeprefix("streamkernel_")
        restart = METRICS[bare].restart
        if restart == "0" and bare != "process_cpu_seconds":
            assert all(sample.value == 0 for sample in again.samples), family.name
        elif restart == "kept" and bare not in ("lifetime_records", "checkpoint_last_success_timestamp_seconds"):
            gone_on.add(bare)
            assert [sample.value for sample in again.samples] == [sample.value for sample in family.samples]
    assert "random_features" in gone_on
    assert len(gone_on) > 1


def learned(n_inputs: int, records: int = 120) -> AdaptiveKernelClassifier:
    """A model that has learned its first metric, of inputs that matter the less the later they come."""
    draw = random.Random(1)
    xs = [{f"x{j}": draw.gauss(0, 1) for j in range(n_inputs)} for _ in range(records)]
    model = AdaptiveKernelClassifier(n_features=16, seed=1)
    model.advance(xs, [sum(value / (1 + j) for j, value in enumerate(x.values())) > 0 for x in xs])
    return model


class Weighing(base.Classifier):
    """A classifier that says of its inputs what a test wants."""

    def __init__(self) -> None:
        self.n_features, self.n_ignored_inputs, self.expert_weights = 1, 0, {"a": 1.0}
        self.feature_importances_ = {f"old {i}": 0.05 for i in range(20)}

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn nothing."""


class TestMixture:
    def test_a_scrape_gives_weights_and_importances(self) -> None:
        model = learned(3)
        values = values_of(generate_latest(Exporter(model, ["accuracy"], 10).registry).decode())
        for expert, weight in model.expert_weights.items():
            assert values[f"expert_weight{{expert={expert}}}"] == weight
        for name, share in model.feature_importances_.items():
            assert values[f"input_importance{{input={name}}}"] == share
        assert sum(value for name, value in values.items() if name.startswith("expert_weight")) == pytest.approx(1)
        assert sum(value for name, value in values.items() if name.startswith("input_importance")) == pytest.approx(1)
        assert values["random_features"] == 16

    def test_only_the_most_important_inputs_are_exported(self) -> None:
        model = learned(50)
        text = generate_latest(Exporter(model, ["accuracy"], 10).registry).decode()
        found = {name: value for name, value in values_of(text).items() if name.startswith("input_importance")}
        assert sorted(found.values()) == sorted(model.feature_importances_.values())[-20:]
        (explained,) = re.findall(r"# HELP streamkernel_input_importance (.*)", text)
        assert "the 20 most important inputs only" in explained

    def test_an_input_that_has_lost_its_place_is_gone(self) -> None:
        model = Weighing()
        exporter = Exporter(model, ["accuracy"], 10)
        model.feature_importances_ |= {f"new {i}": 0.1 for i in range(19)}
        exporter.refresh(View(account={"consumed": 1}, loss=0.5, loss_sum=0.5, rolling={}))
        values = values_of(generate_latest(exporter.registry).decode())
        found = [name for name in values if name.startswith("input_importance")]
        assert len(found) == 20
        assert sum("input=new" in name for name in found) == 19

    def test_ignored_inputs_are_counted(self) -> None:
        model = AdaptiveKernelClassifier(n_features=16, max_inputs=1, seed=1)
        exporter = Exporter(model, ["accuracy"], 10)
        with pytest.warns(RuntimeWarning, match="max_inputs"):
            model.advance([{"a": 1.0, "b": 2.0}] * 3, [True] * 3)
        exporter.refresh(View(account={"consumed": 3}, loss=0.5, loss_sum=0.5, rolling={}))
        assert exporter.registry.get_sample_value("streamkernel_ignored_inputs_total") == model.n_ignored_inputs == 3
