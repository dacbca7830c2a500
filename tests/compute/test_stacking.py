"""Stacks of experts, against their twins, and against what least squares and Newton's method find on all records."""

import numpy as np
import pytest

from streamkernel.compute import experts as kernels
from streamkernel.compute.experts import Stacking
from tests import naive
from tests.compute import passes

N, RECORDS = 4, 60


def _stacks(rng, n=N):
    """Two stacks that have learned something."""
    stacks = Stacking(*passes.stacks_of(n), passes.STACK_DRIFTS, passes.STACK_RIDGE)
    for x in rng.normal(size=(20, n)):
        kernels.learn_numbers(stacks, x, float(rng.normal()), 1.0, np.empty(n + 1))
    return stacks


def _copied(stacks):
    return stacks._replace(P=stacks.P.copy(), W=stacks.W.copy())


def _assert_are(stacks, twins):
    for s, (P, W) in enumerate(twins):
        np.testing.assert_allclose(np.tril(stacks.P[s]), np.tril(P), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(stacks.W[s], W, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("unit", [0.7, 1e-3])  # the second clips
def test_stacks_of_numbers(unit):
    rng = np.random.default_rng(0)
    stacks, predictions, mixed, x = _stacks(rng), rng.normal(size=N), 0.3, np.empty(N)
    kernels.beside(predictions, mixed, unit, x)
    np.testing.assert_allclose(x, naive.beside(predictions, mixed, unit), rtol=1e-12)
    out = np.empty(2)
    kernels.stack_numbers(stacks, x, mixed, unit, out)
    np.testing.assert_allclose(out, naive.stack_numbers(stacks, x, mixed, unit), rtol=1e-12)
    assert np.abs(out - mixed).max() <= kernels.FURTHEST * unit
    for error, weight in ((0.4, 0.6), (1e9, 3.0), (-1e9, 1.0)):
        before = _copied(stacks)
        kernels.learn_numbers(stacks, x, error, weight, np.empty(N + 1))
        _assert_are(stacks, naive.learn_numbers(before, x, error, weight))


@pytest.mark.parametrize("K", [1, 2, 7])
def test_stacks_of_labels(K):
    rng = np.random.default_rng(K)
    stacks, p = _stacks(rng), rng.dirichlet(np.full(K, 0.3), N)
    mixed, ratios = p.mean(axis=0), np.empty((N + 1, K))
    kernels.log_ratios(p, mixed, 0.001, ratios)
    np.testing.assert_allclose(ratios, naive.log_ratios(p, mixed, 0.001), rtol=1e-9, atol=1e-12)
    out = np.empty((2, K))
    kernels.stack_labels(stacks, ratios, out)
    np.testing.assert_allclose(out, naive.stack_labels(stacks, ratios), rtol=1e-9)
    np.testing.assert_allclose(out.sum(axis=1), 1, rtol=1e-12)
    for label in range(K):
        before = _copied(stacks)
        kernels.learn_labels(stacks, ratios, out, label, 0.6, np.empty(N), np.empty(N + 1))
        _assert_are(stacks, naive.learn_labels(before, ratios, out, label, 0.6))


def test_what_does_not_drift_is_ridge_regression_on_all_records():
    rng = np.random.default_rng(3)
    stacks = Stacking(*passes.stacks_of(N), np.zeros(2), passes.STACK_RIDGE)
    X, w = rng.uniform(-1, 1, size=(RECORDS, N)), rng.uniform(0.2, 3, RECORDS)
    y = X @ [0.5, -0.3, 0.2, 0.1] + 0.1 * rng.normal(size=RECORDS)
    for x, error, weight in zip(X, y, w, strict=True):
        kernels.learn_numbers(stacks, x, error, weight, np.empty(N + 1))
    exact = np.linalg.solve((X.T * w) @ X + passes.STACK_RIDGE * np.eye(N), (X.T * w) @ y)
    np.testing.assert_allclose(stacks.W[:, 0], [exact, exact], rtol=1e-9)
