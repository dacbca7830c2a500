"""Every kernel with records from its domain."""

from typing import NamedTuple

import numpy as np

from streamkernel.kernels import (
    ArcCosine,
    Cauchy,
    ChiSquared,
    DotProduct,
    ExponentialSemigroup,
    Gaussian,
    Hellinger,
    Intersection,
    JensenShannon,
    Kernel,
    Laplacian,
    Matern,
    Polynomial,
    ReciprocalSemigroup,
    SkewedChiSquared,
    SkewedIntersection,
)
from streamkernel.kernels.spectral import SpectralMixture


class Case(NamedTuple):
    kernel: Kernel
    X: np.ndarray


def _numbers(seed, n=16, d=4, size=1.0):
    return size * np.random.default_rng(seed).normal(size=(n, d))


def _counts(seed, n=16, d=4):
    """Numbers from 0 up, of which some are 0."""
    rng = np.random.default_rng(seed)
    return rng.gamma(1.0, size=(n, d)) * (rng.random((n, d)) < 0.8)


CASES = {
    "Gaussian": Case(Gaussian(2.0), _numbers(1)),
    "Laplacian": Case(Laplacian(4.0), _numbers(2)),
    "Cauchy": Case(Cauchy(1.5), _numbers(3)),
    "Matern 0.3": Case(Matern(0.3, 2.0), _numbers(4)),
    "Matern 0.5": Case(Matern(0.5, 2.0), _numbers(5)),
    "Matern 1.5": Case(Matern(1.5, 2.0), _numbers(6)),
    "Matern 3.7": Case(Matern(3.7, 2.0), _numbers(7)),
    "linear": Case(DotProduct(), _numbers(8, size=0.5)),
    "DotProduct": Case(DotProduct([1.0, 1.0, 0.0, 0.5]), _numbers(9, size=0.4)),
    "Polynomial 1": Case(Polynomial(1, 0.0), _numbers(10, size=0.5)),
    "Polynomial 3": Case(Polynomial(3, 0.5), _numbers(11, size=0.4)),
    "Hellinger": Case(Hellinger(), _counts(12)),
    "ChiSquared": Case(ChiSquared(), _counts(13)),
    "Intersection": Case(Intersection(), _counts(14)),
    "JensenShannon": Case(JensenShannon(), _counts(15)),
    "SkewedChiSquared": Case(SkewedChiSquared(0.5), _counts(16) - 0.2),
    "SkewedIntersection": Case(SkewedIntersection(2.0), _counts(17) - 0.2),
    "ExponentialSemigroup": Case(ExponentialSemigroup(0.4), _counts(18)),
    "ReciprocalSemigroup": Case(ReciprocalSemigroup(3.0), _counts(19)),
    "ArcCosine 0": Case(ArcCosine(0), _numbers(20)),
    "ArcCosine 1": Case(ArcCosine(1), _numbers(21)),
    "ArcCosine 2": Case(ArcCosine(2), _numbers(22)),
    "sum": Case(Gaussian(2.0) + 0.3 * DotProduct(), _numbers(23)),
    "Fourier product": Case(Gaussian(2.0) * Laplacian(6.0), _numbers(24)),
    "product": Case(Polynomial(2, 1.0) * Intersection(), 0.4 * _counts(25)),
    "multiple": Case(2.5 * Cauchy(2.0), _numbers(26)),
    "mixture": Case(SpectralMixture(3 * Gaussian(2.0) + Laplacian(6.0) * Cauchy(3.0)), _numbers(28)),
    "all of them": Case((Gaussian(2.0) + ArcCosine(0)) * (0.5 * SkewedChiSquared()) + Polynomial(2), 0.5 * _counts(27)),
}

#: One of each way of making features: others draw other numbers, and the rest is the same code.
ONE_OF_EACH = ["Cauchy", "Matern 1.5", "DotProduct", "Polynomial 3", "Hellinger", "ChiSquared", "SkewedChiSquared"]
ONE_OF_EACH += ["ExponentialSemigroup", "ArcCosine 1", "Fourier product", "mixture", "all of them"]
