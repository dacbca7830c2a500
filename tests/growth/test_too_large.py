"""Gradients and steps too large to be learned: told of, and nothing of the step is kept."""

import pickle

import numpy as np
import pytest
from river.optim.losses import Huber, RegressionLoss
from river.optim.schedulers import Constant

from streamkernel import KernelRegressor
from streamkernel.estimators.base import machine_of
from streamkernel.finite import NotFiniteError
from streamkernel.kernels import Gaussian, Polynomial
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


#: Arguments, and the size of inputs.
LONG = {
    "long steps": ({"step": Constant(30.0), "blocks_per_step": 128}, 1.0),
    "long preconditioned steps": ({"step": Constant(30.0), "precondition": True, "blocks_per_step": 128}, 1.0),
    "very long steps": ({"step": Constant(1e6), "blocks_per_step": 32}, 1.0),
    "large features": (
        {"kernel": Polynomial(2), "standardize": False, "step": Constant(1.0), "blocks_per_step": 8},
        1e4,
    ),
    "of a bounded loss": (
        {"kernel": Polynomial(3), "standardize": False, "step": Constant(1e30), "loss": Huber(1.0), "dtype": "float64"},
        1e15,
    ),
}


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
@pytest.mark.parametrize("method", ["batch_step", "learn_many"])
@pytest.mark.parametrize("case", LONG)
def test_steps_that_are_too_long_leave_a_state_that_can_be_kept(case, method):
    arguments, size = LONG[case]
    model = KernelRegressor(seed=1, **arguments)
    told = []
    for _ in range(2):
        before = model.state_digest()
        try:
            getattr(model, method)(X[:220] * size, Y[:220])
        except NotFiniteError as error:
            told.append(str(error))
        if told and method == "batch_step":
            assert model.state_digest() == before
        assert pickle.loads(pickle.dumps(model)).state_digest() == model.state_digest()
        assert np.isfinite(model.__getstate__()["alpha"]).all()
    assert told or case == "of a bounded loss"
    assert all(text.startswith(("the loss", "the kernel")) for text in told)
