"""Losses, policies, schedules and kernels of the user's that give what is of the wrong shape or type."""

from dataclasses import replace

import numpy as np
import pytest
from river.optim.losses import BinaryLoss, MultiClassLoss, RegressionLoss

from streamkernel import KernelClassifier, KernelRegressor
from streamkernel.growth import CDSG
from streamkernel.kernels import Gaussian

X = np.random.default_rng(0).normal(size=(320, 3))
Y = X[:, 0].tolist()
LABELS = [y > 0 for y in Y]


#: What methods give in place of the right answer, by the method's name.
INSTEAD = {}


def _answer(method, right):
    return ANSWERS[INSTEAD[method]][0](right) if method in INSTEAD else right


class OfNumbers(RegressionLoss):
    def __call__(self, y_true, y_pred):
        return _answer("__call__", (y_true - y_pred) ** 2)

    def gradient(self, y_true, y_pred):
        return _answer("gradient", 2 * (y_pred - y_true))


class OfSides(BinaryLoss):
    def __call__(self, y_true, y_pred):
        return _answer("__call__", (y_true - y_pred) ** 2)

    def gradient(self, y_true, y_pred):
        return _answer("gradient", 2 * (y_pred - y_true))


class OfClasses(MultiClassLoss):
    def __call__(self, y_true, y_pred):
        return _answer("__call__", -y_pred[np.arange(len(y_true)), y_true])

    def gradient(self, y_true, y_pred):
        return _answer("gradient", y_pred - np.eye(y_pred.shape[1])[y_true])


#: What a method gives in place of the right answer, the error, and what is said of it.
ANSWERS = {
    "one": (lambda right: right[:1], TypeError, r"gave an array of shape \(1(, 2)?,?\)"),
    "none": (lambda _: None, TypeError, "gave None"),
    "text": (lambda _: "abc", TypeError, "gave 'abc'"),
    "number": (lambda _: 1.0, TypeError, r"gave an array of shape \(\)"),
    "turned": (lambda right: right[..., None], TypeError, r"gave an array of shape \("),
    "complex": (lambda right: right + 1j, TypeError, "gave array"),
}
BOXES = {"list": list, "rows": np.ndarray.tolist, "float32": lambda right: right.astype(np.float32), "tuple": tuple}
MODELS = [(KernelRegressor, OfNumbers, Y), (KernelClassifier, OfSides, LABELS), (KernelClassifier, OfClasses, LABELS)]
EVERY = pytest.mark.parametrize(("kind", "loss", "ys"), MODELS, ids=[loss.__name__ for _, loss, _ in MODELS])


def _refused(call, error, message):
    with pytest.raises(error, match=message) as told:
        call()
    assert "\n" not in str(told.value)


@EVERY
@pytest.mark.parametrize("answer", ANSWERS)
def test_a_gradient_of_the_wrong_shape_or_type_is_refused(kind, loss, ys, answer, monkeypatch):
    _, error, message = ANSWERS[answer]
    says = rf"^the loss {loss.__name__} {message}.* in its method `gradient`: it must give an array of numbers of shape"
    for method in ("batch_step", "learn_many"):
        model = kind(loss=loss(), seed=1)
        model.batch_step(X, ys)
        before, alpha = model.state_digest(), model.__getstate__()["alpha"]
        with monkeypatch.context() as patch:
            patch.setitem(INSTEAD, "gradient", answer)
            _refused(lambda method=method, model=model: getattr(model, method)(X, ys), error, says)
        if method == "batch_step":
            assert model.state_digest() == before
        else:
            assert np.array_equal(model.__getstate__()["alpha"], alpha)


@EVERY
@pytest.mark.parametrize("answer", ["one", "none", "text", "turned"])
def test_values_of_the_wrong_shape_or_type_are_refused(kind, loss, ys, answer, monkeypatch):
    monkeypatch.setitem(INSTEAD, "__call__", answer)
    _, error, message = ANSWERS[answer]
    message = message.replace("(, 2)?", "")
    says = rf"^the loss {loss.__name__} {message}.* in its method `__call__`: it must give an array of numbers of shape"
    records = [dict(enumerate(row)) for row in X.tolist()]
    for call in (
        lambda: kind(loss=loss(), seed=1).batch_step(X, ys),
        lambda: kind(loss=loss(), seed=1).advance(records, ys),
    ):
        _refused(call, error, says)


class Policy(CDSG):
    def __init__(self, change=None):
        super().__init__()
        self.change = change

    def choose(self, context):
        update = super().choose(context)
        return replace(update, **self.change) if isinstance(self.change, dict) else self.change


class Odd(Gaussian):
    def __init__(self, bandwidth=None, odd_matrix=None, median=None):
        super().__init__(bandwidth)
        self.odd_matrix, self.median = odd_matrix, median

    def matrix(self, X, Y, bandwidth):
        if self.odd_matrix is None:
            return super().matrix(X, Y, bandwidth)
        return np.array(self.odd_matrix) if isinstance(self.odd_matrix, list) else self.odd_matrix

    def median_bandwidth(self, Z):
        return super().median_bandwidth(Z) if self.median is None else self.median


PARTS = {
    "too long": (
        {"growth": Policy({"size": 1e40})},
        FloatingPointError,
        r"a step that is not finite or is beyond 1e\+30",
    ),
    "matrix": (
        {"kernel": Odd(1.0, [[1.0, 1.0], [1.0, 1.0]]), "precondition": False},
        TypeError,
        r"the kernel Odd gave an array of shape \(2, 2\) in its method `matrix`: it must give .* of shape \(",
    ),
    "no matrix": ({"kernel": Odd(1.0, "abc"), "precondition": False}, TypeError, "the kernel Odd gave 'abc'"),
    "bandwidth": ({"kernel": Odd(median="wide")}, TypeError, "the kernel Odd gave the bandwidth 'wide'"),
}


@pytest.mark.parametrize("case", PARTS)
def test_what_other_parts_give_is_refused_in_one_sentence(case):
    arguments, error, message = PARTS[case]
    for method in ("batch_step", "learn_many"):
        model = KernelRegressor(**arguments, seed=1)
        _refused(lambda method=method, model=model: getattr(model, method)(X, Y), error, message)
