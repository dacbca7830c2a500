"""A model that is refitted on its window, in the daemon: configuration, checkpoints, commands, metrics and log."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from streamkernel import KernelClassifier, WindowRefit
from streamkernel.daemon import cli
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.assembly.processor import make_processor
from streamkernel.daemon.check import check
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.monitoring.view import View
from streamkernel.daemon.monitoring.watch import Watch
from streamkernel.daemon.run_state import resume
from streamkernel.daemon.runtime import run
from tests.daemon.configurations import SOURCE, lines_of, predicting
from tests.daemon.conftest import Home, write_stream
from tests.daemon.refits import refitted
from tests.daemon.service import serving


def test_it_is_built_from_a_configuration_and_shown(here: Home) -> None:
    plan = prepare(here.configure(model=refitted(), checkpoint=None))
    assert isinstance(plan.model, WindowRefit)
    assert isinstance(plan.model.model, KernelClassifier)
    assert plan.task == "classification"
    found = check(plan)
    assert found.bad == []
    assert "model: WindowRefit of KernelClassifier, every 300 records on the last 500, new" in found.good


OF = "{model: {streamkernel.KernelClassifier: {}}, "


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("{}", "model[0]: streamkernel.WindowRefit: missing a required argument: 'model'"),
        ("{model: streamkernel.KernelClassifier}", "model[0].model: is the name of a class; to make an object of it"),
        ("{model: KernelClassifier}", "write {streamkernel.KernelClassifier: {}}"),
        ("{model: [{streamkernel.KernelClassifier: {}}]}", "model[0].model: must be a KernelClassifier or KernelRegr"),
        (
            "{model: {streamkernel.AdaptiveKernelClassifier: {}}}",
            "model[0].model: must be a KernelClassifier or KernelRegr",
        ),
        ("{model: {streamkernel.KernelClassifier: {max_feature: 1}}}", "did you mean 'max_features'?"),
        (OF + "window: 0}", "model[0].window: must be a whole number of at le"),
        (OF + "solver: exact}", "write {streamkernel.window.Exact: {}}"),
        (OF + "windows: 9}", "did you mean 'window'?"),
        (
            "{model: {streamkernel.KernelClassifier: {max_features: null}}}",
            "set max_features of the model, for example to 1024",
        ),
        (
            "{model: {streamkernel.KernelRegressor: {max_features: 64, loss: {river.optim.losses.Absolute: {}}}}}",
            "the loss Absolute is not smooth: a window solver accepts Squared, Huber, Log, SquaredHinge and Softmax",
        ),
        (OF + "solver: {streamkernel.window.Exact: {l2: 0}}}", "l2 must be a finite number above 0, got 0"),
        (
            "{model: {streamkernel.KernelClassifier: {max_features: 9999}}, solver: {streamkernel.window.Exact: {}}}",
            "set max_features of the model to at most 4096, or set a larger max_bytes",
        ),
    ],
)
def test_mistakes_are_told(tmp_path: Path, written: str, line: str) -> None:
    (found,) = lines_of(tmp_path, f"{SOURCE}model: [{{streamkernel.WindowRefit: {written}}}]\n")
    assert line in found


SHORT = {"window": 200, "every": 100}


@pytest.fixture
def trained(here: Home) -> Home:
    run(prepare(here.configure(model=refitted(**SHORT))), max_records=280)
    write_stream(here.folder / "other.csv", 100, seed=1, bad=False)
    return here


def test_predictions_are_the_same_by_the_command_in_mode_predict_and_over_http(
    trained: Home, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["predict", "out/state", "other.csv"]) == 0
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert len(lines) == 100
    run(prepare(trained.configure(**predicting(model=refitted(**SHORT)))))
    probabilities = [line["probabilities"] for line in lines]
    assert [line["probabilities"] for line in trained.lines("own/predictions.jsonl")] == probabilities
    record = {"a": 0.5, "b": -1.0, "color": "red"}
    (trained.folder / "one.jsonl").write_text(json.dumps(record))
    assert cli.main(["predict", "out/state", "one.jsonl"]) == 0
    alone = json.loads(capfd.readouterr().out)
    with serving(trained, model=refitted(**SHORT), serve={"port": 0}) as (client, _):
        status, answer = client.ask("/predict", record)
    assert status == 200
    assert answer["probabilities"] == alone["probabilities"]


def learned(n: int, **given: int) -> WindowRefit:
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
    model = learned(250)
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
    exporter.refresh(View(account={"consumed": 750}, loss=0.1, loss_sum=1.0, rolling={}))
    after = exported(exporter)
    assert (after["window_records"], after["window_refits_total"]) == (500, 2)
    assert 0 < after["window_refit_last_seconds"] < after["window_refit_seconds_total"]
    assert 0 < after["window_loss"] < 1


def test_the_daemon_is_well_while_a_refit_is_at_work(here: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = prepare(here.configure(model=refitted()))
    now = [0.0]
    watch = Watch(make_processor(plan, resume.restore(plan, None)), None, clock=lambda: now[0])
    watch.turn()
    now[0] = 300.0
    assert watch.trouble() == "the daemon has made no progress for 300 s"
    monkeypatch.setattr(WindowRefit, "refitting", True)
    assert watch.trouble() is None
