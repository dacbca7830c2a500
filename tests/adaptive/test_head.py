"""The least squares head: ridge regression, record by record."""

import numpy as np
import pytest

from streamkernel.adaptive.features import AdaptiveFeatures
from streamkernel.compute.recursive import learn_least_squares
from streamkernel.kernels import Gaussian
from tests import naive

RIDGE = 0.1


class _Head:
    def __init__(self, D, K, drift=0.0):
        self.P, self.W, self.drift = np.eye(D) / RIDGE, np.zeros((K, D)), drift

    def learn(self, phi, target, weight=1.0):
        errors = target - self.W @ phi
        learn_least_squares(self.P, self.W, phi, errors, weight, self.drift, 1 / RIDGE, np.empty(len(phi)))


def _records(n, d, F, seed=0, copies=0):
    """AdaptiveFeatures as the heads see them, some inputs twice."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    X = np.concatenate([X, X[:, :copies]], axis=1)
    columns = AdaptiveFeatures(Gaussian(), F, seed)
    columns.begin(d + copies)
    return columns.of(X, np.arange(1, d + copies + 1, dtype=np.uint64))


def _inverse(Phi, weights):
    return np.linalg.inv((Phi * weights[:, None]).T @ Phi + RIDGE * np.eye(Phi.shape[1]))


@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_without_drift_it_is_ridge_regression(K, weighted):
    Phi = _records(400, 4, 8)
    rng = np.random.default_rng(1)
    targets = np.sin(Phi[:, 1:4] @ rng.normal(size=(3, K)) * 9) + rng.normal(size=(400, K))
    weights = rng.uniform(0.1, 5, size=400) if weighted else np.ones(400)
    head = _Head(Phi.shape[1], K)
    for n in range(400):
        head.learn(Phi[n], targets[n], weights[n])
        if n + 1 in (1, 5, 50, 400):  # fewer records than columns, too
            done = slice(n + 1)
            exact = _inverse(Phi[done], weights[done])
            assert np.abs(naive.symmetric(head.P) - exact).max() < 1e-8
            solution = (exact @ (Phi[done] * weights[done, None]).T @ targets[done]).T
            assert np.abs(head.W - solution).max() < 1e-8


def test_a_drifting_head_follows_a_change_that_the_other_averages():
    rng = np.random.default_rng(4)
    Phi = rng.normal(size=(3_000, 4))
    truth = np.array([1.0, -1.0, 0.5, 0.0])
    still, drifting = _Head(4, 1), _Head(4, 1, 3e-2)
    for i, phi in enumerate(Phi):
        for head in (still, drifting):
            head.learn(phi, np.array([phi @ truth * (1 if i < 1_500 else -1)]))
    assert np.abs(drifting.W[0] + truth).max() < 0.01
    assert np.abs(still.W[0] + truth).max() > 0.5
