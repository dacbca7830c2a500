"""Each exact kernel against its formula, pair by pair in plain Python."""

import math

import numpy as np
import pytest
from scipy import special

from streamkernel.kernels import Gaussian
from tests.kernels.cases import CASES


def _matern(nu, length):
    def k(x, y):
        s = math.sqrt(2 * nu) * math.dist(x, y) / length
        return 2 ** (1 - nu) / math.gamma(nu) * s**nu * special.kv(nu, s) if s else 1.0

    return k


def _skewed(of_one, c):
    return lambda x, y: math.prod(of_one(a + c, b + c) for a, b in zip(x, y, strict=True))


def _added(of_one):
    return lambda x, y: sum(of_one(a, b) for a, b in zip(x, y, strict=True))


def _dot(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True))


def _jensen_shannon(a, b):
    return sum(one / 2 * math.log2((a + b) / one) for one in (a, b) if one)


def _arc_cosine(n):
    def k(x, y):
        lengths = math.hypot(*x) * math.hypot(*y)
        angle = math.acos(min(max(_dot(x, y) / lengths, -1.0), 1.0))
        sine, cosine = math.sin(angle), math.cos(angle)
        J = (
            math.pi - angle,
            sine + (math.pi - angle) * cosine,
            3 * sine * cosine + (math.pi - angle) * (1 + 2 * cosine**2),
        )[n]
        return lengths**n * J / math.pi

    return k


def _gaussian(s):
    return lambda x, y: math.exp(-(math.dist(x, y) ** 2) / (2 * s * s))


def _laplacian(s):
    return lambda x, y: math.exp(-_added(lambda a, b: abs(a - b))(x, y) / s)


def _cauchy(s):
    return lambda x, y: math.prod(1 / (1 + ((a - b) / s) ** 2) for a, b in zip(x, y, strict=True))


FORMULAS = {
    "Gaussian": _gaussian(2.0),
    "Laplacian": _laplacian(4.0),
    "Cauchy": _cauchy(1.5),
    "Matern 0.3": _matern(0.3, 2.0),
    "Matern 0.5": _matern(0.5, 2.0),
    "Matern 1.5": _matern(1.5, 2.0),
    "Matern 3.7": _matern(3.7, 2.0),
    "linear": _dot,
    "DotProduct": lambda x, y: 1 + _dot(x, y) + 0.5 * _dot(x, y) ** 3,
    "Polynomial 1": _dot,
    "Polynomial 3": lambda x, y: (_dot(x, y) + 0.5) ** 3,
    "Hellinger": _added(lambda a, b: math.sqrt(a * b)),
    "ChiSquared": _added(lambda a, b: 2 * a * b / (a + b) if a + b else 0.0),
    "Intersection": _added(min),
    "JensenShannon": _added(_jensen_shannon),
    "SkewedChiSquared": _skewed(lambda a, b: 2 * math.sqrt(a) * math.sqrt(b) / (a + b), 0.5),
    "SkewedIntersection": _skewed(lambda a, b: math.exp(-abs(math.log(a) - math.log(b)) / 2), 2.0),
    "ExponentialSemigroup": lambda x, y: math.exp(-0.4 * _added(lambda a, b: math.sqrt(a + b))(x, y)),
    "ReciprocalSemigroup": lambda x, y: math.prod(3 / (a + b + 3) for a, b in zip(x, y, strict=True)),
    "ArcCosine 0": _arc_cosine(0),
    "ArcCosine 1": _arc_cosine(1),
    "ArcCosine 2": _arc_cosine(2),
    "sum": lambda x, y: _gaussian(2.0)(x, y) + 0.3 * _dot(x, y),
    "Fourier product": lambda x, y: _gaussian(2.0)(x, y) * _laplacian(6.0)(x, y),
    "product": lambda x, y: (_dot(x, y) + 1) ** 2 * _added(min)(x, y),
    "multiple": lambda x, y: 2.5 * _cauchy(2.0)(x, y),
    "mixture": lambda x, y: 0.75 * _gaussian(2.0)(x, y) + 0.25 * _laplacian(6.0)(x, y) * _cauchy(3.0)(x, y),
    "all of them": lambda x, y: (
        (_gaussian(2.0)(x, y) + _arc_cosine(0)(x, y))
        * 0.5
        * _skewed(lambda a, b: 2 * math.sqrt(a * b) / (a + b), 1.0)(x, y)
        + (_dot(x, y) + 1) ** 2
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_matrix_is_the_formula(name):
    kernel, X = CASES[name]
    Y = X[::-1][:5]
    plain = [[FORMULAS[name](x, y) for y in Y.tolist()] for x in X.tolist()]
    # An angle near 0 keeps half the digits of its cosine.
    assert np.allclose(kernel.matrix(X, Y, kernel.bandwidth), plain, rtol=1e-7, atol=1e-12)


def test_median_bandwidth():
    Z = np.random.default_rng(1).normal(size=(30, 4))
    distances = [math.dist(a, b) for i, a in enumerate(Z) for b in Z[:i]]
    assert Gaussian().median_bandwidth(Z) == pytest.approx(0.7 * np.median(distances), rel=1e-12)
    assert Gaussian().median_bandwidth(np.ones((5, 3))) == 0.7
    assert Gaussian().median_bandwidth(np.ones((1, 3))) == 0.7
    assert Gaussian().median_bandwidth(np.zeros((5, 0))) == 0.7
