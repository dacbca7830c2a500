"""Arguments at and beyond the ends of their ranges: refused in one short sentence, or all stays finite."""

import math

import numpy as np
import pytest

from streamkernel import GaussianProcessRegressor, KernelDensityRatio, KernelNoveltyDetector, KernelRegressor
from streamkernel.finite import NotFiniteError
from streamkernel.gaussian_process import VarianceOperator
from streamkernel.kernels import (
    Cauchy,
    DotProduct,
    ExponentialSemigroup,
    Gaussian,
    Kernel,
    Laplacian,
    Matern,
    Polynomial,
    ReciprocalSemigroup,
    Scaled,
    SkewedChiSquared,
    SkewedIntersection,
)

ONE_NUMBER = {
    "bandwidth": [Gaussian, Laplacian, Cauchy, lambda s: Matern(bandwidth=s), ReciprocalSemigroup],
    "nu": [Matern, KernelNoveltyDetector],
    "c": [SkewedChiSquared, SkewedIntersection, lambda c: Polynomial(2, c)],
    "beta": [ExponentialSemigroup],
    "degree": [Polynomial],
    "coefficients": [lambda a: DotProduct([a])],
    "factor": [lambda c: c * Gaussian(), lambda c: Scaled(Gaussian(), c)],
    "clip": [lambda c: KernelDensityRatio(clip=c)],
    "window": [lambda n: KernelDensityRatio(window=n)],
    "regularization": [lambda nu: KernelRegressor(regularization=nu)],
    "noise": [lambda noise: GaussianProcessRegressor(noise=noise)],
    "drift_rate": [lambda rate: GaussianProcessRegressor(drift_rate=rate)],
    "n_features": [lambda n: GaussianProcessRegressor(n_features=n)],
}
CASES = [(name, make) for name, makers in ONE_NUMBER.items() for make in makers]


def test_a_number_without_end_is_refused_in_a_short_sentence(subtests):
    large = {"1e400": 10**400, "1e5000": 10**5000, "-1e5000": -(10**5000), "inf": math.inf, "nan": math.nan}
    for size, value in large.items():
        for number, (name, make) in enumerate(CASES):
            with subtests.test(value=size, name=name, number=number):
                with pytest.raises(ValueError, match=name) as refused:
                    make(value)
                assert len(str(refused.value)) < (600 if name == "noise" else 250)  # which shows up to 4,300 digits


@pytest.mark.parametrize("wrong", [True, "2", None, [1.0]])
def test_what_is_neither_kernel_nor_number_is_refused_on_either_side(wrong):
    for add in (lambda k, o: k + o, lambda k, o: o + k):
        with pytest.raises(TypeError, match=r"added to .* got "):
            add(Gaussian(), wrong)
    for multiply in (lambda k, o: k * o, lambda k, o: o * k):
        with pytest.raises(TypeError, match=r"multiplied by .* got "):
            multiply(Gaussian(), wrong)
    with pytest.raises(TypeError, match=r"divided by .* got "):
        Gaussian() / wrong


@pytest.mark.parametrize(
    "make",
    [
        lambda: SkewedChiSquared(1e-308),
        lambda: SkewedIntersection(9e-16),
        lambda: DotProduct((0, 1e308, 1e308)),
        lambda: Polynomial(2, 1e19),
        lambda: 1e-31 * Gaussian(),
        lambda: 1e30 * (2.0 * Gaussian()),
        lambda: 1e-30 * (Laplacian() + 0.5 * Gaussian()),
        lambda: (1e20 * Gaussian()) * (1e20 * DotProduct()),
        lambda: (1e-20 * Gaussian()) * (1e-20 * Gaussian()),
    ],
)
def test_what_overflows_or_vanishes_is_refused(make):
    with pytest.raises(ValueError, match=r"^(c|coefficients|factor) must be "):
        make()


@pytest.mark.parametrize(
    "kernel",
    [
        SkewedChiSquared(1e-15),
        SkewedIntersection(1e-15),
        1e30 * Gaussian(1.0),
        DotProduct((0, 1e18, 1e18)),
        Polynomial(2, 1e18),
        DotProduct() * DotProduct() * DotProduct(),
        1e30 * DotProduct() * Polynomial(),
    ],
    ids=repr,
)
def test_the_ends_of_the_ranges_are_finite(kernel):
    rng = np.random.default_rng(1)
    xs = [{"a": 10.0 ** rng.uniform(-30, 30)} for _ in range(80)]
    for kind in (KernelRegressor, KernelNoveltyDetector):
        model = kind(kernel=kernel, precondition=False, batch_size=8, block_size=8, seed=1)
        assert np.isfinite(model.advance(xs, [1.0] * len(xs)).predictions).all()


SIZES = [
    *((kind, name) for kind in (KernelRegressor, KernelDensityRatio) for name in ("batch_size", "block_size")),
    *((kind, "blocks_per_step") for kind in (KernelRegressor, KernelDensityRatio)),
    *((KernelNoveltyDetector, name) for name in ("batch_size", "block_size")),
    (GaussianProcessRegressor, "n_features"),
    *((VarianceOperator, name) for name in ("batch_size", "block_size")),
]


def test_sizes_without_end_are_refused(subtests):
    for kind, name in SIZES:
        for value in [10**8, 10**30, 10**5000]:
            rest = {"max_features": None} if kind is not GaussianProcessRegressor else {}
            message = f"^{name} must be a whole number of at most [0-9,]+, got "
            with subtests.test(kind=kind, name=name), pytest.raises(ValueError, match=message):
                kind(**{name: value}, **rest)


class _TooLarge(Kernel):
    """A kernel whose features have no finite squares."""

    def matrix(self, X, Y, bandwidth):  # noqa: ARG002 - the interface's
        return np.ones((len(X), len(Y)))

    def features(self, X, words, keys, bandwidth, out):  # noqa: ARG002 - the interface's
        out[:] = 1e200


def test_features_too_large_for_a_preconditioned_step_are_told_with_the_kernel_and_a_way_on():
    model = KernelRegressor(_TooLarge(), dtype="float64", precondition=True, batch_size=2, seed=1)
    with np.errstate(all="ignore"), pytest.raises(NotFiniteError, match=r"the kernel _TooLarge .*: use smaller"):
        model.advance([{"a": 1.0}, {"a": 2.0}], [1.0, 2.0])
