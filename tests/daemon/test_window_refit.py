"""A model that is refitted on its window, in the daemon: configuration, checkpoints, commands, metrics and log."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamkernel import KernelClassifier, WindowRefit
from streamkernel.daemon.base.window_refit import window_refit_of
from streamkernel.daemon.check import check
from streamkernel.daemon.checkpoints.payload import dump_model, load_model
from streamkernel.daemon.checkpoints.store import checkpoint_files
from streamkernel.daemon.checkpoints.unpickler import permits
from streamkernel.daemon.runtime import run
from streamkernel.daemon.wiring.model import build_model
from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.configurations import SOURCE, lines_of
from tests.daemon.conftest import Home
from tests.daemon.refits import INNER, SOLVER, refitted


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
        ("{model: {streamkernel.KernelClassifier: {max_features: null}}}", "give the model a max_features, 1024 say"),
        (
            "{model: {streamkernel.KernelRegressor: {max_features: 64, loss: {river.optim.losses.Absolute: {}}}}}",
            "the loss Absolute is not smooth: a window solver takes Squared, Huber, Log, SquaredHinge and Softmax",
        ),
        (OF + "solver: {streamkernel.window.Exact: {l2: 0}}}", "l2 must be a finite number above 0, got 0"),
        (
            "{model: {streamkernel.KernelClassifier: {max_features: 9999}}, solver: {streamkernel.window.Exact: {}}}",
            "give the model max_features=4096 at most, or WindowRefit a larger max_bytes",
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
    whole = here.header()["model"]
    assert whole["n_refits"] == 2
    run(prepare(here.config), fresh=True, max_records=240)
    (newest, *_) = reversed(checkpoint_files(here.folder / "out/state"))
    assert b'{"kind": "state"' in newest.read_bytes()
    run(prepare(here.config))
    assert here.header()["model"] == whole


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
