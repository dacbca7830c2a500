"""The linear experts: softmax regression by Newton steps, and least squares, on the inputs themselves."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from streamkernel.adaptive.target_experts import LabelExperts, NumberExperts
from streamkernel.compute.recursive import learn_newton
from tests import naive
from tests.adaptive.experts import learn, make_experts

RIDGE = 0.1
DRIFTS = (0.0, 1e-3, 3e-2)
#: Trees of an ensemble, and their window.
TREES = 3, 40
BOTH = pytest.mark.parametrize("kind", [LabelExperts, NumberExperts])


class _Newton:
    def __init__(self, D, K, forgetting=1.0):
        self.P, self.W, self.forgetting = np.eye(D) / RIDGE, np.zeros((K, D)), forgetting

    def probabilities(self, phi):
        return naive.softmax_into(self.W @ phi, 1.0)

    def learn(self, phi, label, weight=1.0):
        p = self.probabilities(phi)
        learn_newton(self.P, self.W, phi, p, int(label), weight, self.forgetting, RIDGE, np.empty(len(phi)))
        return p[label]

    def loss(self, Phi, labels):
        return np.mean([-np.log(self.probabilities(phi)[y]) for phi, y in zip(Phi, labels, strict=True)])


def _classes(n, K, seed=0):
    """Classes drawn from a softmax, as logistic regression believes them to be."""
    rng = np.random.default_rng(seed)
    Phi = np.concatenate([np.ones((n, 1)), rng.normal(size=(n, 3))], axis=1)
    scores = Phi @ rng.normal(size=(4, K)) * 1.5
    return Phi, np.argmax(scores + rng.gumbel(size=(n, K)), axis=1)


@pytest.mark.parametrize("K", [2, 4])
def test_passes_approach_logistic_regression(K):
    Phi, labels = _classes(500, K)
    solution = LogisticRegression(C=1e6, fit_intercept=False, tol=1e-8, max_iter=1000).fit(Phi, labels)
    best = -np.log(solution.predict_proba(Phi)[np.arange(500), labels]).mean()
    expert = _Newton(4, K)
    losses = [expert.loss(Phi, labels)]
    assert losses[0] == pytest.approx(np.log(K))
    for _ in range(30):
        for phi, y in zip(Phi, labels, strict=True):
            expert.learn(phi, y)
        losses.append(expert.loss(Phi, labels))
    assert losses[0] > losses[1] > losses[5] > losses[30]
    gap = np.array(losses) - best
    assert gap[1] < 0.2 * gap[0]
    assert 0 < gap[30] < 0.2 * gap[1]


def test_the_linear_experts_of_numbers_are_ridge_regression_where_the_target_has_settled():
    rng = np.random.default_rng(5)
    Phi = np.concatenate([rng.normal(size=(4_000, 6)), np.ones((4_000, 1)), rng.normal(size=(4_000, 3))], axis=1)
    y = 100 + 10 * Phi[:, -3:] @ np.array([1.0, -2.0, 0.5])
    experts = make_experts(NumberExperts, RIDGE, DRIFTS, 0, 1)
    experts.begin(10, 3, 1, 3)
    learn(experts, Phi, Phi[:, -3:].copy(), y, np.ones(4_000))
    for W in experts.linear_W:
        predicted = experts.linear_moments[1] + np.sqrt(experts.linear_moments[2] / 4_000) * (Phi[:, -4:] @ W[0])
        assert np.abs(predicted - y).max() < 1.0


@BOTH
@pytest.mark.parametrize("n", [0, 3, 500])
def test_rescaled_inputs_change_nothing_that_was_said(kind, n):
    Phi, labels = _classes(max(n, 1), 2, seed=8)
    experts = make_experts(kind, RIDGE, DRIFTS, *TREES)
    experts.begin(4, 3, 2 if kind is LabelExperts else 1, 3)
    y = labels if kind is LabelExperts else Phi[:, 1] + labels
    learn(experts, Phi[:n], Phi[:n, 1:].copy(), y[:n], np.ones(n))
    before = experts.state()
    experts.rescale_inputs(0.25)
    rescaled = Phi * [1, 0.25, 0.25, 0.25]
    assert np.allclose(experts.linear_W @ rescaled.T, before["linear_W"] @ Phi.T, atol=1e-12)
    for P, earlier in zip(experts.linear_P, before["linear_P"], strict=True):
        assert np.linalg.eigvalsh(naive.symmetric(P))[0] > 0
        assert np.diag(P).max() <= max(1 / RIDGE, np.diag(earlier).max()) * (1 + 1e-12)
        if n == 500 and np.diag(earlier)[1:].max() < 0.25**2 / RIDGE:  # room: the same curvature in other units
            whole = naive.symmetric(earlier) / np.outer([1, 0.25, 0.25, 0.25], [1, 0.25, 0.25, 0.25])
            assert np.allclose(naive.symmetric(P), whole)
