"""States of preconditioned and averaged models, and of plain ones."""

import pickle

import numpy as np

from streamkernel import KernelClassifier
from streamkernel.estimators.base import machine_of
from streamkernel.kernels import Gaussian

ARGUMENTS = {"precondition", "blocks_per_step", "average"}


def _records(n=90):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 2))
    return [dict(zip("ab", x, strict=True)) for x in X.tolist()], (X[:, 0] * X[:, 1] > 0).tolist()


def _learned(**given):
    model = KernelClassifier(Gaussian(1.0), batch_size=8, block_size=4, seed=1, **given)
    model.advance(*_records())
    return model


def _steps(model):
    updates = machine_of(model).updates
    return updates.preconditioned, updates.blocks_per_step


def test_an_open_model_goes_on_with_the_plain_steps_of_a_state():
    old = _learned(precondition=False)
    state = old.__getstate__()
    assert not ARGUMENTS & set(state["arguments"])
    assert "average_alpha" not in state
    model = KernelClassifier(Gaussian(1.0), batch_size=8, block_size=4, seed=1)
    assert _steps(model) == (True, 2)
    model.__setstate__(state)
    assert _steps(model) == (False, 1)
    assert model.state_digest() == old.state_digest()
    for copied in (pickle.loads(pickle.dumps(model)), model.clone(include_attributes=True)):
        assert _steps(copied) == (False, 1)
        assert copied.state_digest() == old.state_digest()
    xs, ys = _records(40)
    assert model.advance(xs, ys).losses.tolist() == old.advance(xs, ys).losses.tolist()
    assert model.state_digest() == old.state_digest()
    assert _steps(model.clone()) == (True, 2)
