"""Kernels, losses and schedules of the user's that give what is no finite number."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from river.optim.base import Scheduler
from river.optim.losses import BinaryLoss, MultiClassLoss, RegressionLoss

from streamkernel import (
    AdaptiveKernelClassifier,
    AdaptiveKernelRegressor,
    KernelClassifier,
    KernelLeastSquaresRegressor,
    KernelRegressor,
)
from streamkernel.finite import NotFiniteError
from streamkernel.growth import CDSG
from streamkernel.kernels import Gaussian


class Holed(Gaussian):
    """One frequency in some hundreds is NaN."""

    def __init__(self, bandwidth=None, share=0.003):
        super().__init__(bandwidth)
        self.share = share

    def frequencies(self, words, keys, bandwidth, out):
        super().frequencies(words, keys, bandwidth, out)
        out[:, words % np.uint64(1000) < 1000 * self.share] = np.nan


class Boundless(Gaussian):
    """Entries of infinity."""

    def matrix(self, X, Y, bandwidth):
        return super().matrix(X, Y, bandwidth) / 0.0 if len(X) else np.zeros((0, 0))

    def median_bandwidth(self, Z):
        return math.inf if self.bandwidth is None else super().median_bandwidth(Z)


class Steep(RegressionLoss):
    """A root of what may be below 0."""

    curvature = 1.0

    def __init__(self, gives="gradient"):
        self.gives = gives

    def __call__(self, y_true, y_pred):
        error = np.abs(y_pred - y_true)
        return np.where(error < 1.0, error, np.nan) if self.gives == "value" else error

    def gradient(self, y_true, y_pred):
        error = y_pred - y_true
        return np.where(np.abs(error) < 1.0, error, np.nan) if self.gives == "gradient" else np.sign(error)


class SteepSides(BinaryLoss):
    def __call__(self, y_true, y_pred):
        return np.abs(y_true - y_pred)

    def gradient(self, y_true, y_pred):
        return np.where(y_true > 0, np.inf, y_pred)


class SteepClasses(MultiClassLoss):
    def __call__(self, y_true, y_pred):
        return y_pred[np.arange(len(y_true)), y_true]

    def gradient(self, y_true, y_pred):
        return y_pred * np.nan * len(y_true)


class Lost(Scheduler):
    def get(self, t):
        return t * math.nan


class Adrift(CDSG):
    def choose(self, context):
        return replace(super().choose(context), size=math.inf)


class Fixed(Scheduler):
    def get(self, t):
        return 0.01 / (1 + t)


def _records(n, d=3):
    rng = np.random.default_rng(0)
    return [{f"x{j}": v for j, v in enumerate(row)} for row in rng.normal(size=(n, d)).tolist()]


XS = _records(400)
YS = [x["x0"] + (5.0 if i > 100 else 0.0) for i, x in enumerate(XS)]
LABELS = [x["x0"] > 0 for x in XS]

#: An estimator, its targets, and what it says.
CASES = {
    "adaptive classifier": (lambda: AdaptiveKernelClassifier(Holed(share=0.1), seed=1), LABELS, "Holed.*frequencies"),
    "adaptive regressor": (lambda: AdaptiveKernelRegressor(Holed(share=0.1), seed=1), YS, "Holed.*frequencies"),
    "least squares": (lambda: KernelLeastSquaresRegressor(Holed(share=0.1), seed=1), YS, "Holed.*frequencies"),
    "growing": (lambda: KernelRegressor(Holed(1.0), batch_size=8, seed=1), YS, "Holed.*frequencies"),
    "drawn again": (lambda: KernelRegressor(Holed(1.0), batch_size=8, cache_bytes=0, seed=1), YS, "Holed.*frequencies"),
    "matrix": (lambda: KernelRegressor(Boundless(1.0), precondition=False, seed=1), YS, "Boundless.*matrix"),
    "growing bandwidth": (
        lambda: KernelRegressor(Boundless(), step=Fixed(), seed=1),
        YS,
        "Boundless.*median_bandwidth",
    ),
    "adaptive bandwidth": (lambda: AdaptiveKernelRegressor(Boundless(), seed=1), YS, "Boundless.*median_bandwidth"),
    "loss": (lambda: KernelRegressor(loss=Steep(), seed=1), YS, "Steep.*gradient.* for y_true .* and y_pred "),
    "two sides": (lambda: KernelClassifier(loss=SteepSides(), seed=1), LABELS, "SteepSides gave inf .*gradient"),
    "classes": (lambda: KernelClassifier(loss=SteepClasses(), seed=1), LABELS, "SteepClasses gave nan .*gradient"),
    "policy": (lambda: KernelRegressor(growth=Adrift(), seed=1), YS, "Adrift gave a step that is not finite .*choose"),
    "step": (lambda: KernelRegressor(step=Lost(), seed=1), YS, "Lost gave nan .*get"),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_told_at_the_record_whatever_the_call(case):
    make, targets, message = CASES[case]
    one = make()

    def learn():
        for x, y in zip(XS, targets, strict=True):
            one.learn_one(x, y)

    calls = [learn, lambda: make().advance(XS, targets)]
    calls.append(lambda: make().learn_many(np.array([list(x.values()) for x in XS]), targets))
    for call in calls:
        with np.errstate(divide="ignore"), pytest.raises(NotFiniteError, match=message) as error:
            call()
        assert "\n" not in str(error.value)
    assert one.n_records < 250


@pytest.mark.parametrize("name", ["loss", "two sides"])
def test_what_a_broken_loss_leaves_of_a_model_is_finite_and_can_be_kept(name):
    make, targets, _ = CASES[name]
    model, n_told = make(), 0
    for x, y in zip(XS, targets, strict=True):
        assert math.isfinite(float(model.predict_one(x)))
        try:
            model.learn_one(x, y)
        except NotFiniteError:
            n_told += 1
    assert n_told > 1
    again = model.clone(include_attributes=True)
    assert again.state_digest() == model.state_digest()


def test_a_value_of_a_loss_that_is_not_finite_is_warned_of_and_in_the_result():
    model = KernelRegressor(loss=Steep("value"), seed=1)
    with pytest.warns(
        RuntimeWarning, match="the loss Steep gave a value that is not finite in its method `__call__`"
    ) as told:
        losses = model.advance(XS, YS).losses
    assert np.isnan(losses).any()
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(model.advance(XS[:2], [None, None]).losses).all()  # no target is no loss
