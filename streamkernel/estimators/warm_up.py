"""Compile the estimators' code in advance: for an image, or before the first record."""

import random
from collections.abc import Iterator

import numpy as np

from streamkernel.estimators.adaptive_classifier import AdaptiveKernelClassifier
from streamkernel.estimators.adaptive_regressor import AdaptiveKernelRegressor
from streamkernel.estimators.classifier import KernelClassifier
from streamkernel.estimators.gaussian_process import GaussianProcessRegressor
from streamkernel.estimators.multi_target_regressor import KernelMultiTargetRegressor
from streamkernel.estimators.regressor import KernelRegressor
from streamkernel.estimators.window_refit import WindowRefit
from streamkernel.gaussian_process import TestPointFunctions, VarianceOperator
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.kernels import (
    ArcCosine,
    Cauchy,
    ChiSquared,
    DotProduct,
    Gaussian,
    Hellinger,
    Kernel,
    Laplacian,
    Matern,
    Polynomial,
    ReciprocalSemigroup,
    SkewedChiSquared,
)
from streamkernel.window import DSPDC, S3GD, SVRG, Exact

Model = (
    AdaptiveKernelClassifier
    | AdaptiveKernelRegressor
    | GaussianProcessRegressor
    | KernelClassifier
    | KernelRegressor
    | WindowRefit
)

#: Records of a part of a stream: past the 200 that fix the bandwidth, the first trees and the first metric.
_RECORDS = 260
#: More than are looked at one by one: of these, random sums are taken.
_CLASSES = 40


def warm_up() -> None:
    """Compile the code of every kind of model, so that later processes only load it.

    Each model learns a generated stream. Code that is already compiled is only loaded.
    """
    for model in _models():
        _use(model)
    # Of several targets at once, only the targets are code of their own.
    KernelMultiTargetRegressor(seed=1).learn_one({"a": 1.0}, {"b": 1.0})


def _models() -> Iterator[Model]:
    yield AdaptiveKernelClassifier(seed=1)
    yield AdaptiveKernelRegressor(seed=1)
    # Kernels of all laws that quasi-random numbers are brought to.
    yield GaussianProcessRegressor(Gaussian() * Laplacian() + Cauchy(), n_features=8, seed=1)
    for variance in (VarianceOperator(block_size=4), TestPointFunctions([{"a": 1.0}])):
        yield GaussianProcessRegressor(variance=variance, n_features=8, seed=1)
    for estimator in (KernelClassifier, KernelRegressor):
        yield estimator(seed=1)
        for growth in (CDSG(), DSG(), UDSG()):
            yield estimator(growth=growth, seed=1)
        yield estimator(dtype="float64", seed=1)
        for dtype in ("float32", "float64"):
            yield estimator(precondition=False, dtype=dtype, seed=1)
        yield estimator(kernel=Gaussian(structured=True), seed=1)
    for dtype in ("float32", "float64"):  # more records than features: the other form of a preconditioned step
        yield KernelClassifier(block_size=8, batch_size=64, dtype=dtype, seed=1)
    yield KernelRegressor(kernel=_every_kernel(), seed=1)
    for solver in (DSPDC(max_passes=1), Exact(), S3GD(anchors=10, max_passes=1), SVRG(max_passes=1)):
        for window in (100, 250):  # fewer rows than columns, and more
            yield WindowRefit(KernelRegressor(max_features=64, seed=1), window, every=250, solver=solver)


def _every_kernel() -> Kernel:
    """A sum that draws what kernels of all families draw."""
    kernel: Kernel = Laplacian(1.0) * Matern(1.5, 1.0) + Gaussian(1.0) * Hellinger()
    for one in (DotProduct(), Polynomial(), ArcCosine(), ChiSquared(), SkewedChiSquared(), ReciprocalSemigroup()):
        kernel = kernel + one
    return kernel


def _use(model: Model) -> None:
    """Learn records of numbers, one by one and many at once; then strings, and inputs and classes that come late."""
    rng = random.Random(1)
    # From 0 up, as some kernels ask for.
    numbers: list[dict[str, float]] = [{name: abs(rng.gauss(0, 1)) for name in "abc"} for _ in range(_RECORDS)]
    ys = [float(i % _CLASSES) for i in range(_RECORDS)]
    for x, y in zip(numbers, ys, strict=True):
        model.predict_one(x)
        model.learn_one(x, y)
    model.advance(numbers, ys)
    strings = [{**x, "d": 1.0, "kind": rng.choice("xy")} for x in numbers]
    model.predict_one(strings[0])
    model.advance(strings, [-1.0, None, *ys[2:]], [0.5] * _RECORDS)
    X = np.array([list(x.values()) for x in numbers])
    model.learn_many(X, np.array(ys))
    for rows in (1, _RECORDS):
        model.predict_many(X[:rows])
    model.clone(include_attributes=True)
    if hasattr(model, "expert_weights"):
        _ = model.expert_weights
