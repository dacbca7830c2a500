"""What an operator watches refits by: metrics, log lines and probes."""

from __future__ import annotations

import logging
import math
import re

import pytest

from streamkernel import KernelClassifier, WindowRefit
from streamkernel.daemon.monitoring.exporter.exporter import Exporter
from streamkernel.daemon.monitoring.view import View
from streamkernel.daemon.monitoring.watch import Watch
from streamkernel.daemon.recovery import resume
from streamkernel.daemon.runtime import run
from streamkernel.daemon.wiring.plan import prepare
from streamkernel.daemon.wiring.processor import make_processor
from tests.daemon.conftest import Home
from tests.daemon.refits import refitted
from tests.daemon.test_several_models import several


def learnt(n: int, **given: int) -> WindowRefit:
    inner = KernelClassifier(max_features=64, block_size=16, batch_size=16, seed=1)
    model = WindowRefit(inner, **{"window": 500, "every": 300, **given})
    xs = [{"a": float(i % 7), "b": float(i % 11)} for i in range(n)]
    model.advance(xs, [x["a"] > x["b"] for x in xs])
    return model


def exported(exporter: Exporter) -> dict[str, float]:
    return {
        sample.name.removeprefix("streamkernel_"): sample.value
        for family in exporter.registry.collect()
        for sample in family.samples
        if "window" in sample.name
    }


def test_the_metrics_follow_the_model() -> None:
    model = learnt(250)
    exporter = Exporter(model, ["accuracy"], 1000)
    before = exported(exporter)
    assert math.isnan(before.pop("window_refit_last_seconds"))
    assert math.isnan(before.pop("window_loss"))
    assert before == {
        "window_records": 250,
        "window_max_records": 500,
        "window_refits_total": 0,
        "window_refit_failures_total": 0,
        "window_refit_seconds_total": 0,
    }
    model.advance([{"a": float(i % 7), "b": float(i % 11)} for i in range(500)], [i % 7 > i % 11 for i in range(500)])
    exporter.refresh(View(account={"consumed": 750}, loss=0.1, loss_sum=1.0, rolling={}), 0.0)
    after = exported(exporter)
    assert (after["window_records"], after["window_refits_total"]) == (500, 2)
    assert 0 < after["window_refit_last_seconds"] < after["window_refit_seconds_total"]
    assert 0 < after["window_loss"] < 1


def test_a_window_is_full_where_no_more_bytes_may_be_kept() -> None:
    model = learnt(500, max_bytes=8 * 128**2)  # of the normal equations; records of 200 inputs are fewer
    wide = {f"input {i}": 1.0 for i in range(200)}
    model.advance([wide] * 200, [True] * 200)
    shown = exported(Exporter(model, ["accuracy"], 1000))
    assert shown["window_records"] == shown["window_max_records"] == 8 * 128**2 // (8 * 202)


def test_each_refit_is_logged_of_each_model(here: Home, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    sections = {
        "source": {"kind": "csv", "path": "stream.csv", "target": "y"},
        # A chunk ends there, and the log tells once a chunk.
        "checkpoint": {"directory": "out/state", "every_records": 50},
    }
    run(
        several(
            here, models={"one": refitted(window=300, every=100), "other": refitted(window=300, every=250)}, **sections
        )
    )
    said = re.findall(
        r"the model (\w+) was refitted on its last (\d+) records in [\d.]+ s, and has a mean loss of 0\.", caplog.text
    )
    assert said == [("one", "200"), ("other", "250"), ("one", "300")]


def test_the_daemon_is_well_while_a_refit_is_at_work(here: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = prepare(here.configure(model=refitted()))
    now = [0.0]
    watch = Watch(make_processor(plan, resume.restore(plan, None)), None, clock=lambda: now[0])
    watch.turn()
    now[0] = 300.0
    assert watch.trouble() == "the loop has not turned for 300 s"
    monkeypatch.setattr(WindowRefit, "refitting", True)
    assert watch.trouble() is None
