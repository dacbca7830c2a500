"""The variance by doubly stochastic gradients: theta by plain sums, and near the exact posterior."""

import numpy as np
import pytest

from benchmarks import gaussian_process as paper
from streamkernel import GaussianProcessRegressor
from streamkernel.estimators.base import machine_of
from streamkernel.gaussian_process import TestPointFunctions, VarianceOperator
from streamkernel.growth.steps import first_step
from streamkernel.kernels import Gaussian, Matern

NOISE = 0.5


def _records(n, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, X[:, 0] * X[:, 1]


def _model(variance, kernel=None, **arguments):
    kernel = kernel or Gaussian(1.5)
    arguments = {"standardize": False, "normalize_y": False, "n_features": 2, "seed": 1} | arguments
    return GaussianProcessRegressor(kernel, NOISE, variance=variance, **arguments)


def _draws(model, X):
    """The features of each block at rows: those on the right, and of an operator those on the left."""
    functions, keys = machine_of(model).functions, machine_of(model).inputs.columns.keys

    def of(expansion, block):
        return functions._features(expansion, block, X, keys, machine_of(model).features.bandwidth)

    blocks = range(functions.n_blocks)
    right = [of(functions._expansion, block) for block in blocks]
    left = [of(functions._left, block) for block in blocks] if hasattr(functions, "_left") else None
    return right, left


def _step_size(kernel, X, F):
    K = kernel.matrix(X, X, kernel.bandwidth) / kernel.kappa
    return 1.5 * first_step(K, 1.0, F)


@pytest.mark.parametrize("kernel", [Gaussian(1.5), 3.0 * Matern(2.5, 2.0)])
def test_the_operator_is_the_papers(kernel):
    """theta_ij entry by entry, as (10) and appendix D of the paper have it, while it grows."""
    B, F, steps, rho = 4, 2, 5, NOISE / kernel.kappa
    X, y = _records(B * steps)
    model = _model(VarianceOperator(B, F, None), kernel)
    model.learn_many(X, y)
    right, left = _draws(model, X)
    width = 2 * F
    theta = np.zeros((steps * width, steps * width))
    for t in range(steps):
        rows = range(t * B, (t + 1) * B)
        gamma = _step_size(kernel, X[t * B : (t + 1) * B], F)
        new = theta * (1 - gamma * rho / ((t + 1) * B))
        for j in range(width):  # of the new block
            for b in rows:
                for i in range(t * width):
                    known = sum(theta[i, k] * right[k // width][b, k % width] for k in range(t * width))
                    new[i, t * width + j] -= gamma / B * known * right[t][b, j]
                for i in range(width):
                    new[t * width + i, t * width + j] += gamma / B * left[t][b, i] * right[t][b, j]
        theta = new
    assert np.allclose(machine_of(model).functions.theta, theta, rtol=1e-9, atol=1e-12)
    A = np.einsum("ni,ij,nj->n", np.hstack(left), theta, np.hstack(right))
    found = model.predict_many(X, with_dist=True)[:, 1] ** 2
    assert np.allclose(found, kernel.kappa * np.clip(1 - A, rho / (rho + B * steps), 1), atol=1e-9)


def test_the_functions_are_kernel_ridge_regression():
    """Of the kernel's values at the points; past the bound steps touch old blocks."""
    B, F, steps, points = 4, 2, 7, [{0: 0.3, 1: -0.2}, {0: 1.0, 1: 1.0}]
    kernel = Gaussian(1.5)
    X, y = _records(B * steps)
    model = _model(TestPointFunctions(points, B, F, 3 * F, sample_size=50))
    model.learn_many(X, y)
    right, _ = _draws(model, X)
    functions = machine_of(model).functions
    assert (functions.n_blocks, functions.n_steps) == (3, steps)
    Z = np.array([list(point.values()) for point in points])
    alpha = [np.zeros((2, 2 * F)) for _ in range(3)]
    touched = []
    for t in range(steps):
        rows = slice(t * B, (t + 1) * B)
        functions.n_steps = t
        block = t if t < 3 else functions._chosen()
        touched.append(block)
        gamma = _step_size(kernel, X[rows], F)
        f = sum(phi[rows] @ a.T for phi, a in zip(right, alpha, strict=True))
        g = f - kernel.matrix(X[rows], Z, 1.5)
        alpha = [a * (1 - gamma * NOISE / 50) for a in alpha]
        alpha[block] -= gamma / B * g.T @ right[block][rows]
    assert len(set(touched[3:])) > 1
    assert np.allclose(functions.theta, np.hstack(alpha), rtol=1e-9, atol=1e-12)
    at = machine_of(model).functions
    scores = at._scores(Z, machine_of(model).inputs.columns.keys, 1.5)
    found = model.predict_many(Z, with_dist=True)[:, 1] ** 2
    assert np.allclose(found, np.clip(1 - np.diag(scores), NOISE / (NOISE + 50), 1), atol=1e-12)


def test_past_its_bound_the_operator_takes_all_features_for_the_kernel():
    B, F = 4, 2
    X, y = _records(3 * B)
    model = _model(VarianceOperator(B, F, 2 * F, sample_size=50))
    model.learn_many(X[: 2 * B], y[: 2 * B])
    functions = machine_of(model).functions
    before, rows = functions.theta.copy(), slice(2 * B, 3 * B)
    block = functions._chosen()
    model.learn_many(X[rows], y[rows])
    right, left = (np.hstack(parts)[rows] for parts in _draws(model, X))
    gamma = _step_size(Gaussian(1.5), X[rows], F)
    expected = before * (1 - gamma * NOISE / 50)
    own = slice(block * 2 * F, (block + 1) * 2 * F)
    expected[:, own] -= gamma / B * (right @ before.T - left / 2).T @ right[:, own]
    assert np.allclose(functions.theta, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "variance",
    [
        lambda points: TestPointFunctions(points, 32, 32, 256, sample_size=256),
        lambda _: VarianceOperator(32, 8, 64, sample_size=256),
    ],
    ids=["test points", "operator"],
)
def test_both_come_near_the_exact_variance(variance, monkeypatch):
    monkeypatch.setattr(paper, "BATCH", 32)
    monkeypatch.setattr(paper, "LOOKS", (20, 150))
    given = paper.setting(256, 16)
    points = [dict(enumerate(row)) for row in given.Z.tolist()]
    errors = dict(paper.explained(given, variance(points), 150, seed=1))
    assert errors[150].mean() < 0.5 * errors[20].mean()
    assert errors[150].mean() < 0.01


@pytest.mark.long
@pytest.mark.parametrize("kind", [paper.points_of, paper.operator_of])
def test_the_papers_setting(kind):
    given = paper.setting(2048, 64)
    errors = dict(paper.explained(given, kind(given), 1500, seed=0))
    assert errors[1500].max() <= 0.003
    means = [error.mean() for error in errors.values()]
    assert means == sorted(means, reverse=True)


def test_between_the_points_the_kernel_interpolates():
    X, y = _records(600)
    grid = [{0: a, 1: b} for a in np.linspace(-2, 2, 9).tolist() for b in np.linspace(-2, 2, 9).tolist()]
    model = _model(TestPointFunctions(grid, 20, 32, 256, sample_size=600))
    model.learn_many(X, y)
    between = np.array([[0.25, 0.25], [-0.75, 1.25]])
    K = Gaussian(1.5).matrix(X, X, 1.5) + NOISE * np.eye(600)
    across = Gaussian(1.5).matrix(between, X, 1.5)
    exact = 1 - np.einsum("ij,ji->i", across, np.linalg.solve(K, across.T))
    found = model.predict_many(between, with_dist=True)[:, 1] ** 2
    assert np.abs(found - exact).max() < 0.05
    far = model.predict_one({0: 30.0, 1: 0.0}, with_dist=True)
    assert far.sigma == pytest.approx(1.0)


def test_points_are_scaled_as_records_are():
    rng = np.random.default_rng(0)
    point = {"a": 105.0, "kind": "u", "never": 3.0}
    model = GaussianProcessRegressor(variance=TestPointFunctions([point], 16, 16, 64), n_features=8, seed=1)
    for i in range(400):
        model.learn_one({"a": rng.normal(100, 5), "kind": "uv"[i % 2]}, rng.normal())
    known = {name: value for name, value in point.items() if name != "never"}
    assert (
        0 < model.predict_one(known, with_dist=True).sigma < 0.7 * model.predict_one({"a": 200.0}, with_dist=True).sigma
    )


@pytest.mark.parametrize(
    "variance",
    [VarianceOperator(10, 4, 8), TestPointFunctions([{0: 1.0, 1: 1.0}], 10, 4, 8)],
    ids=["operator", "points"],
)
def test_a_variance_is_never_less_than_copies_of_its_record_leave(variance):
    """However wrong the functions are: it is never 0."""
    model = _model(variance, 4.0 * Gaussian(1.5))
    model.learn_many(np.ones((305, 2)), np.ones(305))
    machine_of(model).functions.theta *= 50
    said = model.predict_many(np.ones((1, 2)), with_dist=True)
    assert said[0, 1] ** 2 == pytest.approx(4.0 * NOISE / (NOISE + 4.0 * 300))
