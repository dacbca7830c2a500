"""Bad and extreme rows in batches of least squares: refused as a whole, or all stays finite."""

import numpy as np
import polars as pl
import pytest

from streamkernel import (
    KernelLeastSquaresRegressor,
)
from streamkernel.batch import sums
from streamkernel.estimators.base import machine_of
from streamkernel.records.frames import Frame
from streamkernel.records.targets import Encoded
from tests.batch.least_squares_rows import MODELS, stream
from tests.laws.cuts import frame_of

pytestmark = pytest.mark.filterwarnings("ignore:inputs past max_inputs")
EVERY = pytest.mark.parametrize("name", MODELS)


def _learned(name, n=120):
    model = MODELS[name].clone()
    xs, ys, ws = stream(name, n)
    model.batch_step(_frame(xs), ys, ws)
    return model


def _frame(xs):
    return frame_of(pl.DataFrame, xs)


BAD = {
    "an infinite input": (np.array([[1.0], [np.inf]]), [1, 2], None),
    "too few targets": (np.ones((3, 1)), [1, 2], None),
    "too few weights": (np.ones((3, 1)), [1, 2, 3], [1.0]),
    "a negative weight": (np.ones((3, 1)), [1, 2, 3], [1.0, 1.0, -1.0]),
    "a weight that is NaN": (np.ones((3, 1)), [1, 2, 3], [1.0, 1.0, np.nan]),
    "a list as a target": (np.ones((3, 1)), [1, 2, [3]], None),
    "an input that is none": (np.array([[1.0], [object()]], object), [1, 2], None),
}


@EVERY
@pytest.mark.parametrize("bad", BAD)
def test_bad_rows_leave_the_model_as_it_was(name, bad):
    for model in (MODELS[name].clone(), _learned(name)):
        before = model.state_digest()
        with pytest.raises((ValueError, TypeError)) as error:
            model.batch_step(*BAD[bad])
        assert "\n" not in str(error.value)
        assert model.state_digest() == before
        model.batch_step(np.ones((3, 1)), [1, 2, 1])


@EVERY
def test_a_step_that_fails_leaves_the_model_as_it_was(name, monkeypatch):
    """The labels and inputs of the batch have joined by then, and the moments of new inputs begun."""
    model = _learned(name)
    before = model.state_digest()

    def fail(_):
        raise KeyboardInterrupt

    xs = [{"a": 1.0, "new": 2.0}, {"a": 2.0, "word": "other"}]
    with monkeypatch.context() as patched:
        patched.setattr(sums, "_root", fail)
        with pytest.raises(KeyboardInterrupt):
            model.batch_step(_frame(xs), [7.0, 8.0])
    assert model.state_digest() == before
    twin = _learned(name)
    for one in (model, twin):
        one.batch_step(_frame(xs), [7.0, 8.0])
    assert model.state_digest() == twin.state_digest()


def test_in_the_beginning_predictions_stay_where_the_units_of_targets_move():
    """Over the first 200 records; later it is the relation to the inputs, which move too, that stays."""
    rng = np.random.default_rng(6)
    model = KernelLeastSquaresRegressor(n_features=8, standardize=False, seed=1)
    X, weights = rng.normal(size=(90, 2)), np.ones(90)
    model.batch_step(X, X[:, 0])
    for scale, stays in ((10.0, True), (100.0, False)):
        y = X[:, 0] * scale
        was = machine_of(model.clone(include_attributes=True))
        of_targets = Encoded(was.targets.as_of_now(y), was.known_before(90))
        was.take_step(was.predict_and_sum(X, of_targets, weights)[1])
        expected = was.targets.numbers(was.predict(Frame(X)))  # learned, in the units of before
        model.batch_step(X, y)
        found = model.predict_many(X)
        assert np.allclose(found, expected, rtol=1e-6, atol=1e-6) == stays
