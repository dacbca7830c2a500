"""A model that is refitted on its window, in the daemon: configuration, checkpoints, commands, metrics and log."""

from __future__ import annotations

import json
import logging
import math
import re
from pathlib import Path

import pytest

from streamkernel import KernelClassifier, WindowRefit
from streamkernel.daemon import cli
from streamkernel.daemon.assembly.model import build_model
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.assembly.processor import make_processor
from streamkernel.daemon.base.window_refit import window_refit_of
from streamkernel.daemon.check import check
from streamkernel.daemon.checkpoints.payload import dump_model, load_model
from streamkernel.daemon.checkpoints.store import checkpoint_files
from streamkernel.daemon.checkpoints.unpickler import permits
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.daemon.evaluate import evaluate
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.monitoring.tables import summary_table
from streamkernel.daemon.monitoring.view import View
from streamkernel.daemon.monitoring.watch import Watch
from streamkernel.daemon.run_state import resume
from streamkernel.daemon.run_state.models import published_entry
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.stop import StopSignals
from tests.daemon.configurations import SOURCE, lines_of, predicting
from tests.daemon.conftest import Home, write_stream
from tests.daemon.labels_stream import sections, write_pair
from tests.daemon.refits import INNER, SOLVER, refitted
from tests.daemon.service import serving
from tests.daemon.test_several_models import several


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


# Without a seed: the refits of a stream draw the same after a restart.
SOLVERS = {
    "Exact": SOLVER,
    "DSPDC": {"streamkernel.window.DSPDC": {"l2": 0.01, "max_passes": 3}},
    "S3GD": {"streamkernel.window.S3GD": {"l2": 0.01, "anchors": 20, "max_passes": 3}},
    "SVRG": {"streamkernel.window.SVRG": {"l2": 0.01, "max_passes": 3}},
}


@pytest.mark.parametrize("solver", SOLVERS)
def test_its_state_is_a_record_and_goes_on_as_if_nothing_had_happened(here: Home, solver: str) -> None:
    run(prepare(here.configure(model=refitted(solver=SOLVERS[solver], window=200, every=100))))
    whole = published_entry(here.header())
    assert whole["n_refits"] == 2
    run(prepare(here.config), fresh=True, max_records=240)
    (newest, *_) = reversed(checkpoint_files(here.folder / "out/state"))
    assert b'{"kind": "state"' in newest.read_bytes()
    run(prepare(here.config))
    assert published_entry(here.header()) == whole


def test_another_one_than_the_checkpoint_holds_is_refused_with_the_difference(here: Home) -> None:
    run(prepare(here.configure(model=refitted())), max_records=200)
    inner = {"streamkernel.KernelClassifier": {**INNER["streamkernel.KernelClassifier"], "max_features": 128}}
    for given, difference in (
        ({"window": 400}, "model[0].window: checkpoint has 500, configuration says 400"),
        ({"model": inner}, "model[0].model.max_features: checkpoint has 64, configuration says 128"),
    ):
        with pytest.raises(Exception, match="another model") as caught:
            run(prepare(here.configure(model=refitted(**given))))
        assert difference in str(caught.value)


@pytest.mark.parametrize("solver", SOLVERS)
def test_it_is_restored_at_the_end_of_a_pipeline_too(solver: str) -> None:
    steps = ["river.preprocessing.StandardScaler", *refitted(solver=SOLVERS[solver], window=200, every=100)]
    model = build_model(steps)
    for number in range(350):
        model.learn_one({"a": float(number % 7), "b": float(number % 3)}, number % 7 > 2)
    one, other = window_refit_of(model), window_refit_of(load_model(dump_model(model), build_model(steps)))
    assert one is not None
    assert other is not None
    assert one.n_refits == other.n_refits == 2
    assert one.state_digest() == other.state_digest()


def test_every_window_solver_may_stand_in_a_checkpoint() -> None:
    from streamkernel import window

    found = [getattr(window, name) for name in window.__all__]
    solvers = [one for one in found if isinstance(one, type) and hasattr(one, "fit")]
    assert solvers
    assert [one for one in solvers if not permits(one.__module__, one.__qualname__)] == []


STREAM = {"kind": "csv", "path": "stream.csv", "target": "y"}
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


def test_evaluate_says_what_a_run_comes_to(here: Home) -> None:
    plan = prepare(here.configure(model=refitted(**SHORT), checkpoint=None))
    evaluated = evaluate(plan, StopSignals()).view
    assert (evaluated.growth["features"], evaluated.growth["refits"], evaluated.growth["window"]) == (64, 2, 200)
    assert (evaluated.to_json()["refits"], evaluated.to_json()["window"]) == (2, 200)  # as the status page has them
    assert "refits" in [label for column in summary_table({"one": evaluated}).columns[:1] for label in column._cells]
    assert run(prepare(here.config)).overall == pytest.approx(evaluated.overall)


def test_a_regressor_is_refitted_too(here: Home) -> None:
    inner = {"streamkernel.KernelRegressor": {"seed": 1, "max_features": 64, "block_size": 16}}
    source = {"kind": "csv", "path": "stream.csv", "target": "b", "target_type": "float"}
    view = run(prepare(here.configure(source=source, model=refitted(model=inner, **SHORT))))
    assert published_entry(here.header())["n_refits"] == 2
    assert {"mae", "rmse", "r2"} <= view.overall.keys()
    other = {**source, "target": "y", "target_type": "str"}
    with pytest.raises(ConfigError, match=r"source\.target_type: must be float for a regressor, is str"):
        prepare(here.configure(source=other, model=refitted(model=inner, **SHORT)))


def test_it_learns_from_late_labels(home: Home) -> None:
    write_pair(home.folder, "jsonl", 800)
    run(prepare(home.configure(model=refitted(), **sections())))
    account, model = home.header()["source"]["account"], published_entry(home.header())
    assert model["n_records"] == account["learned"] > 600
    assert model["n_refits"] == account["learned"] // 300


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


def test_a_window_is_full_where_no_more_bytes_may_be_kept() -> None:
    model = learned(500, max_bytes=8 * 128**2)  # of the normal equations; records of 200 inputs are fewer
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
    assert watch.trouble() == "the daemon has made no progress for 300 s"
    monkeypatch.setattr(WindowRefit, "refitting", True)
    assert watch.trouble() is None
