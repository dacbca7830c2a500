"""The metrics and the page of an adaptive machine: weights of its experts, importance of its inputs."""

from __future__ import annotations

import json
import random
import re
import signal
import time
from typing import Any

import pytest
from river import base

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor, KernelLeastSquaresRegressor
from streamkernel.daemon.monitoring.exporter.exporter import Exporter
from streamkernel.daemon.monitoring.view import View
from tests.daemon.conftest import Home, Launcher, write_stream
from tests.daemon.endpoint import get, serving, values_of


def learnt(n_inputs: int, records: int = 120) -> AdaptiveKernelClassifier:
    """A model that has learnt its first metric, of inputs that matter the less the later they come."""
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
        model = learnt(3)
        with serving(registry=Exporter(model, ["accuracy"], 10).registry) as url:
            values = values_of(get(f"{url}/metrics")[1])
        for expert, weight in model.expert_weights.items():
            assert values[f"expert_weight{{expert={expert}}}"] == weight
        for name, share in model.feature_importances_.items():
            assert values[f"input_importance{{input={name}}}"] == share
        assert sum(value for name, value in values.items() if name.startswith("expert_weight")) == pytest.approx(1)
        assert sum(value for name, value in values.items() if name.startswith("input_importance")) == pytest.approx(1)
        assert values["random_features"] == 16

    def test_experts_that_do_not_weigh_their_inputs_have_weights_all_the_same(self) -> None:
        model = KernelLeastSquaresRegressor(n_features=8, seed=1)
        model.advance([{"a": i % 7} for i in range(50)], [i % 7 for i in range(50)])
        with serving(registry=Exporter(model, ["mae"], 10).registry) as url:
            values = values_of(get(f"{url}/metrics")[1])
        for expert, weight in model.expert_weights.items():
            assert values[f"expert_weight{{expert={expert}}}"] == weight
        assert not [name for name in values if name.startswith("input_importance")]

    def test_before_the_first_record_there_are_none(self) -> None:
        with serving(registry=Exporter(AdaptiveKernelRegressor(), ["mae"], 10).registry) as url:
            values = values_of(get(f"{url}/metrics")[1])
        assert not [name for name in values if name.startswith(("expert_weight", "input_importance"))]

    def test_only_the_most_important_inputs_are_exported(self) -> None:
        model = learnt(50)
        with serving(registry=Exporter(model, ["accuracy"], 10).registry) as url:
            text = get(f"{url}/metrics")[1]
        found = {name: value for name, value in values_of(text).items() if name.startswith("input_importance")}
        assert sorted(found.values()) == sorted(model.feature_importances_.values())[-20:]
        (explained,) = re.findall(r"# HELP streamkernel_input_importance (.*)", text)
        assert "the 20 most important inputs only" in explained

    def test_an_input_that_has_lost_its_place_is_gone(self) -> None:
        model = Weighing()
        exporter = Exporter(model, ["accuracy"], 10)
        model.feature_importances_ |= {f"new {i}": 0.1 for i in range(19)}
        exporter.refresh(View(account={"consumed": 1}, loss=0.5, loss_sum=0.5, rolling={}), 1.0)
        with serving(registry=exporter.registry) as url:
            found = [name for name in values_of(get(f"{url}/metrics")[1]) if name.startswith("input_importance")]
        assert len(found) == 20
        assert sum("input=new" in name for name in found) == 19

    def test_ignored_inputs_are_counted(self) -> None:
        model = AdaptiveKernelClassifier(n_features=16, max_inputs=1, seed=1)
        exporter = Exporter(model, ["accuracy"], 10)
        with pytest.warns(RuntimeWarning, match="max_inputs"):
            model.advance([{"a": 1.0, "b": 2.0}] * 3, [True] * 3)
        exporter.refresh(View(account={"consumed": 3}, loss=0.5, loss_sum=0.5, rolling={}), 1.0)
        assert exporter.registry.get_sample_value("streamkernel_ignored_inputs_total") == model.n_ignored_inputs == 3

    @pytest.mark.parametrize("before", [[], ["river.preprocessing.StandardScaler"]], ids=["alone", "in a pipeline"])
    def test_the_daemon_shows_them(self, home: Home, launcher: Launcher, before: list[str]) -> None:
        write_stream(home.folder / "stream.csv", 400, bad=False)
        steps = [{"river.compose.Select": {"args": ["a", "b"]}}, *before] if before else []
        home.configure(
            source={"kind": "csv", "path": "stream.csv", "target": "y", "follow": True},
            model=[*steps, {"streamkernel.AdaptiveKernelClassifier": {"n_features": 16, "seed": 1}}],
            metrics={"port": 0},
        )
        daemon = launcher.start(home, "run", "config.yaml")
        url = daemon.wait_for(r"serving metrics at (http://127\.0\.0\.1:\d+)/metrics")[1]
        daemon.wait_for("reading csv file")
        while (values := values_of(get(f"{url}/metrics")[1]))["lifetime_records"] < 400:
            time.sleep(0.05)
        figures = json.loads(get(f"{url}/api/status")[1])["figures"]
        daemon.signal(signal.SIGTERM)
        assert daemon.wait().returncode == 0
        model = home.header()["model"]
        assert model["expert_weights"]
        for expert, weight in model["expert_weights"].items():
            assert values[f"expert_weight{{expert={expert}}}"] == weight
        assert figures["expert_weights"] == model["expert_weights"]
        assert figures["input_importance"] == model["input_importance"]
        assert {"a", "b"} <= set(model["input_importance"])
        for name, share in model["input_importance"].items():
            assert values[f"input_importance{{input={name}}}"] == share
        table = launcher.call(home, "inspect", "out/state").stdout
        assert re.search(r"model: expert_weights: head, drift 0 +\d+\.\d%", table)
        assert re.search(r"model: input_importance: a +\d+\.\d%", table)
