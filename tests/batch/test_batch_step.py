"""What a batch step promises beside its formulas: counts, all or nothing, the same bits, predictions made before."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from river.optim.losses import Absolute, Squared

from streamkernel import (
    KernelClassifier,
    KernelDensityRatio,
    KernelLeastSquaresRegressor,
    KernelNoveltyDetector,
    KernelRegressor,
    WindowRefit,
    losses,
)
from streamkernel.estimators.base import machine_of
from streamkernel.finite import NotFiniteError
from streamkernel.growth import CDSG, DSG
from streamkernel.kernels import Gaussian


def _rows(n, seed=1, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n)


MODELS = {
    "regressor": KernelRegressor(growth=CDSG(), seed=1),
    "plain": KernelRegressor(loss=Absolute(), average=True, seed=1),
    "classifier": KernelClassifier(growth=DSG(), blocks_per_step=3, seed=1),
    "sides": KernelClassifier(loss=losses.Log(), seed=1),
    "novelty": KernelNoveltyDetector(seed=1),
    "ratio": KernelDensityRatio(p=True, q=False, seed=1),
}
EVERY = pytest.mark.parametrize("name", MODELS)


def _targets(name, y):
    if name in ("sides", "ratio"):
        return (y > 0).tolist()
    return np.digitize(y, [-0.5, 0.5]).tolist() if name == "classifier" else y.tolist()


def _batches(name, sizes, seed=1):
    X, y = _rows(sum(sizes), seed)
    ends = np.cumsum(sizes)[:-1]
    ys = _targets(name, y)
    return list(
        zip(np.split(X, ends), [ys[a:b] for a, b in zip([0, *ends], [*ends, len(ys)], strict=True)], strict=True)
    )


@EVERY
@pytest.mark.parametrize("sizes", [(210, 50, 60), (50, 60, 140, 30)], ids=["begun at once", "warmed up"])
def test_the_same_rows_leave_the_same_bytes_and_a_state_goes_on_with_them(name, sizes):
    one, other = MODELS[name].clone(), MODELS[name].clone()
    for X, ys in _batches(name, sizes):
        found, again = one.batch_step(X, ys), other.batch_step(X, ys)
        assert (found.predictions, found.probabilities) == (again.predictions, again.probabilities)
        np.testing.assert_array_equal(found.losses, again.losses)
        assert one.state_digest() == other.state_digest()
        other = pickle.loads(pickle.dumps(other))
        assert one.state_digest() == other.state_digest()
    assert (one.n_records, one.last_batch_size) == (sum(sizes), sizes[-1])


@EVERY
def test_records_one_by_one_go_on_after_a_batch_and_a_batch_after_them(name):
    model, other = MODELS[name].clone(), MODELS[name].clone()
    for number, (X, ys) in enumerate(_batches(name, (70, 150, 40, 77, 60, 41))):
        if number % 2:
            model.batch_step(X, ys)
            other.batch_step(X, ys)
        else:
            for x, y in zip(X.tolist(), ys, strict=True):
                machine_of(model).learn([dict(enumerate(x))], [y])
            machine_of(other).learn([dict(enumerate(x)) for x in X.tolist()], ys)
        assert model.state_digest() == other.state_digest()
        other = pickle.loads(pickle.dumps(other))
    assert model.n_records == 438


@EVERY
def test_predictions_are_those_before_the_step(name):
    model = MODELS[name].clone()
    first, second, third = _batches(name, (400, 300, 300))
    model.batch_step(*first)
    for X, ys in (second, third):
        before = model.clone(include_attributes=True)
        found = model.batch_step(X, ys)
        expected = before.batch_step(X, [None] * len(ys))
        digest = before.state_digest()
        if name == "sides":
            assert found.probabilities == expected.probabilities
        assert found.predictions == expected.predictions
        one_by_one = before.advance([dict(enumerate(x)) for x in X[:5].tolist()], [None] * 5)
        if name in ("regressor", "plain"):  # but that one record alone is scaled by moments with itself
            assert found.predictions[:5] == pytest.approx(one_by_one.predictions, abs=0.05)
        assert before.state_digest() == digest
        assert np.isnan(expected.losses).all()
        assert np.isfinite(found.losses).all()


def test_the_first_batch_is_predicted_by_what_was_known_before_it():
    X, y = _rows(500)
    model = KernelRegressor(growth=CDSG(), seed=1)
    assert model.batch_step(X, y).predictions == [0.0] * 500
    labels = KernelClassifier(growth=CDSG(), seed=1)
    found = labels.batch_step(X, _targets("classifier", y))
    assert (found.predictions, found.probabilities) == ([None] * 500, [{}] * 500)
    # Of records that wait for a step their mean and labels.
    waits = KernelRegressor(Gaussian(1.0), seed=1)
    waits.advance([{0: 1.0}, {0: 2.0}], [10.0, 30.0])
    assert waits.batch_step(X, y).predictions == [20.0] * 500
    waits = KernelClassifier(growth=CDSG(), seed=1)
    waits.advance([{0: 1.0}], ["a"])
    assert waits.batch_step(X, ["b"] * 500).probabilities == [{"a": 1.0}] * 500


@EVERY
def test_nothing_is_learned_of_rows_that_are_predicted_only(name):
    model = MODELS[name].clone()
    (X, ys), (more, _) = _batches(name, (400, 100))
    for number in (0, 1):
        digest = model.state_digest()
        found = model.batch_step(more, [None] * 100)
        assert (len(found.predictions), len(found.losses)) == (100, 100)
        empty = model.batch_step(np.zeros((0, 3)), [])
        assert (empty.predictions, empty.losses.shape) == ([], (0,))
        assert model.batch_step(pd.DataFrame({"z": pd.Series([], dtype=float)}), []).predictions == []
        assert model.state_digest() == digest
        if not number:
            model.batch_step(X, ys)


def test_a_model_that_is_refitted_on_a_window_takes_no_batch_step():
    X, y = _rows(300)
    refitted = WindowRefit(KernelRegressor(growth=CDSG(), seed=1), window=100, every=100)
    refitted.learn_many(X, y)
    digest = refitted.state_digest()
    with pytest.raises(ValueError, match="a WindowRefit fills its window record by record"):
        refitted.model.batch_step(X, y)
    assert refitted.state_digest() == digest
    refitted.learn_many(X, y)


class Spoilt(Squared):
    """A loss of a user's that is NaN for a large target, and cannot take no rows."""

    def gradient(self, y_true, y_pred):
        assert y_true.max() > -10
        return np.where(y_true > 9, np.nan, 2 * (y_pred - y_true))


