"""The exact kernel, its random features, and the bandwidth taken from data."""

import math

import numpy as np
import pytest

from streamkernel.expansion.expansion import Expansion
from streamkernel.kernels import Gaussian

ROWS = 40


def _plain_kernel(X, Y, bandwidth):
    return np.array([[math.exp(-sum((x - y) ** 2) / (2 * bandwidth**2)) for y in Y] for x in X])


def test_matrix():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    assert np.allclose(Gaussian().matrix(X, Y, 0.8), _plain_kernel(X, Y, 0.8), atol=1e-14)
    assert np.allclose(np.diag(Gaussian(0.3).matrix(X, X, 0.3)), 1, atol=1e-12)
    assert (Gaussian().matrix(1e3 + X, 1e3 + X, 1e-3) <= 1).all()


def _relative_error(X, K, m, seed, bandwidth, dtype):
    """|Phi Phi^T - K| / |K| with m features."""
    F = min(m, 4096)
    expansion = Expansion(Gaussian(bandwidth), F, np.dtype(dtype), 0, seed)
    keys = np.random.default_rng(seed + 999).integers(0, 2**64, X.shape[1], dtype=np.uint64)
    estimate = np.zeros_like(K)
    for block in range(m // F):
        phi = expansion.features(block, X.astype(dtype), keys).astype(np.float64)
        estimate += phi @ phi.T
    return np.linalg.norm(estimate / (m // F) - K) / np.linalg.norm(K)


def _expected_error(X, K, bandwidth):
    """Of one feature, by Var cos(w.d) = (1 + k(2 d)) / 2 - k(d)^2."""
    variance = (1 + Gaussian().matrix(2 * X, 2 * X, bandwidth)) / 2 - K**2
    return math.sqrt(variance.sum()) / np.linalg.norm(K)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("d", "bandwidth"), [(1, 0.7), (2, 0.2), (5, 2.0), (50, 7.0)])
def test_error_of_the_features_falls_as_one_over_the_root_of_their_number(d, bandwidth, dtype):
    X = np.random.default_rng(d).normal(size=(ROWS, d))
    K = Gaussian().matrix(X, X, bandwidth)
    sizes = [64, 256, 1024, 4096]
    errors = [
        math.sqrt(np.mean([_relative_error(X, K, m, seed, bandwidth, dtype) ** 2 for seed in range(10)])) for m in sizes
    ]
    # What independent draws from the exact law give, and no more: a bias would show at the larger sizes.
    expected = _expected_error(X, K, bandwidth)
    assert [error * math.sqrt(m) for error, m in zip(errors, sizes, strict=True)] == pytest.approx(
        [expected] * len(sizes), rel=0.3
    )
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.1)


def test_median_bandwidth():
    Z = np.random.default_rng(1).normal(size=(30, 4))
    distances = [math.dist(a, b) for i, a in enumerate(Z) for b in Z[:i]]
    assert Gaussian().median_bandwidth(Z) == pytest.approx(0.7 * np.median(distances), rel=1e-12)
    assert Gaussian().median_bandwidth(np.ones((5, 3))) == 0.7
    assert Gaussian().median_bandwidth(np.ones((1, 3))) == 0.7
    assert Gaussian().median_bandwidth(np.zeros((5, 0))) == 0.7


@pytest.mark.parametrize("bandwidth", [0, -1.0, math.nan, math.inf, "1", True])
def test_a_bandwidth_is_a_positive_number(bandwidth):
    with pytest.raises(ValueError, match="bandwidth must be a positive number or None, got"):
        Gaussian(bandwidth)
