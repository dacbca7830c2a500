"""What a refit tells of itself, and what becomes of one that the solver refuses."""

import math

import numpy as np
import pytest

from streamkernel import KernelRegressor, WindowRefit
from streamkernel.estimators.base import machine_of
from streamkernel.window import Exact
from streamkernel.window.linear_model import History, LinearSolver


class Jumping(LinearSolver):
    """Adds noise of its seed to where it begins."""

    def __init__(self, loss="squared", l2=1e-3, seed=None):
        self.loss, self.l2, self.seed = loss, l2, seed

    l1 = 0.0

    def _solve(self, problem, start, seed, shared):  # noqa: ARG002
        noise = np.random.default_rng(seed).normal(size=start.shape) / 100
        return start + noise, History.of([(1.0, 0.0, 0.0, math.nan)])


class Refusing(Jumping):
    """Refuses whatever comes."""

    def _solve(self, problem, start, seed, shared):  # noqa: ARG002
        raise ValueError("more anchors than rows: give fewer")


def records(n):
    rng = np.random.default_rng(2)
    xs = [{"a": a, "b": b} for a, b in rng.normal(size=(n, 2)).tolist()]
    return xs, [x["a"] + x["b"] ** 2 for x in xs]


# Without scaling, so that a prediction does not take its record into the moments first.
INNER = {"max_features": 32, "block_size": 8, "batch_size": 8, "standardize": False, "seed": 1}


def regressor(**given):
    inner = KernelRegressor(**INNER)
    return WindowRefit(inner, **{"window": 400, "every": 150, **given})


def test_the_figures_are_those_of_the_last_refit():
    model = regressor()
    xs, ys = records(500)
    model.advance(xs[:149], ys[:149])
    assert (model.last_refit, model.refit_seconds, model.refitting) == (None, 0.0, False)
    model.advance(xs[149:460], ys[149:460])
    model.refit()
    last = model.last_refit
    assert last.n_records == 400
    assert 0 < last.seconds < model.refit_seconds
    # The loss of a number counts in deviations of the targets.
    deviation = machine_of(model.model).targets.deviation
    errors = [model.predict_one(x) - y for x, y in zip(xs[60:460], ys[60:460], strict=True)]
    assert last.loss == pytest.approx(np.mean(np.square(errors)) / deviation**2, rel=1e-4)


def test_a_solver_without_a_seed_is_reproducible():
    xs, ys = records(700)
    whole, part = regressor(solver=Jumping()), regressor(solver=Jumping())
    whole.advance(xs, ys)
    part.advance(xs[:200], ys[:200])
    restored = regressor(solver=Jumping())
    restored.__setstate__(part.__getstate__())
    restored.advance(xs[200:], ys[200:])
    assert restored.state_digest() == whole.state_digest()
    other = regressor(solver=Jumping(seed=7))
    other.advance(xs, ys)
    assert other.predict_one(xs[0]) != whole.predict_one(xs[0])


def test_what_the_solver_refuses_in_the_stream_is_warned_of_and_each_record_learned_once():
    model = regressor(solver=Refusing(), every=250)
    xs, ys = records(300)
    with pytest.warns(RuntimeWarning, match="could not be solved on the last 250 records: more anchors than rows"):
        model.advance(xs, ys)
    assert (model.n_records, model.n_refits, model.n_refit_failures) == (300, 0, 1)
    with pytest.raises(ValueError, match="more anchors than rows: give fewer"):
        model.refit()
    assert not model.refitting


def test_normal_equations_that_are_singular_are_refused():
    model = regressor(solver=Exact(l2=1e-300), every=1000)
    model.advance([{"a": 1.0}] * 300, [float(i) for i in range(300)])
    before = model.state_digest()
    with pytest.raises(ValueError, match="are singular with l2=1e-300: use a larger l2"):
        model.refit()
    assert model.state_digest() == before