@pytest.mark.parametrize(
    ("model", "change", "error"),
    [
        (KernelRegressor(growth=CDSG(), seed=1), {"X": np.inf}, ValueError),
        (KernelRegressor(growth=CDSG(), seed=1), {"y": np.inf}, ValueError),
        (KernelRegressor(growth=CDSG(), seed=1), {"y": "text"}, ValueError),
        (KernelRegressor(growth=CDSG(), seed=1), {"w": -1.0}, ValueError),
        (KernelRegressor(growth=CDSG(), seed=1), {"fewer": True}, ValueError),
        (
            KernelRegressor(loss=Spoilt(), seed=1),
            {"y": 50.0},
            NotFiniteError,
        ),
        (KernelClassifier(loss=losses.Log(), seed=1), {"y": "third"}, ValueError),
        (KernelClassifier(growth=CDSG(), seed=1), {"y": [1]}, ValueError),
        (KernelDensityRatio(p=True, q=False, seed=1), {"y": "third"}, ValueError),
    ],
    ids=lambda value: str(value)[:30].split("(")[0].strip() if not isinstance(value, type) else value.__name__,
)
def test_a_batch_that_cannot_be_used_changes_nothing(model, change, error):
    X, y = _rows(300)
    labeled = not isinstance(model, KernelRegressor)
    ys = (y > 0).tolist() if labeled else y.tolist()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for begun in (0, 150, 250):  # before the first record, in the warm-up, and later
        one = model.clone()
        if begun:
            one.learn_many(frame[:100], ys[:100])
            one.batch_step(frame[100:begun], ys[100:begun])
        twin = pickle.loads(pickle.dumps(one))
        digest = one.state_digest()
        bad, bad_ys, w = frame[begun:].assign(new=1.0), ys[begun:], [1.0] * (300 - begun)
        if "X" in change:
            bad.iloc[7, 1] = change["X"]
        if "y" in change:
            bad_ys[7] = change["y"]
        if "w" in change:
            w[7] = change["w"]
        with pytest.raises(error):
            one.batch_step(bad, bad_ys[:-1] if "fewer" in change else bad_ys, w)
        assert one.state_digest() == digest
        one.batch_step(frame[:210], ys[:210])
        twin.batch_step(frame[:210], ys[:210])
        assert one.state_digest() == twin.state_digest()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (KernelRegressor(max_inputs=2, seed=1), "inputs past max_inputs=2 are ignored, counted in n_ignored_inputs"),
        (KernelLeastSquaresRegressor(max_inputs=2, seed=1), "inputs past max_inputs=2 are ignored"),
        (KernelClassifier(max_classes=2, seed=1), "classes past max_classes are not learned"),
    ],
    ids=["inputs", "least squares", "classes"],
)
def test_what_is_ignored_past_a_limit_is_warned_of_once(model, message):
    X, y = _rows(300)
    ys = [i % 3 for i in range(300)] if isinstance(model, KernelClassifier) else y
    model = model.clone()
    with pytest.warns(RuntimeWarning, match=f"^{message}") as told:
        model.batch_step(X, ys)
    assert [(warning.filename, len(told)) for warning in told] == [(__file__, 1)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.batch_step(X, ys)
