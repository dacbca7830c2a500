"""The least squares head: ridge regression, record by record."""

import numpy as np
import pytest

from streamkernel.adaptive.features import AdaptiveFeatures
from streamkernel.adaptive.memory import Memory
from streamkernel.adaptive.target_experts import NumberExperts
from streamkernel.compute.recursive import learn_least_squares
from streamkernel.kernels import Gaussian
from tests import naive
from tests.adaptive.experts import learn_columns

RIDGE = 0.1
DRIFTS = (0.0, 1e-3, 3e-2)
#: Trees of an ensemble, and their window.
TREES = 3, 40


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


def _values(Phi):
    """Inputs for memory and trees: some of the columns."""
    values = np.ascontiguousarray(Phi[:, -2:])
    return values.astype(np.float32), values


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


def _assert_sound(P, largest=1 / RIDGE):
    assert np.diag(P).max() <= largest
    assert np.linalg.eigvalsh(naive.symmetric(P))[0] > 0


def _stay_sound(n, d, F, copies, drifts):
    Phi = _records(min(n, 20_000), d, F, copies=copies)
    D = Phi.shape[1]
    experts = NumberExperts(RIDGE, drifts, *TREES, Memory(0, 40))
    experts.begin(D, d + copies, 1, 2)
    targets = np.random.default_rng(2).normal(size=len(Phi)) + Phi[:, 0] * 9
    for _ in range(n // len(Phi)):
        learn_columns(experts, Phi, *_values(Phi), targets, np.ones(len(Phi)))
        for P in [*experts.heads.settled_P(), *experts.linear_P]:
            _assert_sound(P)
    return Phi, experts


@pytest.mark.long
def test_p_is_the_inverse_after_a_million_records():
    n = 1_000_000
    Phi, experts = _stay_sound(n, 8, 32, 3, DRIFTS)
    exact = np.linalg.inv(n // len(Phi) * Phi.T @ Phi + RIDGE * np.eye(Phi.shape[1]))
    assert np.abs(naive.symmetric(experts.heads.settled_P()[0]) - exact).max() < 1e-8


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
