"""Recursive least squares and Newton steps on half a matrix, against the twins that invert whole ones."""

import numpy as np
import pytest

from streamkernel.compute import recursive as kernels
from tests import naive

SIZES = [1, 2, 3, 4, 7, 8, 17, 22]


def _positive(rng, D):
    """A covariance, its upper triangle nonsense: nobody may read it."""
    factor = rng.normal(size=(D, D + 3))
    P = factor @ factor.T / D
    P[np.triu_indices(D, 1)] = np.nan
    return P


def _assert_lower(P, whole, tolerance=1e-10):
    assert np.allclose(np.tril(P), np.tril(whole), atol=tolerance, rtol=tolerance)
    above = np.triu_indices(len(P), 1)
    assert np.isnan(P[above]).all()


@pytest.mark.parametrize("n", [0, 1, 5, 64])
def test_four_rows(n):
    rng = np.random.default_rng(n)
    rows, factors, x, v = rng.normal(size=(4, n)), rng.normal(size=4), rng.normal(size=n + 3), rng.normal(size=n + 3)
    totals, expected = naive._four_rows(*rows, *factors, x, v)
    assert np.allclose(kernels._four_rows(*rows, *factors, x, v), totals, atol=1e-12)
    assert np.allclose(v, expected, atol=1e-13)


def test_subtract():
    row, v = np.random.default_rng(0).normal(size=(2, 9))
    row = row[:5].copy()
    expected = naive._subtract(row, -1.3, v)
    kernels._subtract(row, -1.3, v)
    assert np.allclose(row, expected, atol=1e-14)


@pytest.mark.parametrize("n", [0, 1, 7, 64, 267])
def test_dot(n):
    a, b = np.random.default_rng(n).normal(size=(2, n))
    assert kernels.dot(a, b) == pytest.approx(naive.dot(a, b), abs=1e-12)


@pytest.mark.parametrize("D", SIZES)
def test_symmetric_product(D):
    rng = np.random.default_rng(D)
    P, x, v = _positive(rng, D), rng.normal(size=D), np.full(D, np.nan)
    kernels.symmetric_product(P, x, v)
    assert np.allclose(v, naive.symmetric_product(np.tril(P), x), atol=1e-12)


@pytest.mark.parametrize("D", SIZES)
def test_downdate(D):
    rng = np.random.default_rng(D)
    P, v = _positive(rng, D), rng.normal(size=D)
    expected = naive.downdate(np.tril(P), v, 0.3)
    kernels.downdate(P, v, 0.3)
    _assert_lower(P, expected, 1e-13)


@pytest.mark.parametrize("D", SIZES)
@pytest.mark.parametrize("K", [1, 2, 12])
@pytest.mark.parametrize(("weight", "drift", "largest"), [(1.0, 0.0, 1e9), (2.5, 0.1, 1e9), (0.01, 0.5, 1.2)])
def test_learn_least_squares(D, K, weight, drift, largest):
    rng = np.random.default_rng(100 * D + K)
    P, W, v = _positive(rng, D), rng.normal(size=(K, D)), np.empty(D)
    for _ in range(5):
        phi, errors = rng.normal(size=D), rng.normal(size=K)
        expected_P, expected_W = naive.learn_least_squares(np.tril(P), W, phi, errors, weight, drift, largest)
        kernels.learn_least_squares(P, W, phi, errors, weight, drift, largest, v)
        _assert_lower(P, expected_P)
        assert np.allclose(W, expected_W, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("D", SIZES)
@pytest.mark.parametrize("K", [1, 2, 12])
@pytest.mark.parametrize(("weight", "forgetting", "rho"), [(1.0, 1.0, 0.1), (3.0, 0.99, 0.1), (0.2, 0.5, 10.0)])
def test_learn_newton(D, K, weight, forgetting, rho):
    rng = np.random.default_rng(100 * D + K)
    P, W, v = _positive(rng, D), rng.normal(size=(K, D)), np.empty(D)
    for _ in range(5):
        phi, p, label = rng.normal(size=D), rng.dirichlet(np.ones(K)), int(rng.integers(K))
        expected_P, expected_W = naive.learn_newton(np.tril(P), W, phi, p, label, weight, forgetting, rho)
        kernels.learn_newton(P, W, phi, p, label, weight, forgetting, rho, v)
        _assert_lower(P, expected_P)
        assert np.allclose(W, expected_W, atol=1e-10, rtol=1e-10)


def test_a_sure_newton_expert_still_learns():
    """The curvature of a distribution on one class is 0; the floor of .02 keeps P falling."""
    P, W, v = np.eye(1) / 0.1, np.zeros((2, 1)), np.empty(1)
    kernels.learn_newton(P, W, np.ones(1), np.array([1.0, 0.0]), 0, 1.0, 1.0, 0.1, v)
    assert W.tolist() == [[0.0], [0.0]]
    assert P[0, 0] == pytest.approx(1 / (0.1 + 0.02))
