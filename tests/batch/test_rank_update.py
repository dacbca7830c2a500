"""Sums over records at once against the same records one after the other, and against inverses of whole matrices."""

import numpy as np
import pytest

from streamkernel.batch.sums import learn_one_sum, learn_sums
from tests import naive

RIDGE = 0.1


def _records(n, D, K=2, seed=0, size=1.0):
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, D)) * size
    Phi[:, D // 2] = 1.0
    return Phi, rng.normal(size=(n, K)), rng.uniform(0.1, 3.0, n)


def _sums(Phi, Y, weights, W):
    gram = np.triu((Phi.T * weights) @ Phi)
    return gram, ((Y - Phi @ W.T).T * weights) @ Phi


def _begun(D, K=2, ridge=RIDGE):
    return np.eye(D) / ridge, np.zeros((K, D))


@pytest.mark.parametrize(("D", "sizes"), [(1, (1, 3)), (5, (4, 9, 2)), (40, (7, 150, 30, 2))])
def test_batches_are_ridge_regression_on_all_records(D, sizes):
    Phi, Y, weights = _records(sum(sizes), D)
    P, W = _begun(D)
    for part in np.split(np.arange(len(Phi)), np.cumsum(sizes)[:-1]):
        learn_sums(P, W, *_sums(Phi[part], Y[part], weights[part], W), 0.0, 1 / RIDGE)
    A = (Phi.T * weights) @ Phi + RIDGE * np.eye(D)
    np.testing.assert_allclose(naive.symmetric(P), np.linalg.inv(A), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(W, np.linalg.solve(A, (Phi.T * weights) @ Y).T, rtol=1e-8, atol=1e-12)
    assert not np.triu(P, 1).any()


def test_the_diagonal_drifts_and_stays_below_its_bound():
    D = 6
    Phi, Y, weights = _records(50, D)
    Phi[:, 0] = 0.0  # nothing is known of its coefficient
    P, W = _begun(D)
    learn_sums(P, W, *_sums(Phi, Y, weights, W), 0.5, 1 / RIDGE)
    expected = np.linalg.inv((Phi.T * weights) @ Phi + RIDGE * np.eye(D))
    expected[np.diag_indices(D)] = np.minimum(np.diag(expected) + 0.5, 1 / RIDGE)
    np.testing.assert_allclose(naive.symmetric(P), expected, rtol=1e-9, atol=1e-12)
    assert P[0, 0] == 1 / RIDGE


# Sums of 1e8 leave of a matrix that begins at 1 what float64 has beside them.
@pytest.mark.parametrize(("weight", "tolerance"), [(1.0, 1e-9), (0.3, 1e-9), (1e-300, 1e-9), (1e6, 1e-6)])
@pytest.mark.parametrize("constant", [0, 4, 8])
def test_one_record_by_its_sums(weight, tolerance, constant):
    rng = np.random.default_rng(2)
    phi, errors = rng.normal(size=9), rng.normal(size=2)
    phi[constant] = 1.0
    P, W = _begun(9)
    other_P, other_W = P.copy(), W.copy()
    gram, cross = np.triu(weight * np.outer(phi, phi)), weight * np.outer(errors, phi)
    learn_one_sum(P, W, gram, cross, constant, 0.01, 1 / RIDGE)
    learn_sums(other_P, other_W, gram, cross, 0.01, 1 / RIDGE)
    np.testing.assert_allclose(np.tril(P), np.tril(other_P), rtol=tolerance, atol=1e-12)
    np.testing.assert_allclose(W, other_W, rtol=tolerance, atol=1e-12)


@pytest.mark.parametrize("size", [1e3, 1e6])
@pytest.mark.parametrize("ridge", [1e-9, 1e-3])
def test_columns_that_are_copies_of_each_other_leave_all_finite(size, ridge):
    """Sums of 1e12 beside a ridge of 1e-9 are more than float64 tells apart: what is below the rounding is left out."""
    rng = np.random.default_rng(0)
    P, W = _begun(8, ridge=ridge)
    worst = []
    for _ in range(30):
        Phi = np.repeat(rng.normal(size=(20, 4)), 2, axis=1) * size
        Y = Phi[:, ::4] / size
        worst.append(np.abs(Y - Phi @ W.T).max())
        learn_sums(P, W, *_sums(Phi, Y, np.full(20, 1e6), W), 0.0, 1 / ridge)
        assert np.isfinite(P).all()
        assert np.isfinite(W).all()
        assert (np.diag(P) >= 0).all()
    assert max(worst[5:]) < 1e-3
