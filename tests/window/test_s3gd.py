"""S3GD's approximations against brute force, and the ball around the minimum at which its steps end."""

import numpy as np
import pytest

from streamkernel.compute.semi_stochastic import full_gradient
from streamkernel.window import S3GD
from streamkernel.window.linear_model import LinearProblem
from streamkernel.window.losses import ElasticNet, WindowLoss
from streamkernel.window.s3gd import AnchorGraph, AnchorModel, choose_anchors
from tests import naive
from tests.window.stochastic_cases import KINDS, clusters


def _problem(loss, n=60, seed=1):
    X, y = clusters(n, seed=seed, labels=loss != "squared")
    weights = np.random.default_rng(seed).random(n) * 2
    kind, beta = KINDS[loss]
    return LinearProblem(X, y, weights, WindowLoss(kind, 1.0, loss != "squared", beta), ElasticNet(1e-3))


@pytest.mark.parametrize("loss", KINDS)
def test_approximate_gradients_are_those_of_the_definition(loss):
    """h'_i = sum_z weight_z psi'(w . z, y_i) x_i with the row's own label, and H' the mean of the rows'."""
    problem, w = _problem(loss), np.array([0.5, -1.0, 0.3, 2.0])
    graph = AnchorGraph(problem.X, 12, 4, 0.7, seed=3)
    derivatives, H = AnchorModel(graph, problem).gradient(w)
    anchors, expected = graph.anchors, []
    for x, y in zip(problem.X, problem.y, strict=True):
        squares = np.square(x - anchors).sum(axis=1) * 0.7**2
        near = np.argsort(squares)[:4]
        width = max(1e-4, np.sqrt(np.sqrt(squares[near].min())))
        shares = np.exp((squares[near].min() - squares[near]) / width**2)
        slopes = [naive.derivative(*KINDS[loss], anchors[z] @ w, y) for z in near]
        expected.append(shares @ slopes / shares.sum())
    assert np.allclose(derivatives, expected)
    assert np.allclose(H, (problem.weights * expected) @ problem.X / len(problem.X))


@pytest.mark.parametrize("loss", KINDS)
def test_where_every_row_is_an_anchor_gradients_are_exact(loss):
    problem, w = _problem(loss), np.array([0.5, -1.0, 0.3, 2.0])
    graph = AnchorGraph(problem.X, 60, 3, 1.0, seed=3)
    derivatives, H = AnchorModel(graph, problem).gradient(w)
    exact, gradient = naive.full_gradient(*KINDS[loss], problem.X, problem.y, problem.weights, w)
    assert np.allclose(problem.weights * derivatives, exact)
    assert np.allclose(H, gradient)


def test_anchors_are_different_rows_from_all_clusters():
    rng = np.random.default_rng(1)
    centers = 10 * rng.normal(size=(6, 3))
    which = rng.integers(6, size=500)
    X = centers[which] + 0.1 * rng.normal(size=(500, 3))
    chosen = choose_anchors(X, 25, seed=1)
    assert len(set(chosen.tolist())) == 25
    assert set(which[chosen]) == set(range(6))
    assert chosen.tolist() == choose_anchors(X, 25, seed=1).tolist()
    # Rows that are all one are different anchors nevertheless.
    assert len(set(choose_anchors(np.ones((50, 3)), 25, seed=1).tolist())) == 25


def test_it_switches_when_its_steps_gain_no_more():
    X, y = clusters(5000)
    model = S3GD(l2=1e-2, anchors=50, tol=1e-9, max_passes=100, seed=1).fit(X, y)
    assert 0 < model.switched_ < model.n_iter_
    assert model.preparation_seconds_ > 0
    pure = S3GD(l2=1e-2, anchors=50, tol=1e-9, switch=False, max_passes=10, seed=1).fit(X, y)
    assert np.isnan(pure.switched_)
    assert pure.history_.gap[-1] > 1e-6 > 1e-9 >= model.history_.gap[-1]


def test_the_gap_is_that_of_the_full_gradient():
    X, y = clusters(300)
    model = S3GD(l2=1e-2, l1=1e-3, anchors=20, seed=1).fit(X, y)
    gradient = np.empty(4)
    full_gradient(1, 0.0, X, y, np.ones(300), model.coef_, np.empty(300), gradient)
    excess = np.sign(gradient) * np.maximum(np.abs(gradient) - 1e-3, 0)
    w = model.coef_
    gap = 5e-3 * w @ w + 1e-3 * np.abs(w).sum() + excess @ excess / 2e-2 + w @ gradient
    assert model.history_.gap[-1] == pytest.approx(gap, abs=1e-12)
