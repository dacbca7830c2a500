"""Gradients and steps too large to be learned: told of, and nothing of the step is kept."""

import pickle

import numpy as np
import pytest
from river.optim.losses import RegressionLoss
from river.optim.schedulers import Constant

from streamkernel import KernelRegressor
from streamkernel.estimators.base import machine_of
from streamkernel.finite import NotFiniteError
from streamkernel.kernels import Gaussian
from streamkernel.state import digest

X = np.random.default_rng(0).normal(size=(400, 3))
Y = X[:, 0] + X[:, 1] ** 2


class Steepens(RegressionLoss):
    """A gradient that is finite, and past all bounds once `calls_left` are taken."""

    factor = 1e200
    calls_left = 10**9

    def __call__(self, y_true, y_pred):
        return (y_true - y_pred) ** 2

    def gradient(self, y_true, y_pred):
        Steepens.calls_left -= 1
        return 2 * (y_pred - y_true) * (Steepens.factor if Steepens.calls_left < 0 else 1.0)


KINDS = {
    "default": {},
    "plain": {"precondition": False},
    "float64": {"precondition": False, "dtype": "float64"},
    "average": {"average": True},
    "several blocks": {"blocks_per_step": 4, "precondition": False},
    "decay": {"blocks_per_step": 4, "precondition": False, "step": Constant(1.0), "regularization": 0.999},
    "own bandwidth": {"kernel": Gaussian(1.0)},
}


@pytest.mark.parametrize("begun", [0, 300])
@pytest.mark.parametrize(
    ("kind", "calls"),
    [
        (kind, calls)
        for kind, arguments in KINDS.items()
        for calls in sorted({0, machine_of(KernelRegressor(loss=Steepens(), **arguments)).updates.blocks_per_step - 1})
    ],
)
def test_a_step_at_which_a_gradient_is_too_large_leaves_nothing(kind, calls, begun, monkeypatch):
    """At the first block of the step and at the last."""
    model = KernelRegressor(loss=Steepens(), seed=1, batch_size=32, **KINDS[kind])
    monkeypatch.setattr(Steepens, "calls_left", 10**9)
    if begun:
        model.batch_step(X[:begun], Y[:begun])
    before = model.state_digest()
    monkeypatch.setattr(Steepens, "calls_left", calls)
    with pytest.raises(NotFiniteError, match=r"^the loss Steepens gave .*-1e\+100"):
        model.batch_step(X, Y)
    assert model.state_digest() == before

    monkeypatch.setattr(Steepens, "calls_left", 10**9)
    model.learn_many(X[:31], Y[:31])
    state = model.__getstate__()
    monkeypatch.setattr(Steepens, "calls_left", calls)
    with pytest.raises(NotFiniteError, match=r"^the loss Steepens gave"):
        model.learn_one(dict(enumerate(X[31].tolist())), float(Y[31]))
    after = model.__getstate__()
    came = ("n_records", "batch_", "warm_up_", "input_", "target_")  # the record did, though no step was taken
    for name in state:
        assert name.startswith(came) or digest({name: after[name]}) == digest({name: state[name]}), name
    monkeypatch.setattr(Steepens, "calls_left", 10**9)
    pickle.loads(pickle.dumps(model)).learn_many(X, Y)
