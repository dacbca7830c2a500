"""Block DSPDC: the iterations of the paper in plain numpy, its gap, and positive semi-definite matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.solvers.block_solver import BlockIterates, BlockSolver, draw
from benchmarks.solvers.matrix_problem import DenseBlocks, MatrixProblem, psd_factor, psd_project
from streamkernel.compute.window_losses import LOGISTIC, SMOOTH_HINGE, SQUARED, SQUARED_HINGE, dual_steps
from streamkernel.window.coordinates import step_sizes
from streamkernel.window.losses import LOSSES
from tests import naive
from tests.naive.window_losses import dual_update, loss_conjugate, loss_value


def projected(S):
    w, V = np.linalg.eigh((S + S.T) / 2)
    return (V * np.maximum(w, 0.0)) @ V.T


def scores(D, X):
    return np.array([sum(np.sum(D[i, j] * X[j]) for j in range(len(X))) for i in range(len(D))])


def objective(kind, D, y, weights, l2, linear, X):
    losses = [w * loss_value(kind, z, b) for w, z, b in zip(weights, scores(D, X), y, strict=True)]
    return np.mean(losses) + sum(l2[j] / 2 * np.sum(X[j] ** 2) - np.sum(linear[j] * X[j]) for j in range(len(X)))


def dual_objective(kind, D, y, weights, l2, linear, beta):
    total = -np.mean([w * loss_conjugate(kind, a, b) for w, a, b in zip(weights, beta, y, strict=True)])
    for j in range(D.shape[1]):
        G = np.mean([w * a * D[i, j] for i, (w, a) in enumerate(zip(weights, beta, strict=True))], axis=0)
        total -= np.sum(projected(linear[j] - G) ** 2) / (2 * l2[j])
    return total


def iterate(kind, D, y, weights, l2, linear, X, beta, ahead, steps, records, blocks, m):
    """Algorithm 1 with the block updates (28) and (29), as they are written."""
    n = len(D)
    z = scores(D, ahead)
    new, betabar = beta.copy(), beta.copy()
    for i in records:
        new[i] = dual_update(kind, beta[i], z[i], y[i], steps.sigma / n)
        betabar[i] = beta[i] + n / m * (new[i] - beta[i])
    moved, beyond = X.copy(), X.copy()
    for j in blocks:
        G = sum(weights[i] * betabar[i] * D[i, j] for i in range(n)) / n
        V = X[j] - steps.tau * (G - linear[j])
        moved[j] = projected(V / (1 + steps.tau * l2[j]))
        beyond[j] = X[j] + (steps.theta + 1) * (moved[j] - X[j])
    return moved, new, beyond


def _problem(seed, loss="smooth_hinge", n=12, p=3, d=3):
    """A problem with weights, l2 and linear terms of each block, and the same in plain numpy."""
    rng = np.random.default_rng(seed + 100)
    D = rng.normal(size=(n, p, d, d))
    z = np.einsum("ijkk->i", D) + rng.normal(size=n)
    y = z if loss == "squared" else np.where(z > 0, 1.0, -1.0)
    weights = rng.uniform(0.2, 2.0, n)
    weights /= weights.mean()
    l2 = rng.uniform(0.05, 0.2, p)
    linear = rng.normal(size=(p, d, d)) / 10
    linear = linear + linear.transpose(0, 2, 1)
    data = DenseBlocks(D)
    problem = MatrixProblem(data, y, weights, LOSSES[loss], l2, data.pack(linear))
    return problem, ((LOSSES[loss].kind, (D + D.transpose(0, 1, 3, 2)) / 2, y, weights, l2, linear))


@pytest.mark.parametrize("kind", [SQUARED, LOGISTIC, SMOOTH_HINGE, SQUARED_HINGE])
def test_dual_steps_are_their_twins(kind):
    rng = np.random.default_rng(kind)
    y = np.where(rng.random(20) < 0.5, 1.0, -1.0)
    beta, z, out = -y * rng.random(20), rng.normal(size=20), np.empty(20)
    dual_steps(kind, beta, z, y, 0.7, out)
    assert out == pytest.approx(naive.dual_steps(kind, beta, z, y, 0.7), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("m", "q"), [(1, 2), (4, 3), (5, 1), (12, 1)])
@pytest.mark.parametrize("loss", ["smooth_hinge", "squared"])
def test_iterations_are_those_of_the_paper(loss, m, q):
    problem, plain = _problem(m, loss)
    n, p = problem.data.n, problem.data.p
    steps = step_sizes(n, n / m, p / q, 30.0, float(problem.l2.min()), 1.0)
    start = problem.project(np.random.default_rng(1).normal(size=(p, problem.data.size)))
    iterates = BlockIterates(problem, m, q, start, np.zeros(n))
    assert iterates.by_records == ((m, q) in [(1, 2), (4, 3)])
    X = problem.data.unpack(start)
    beta, ahead = np.zeros(n), X
    again = np.random.default_rng(2)
    rng = np.random.default_rng(2)
    for t in range(30):
        iterates.iterate(steps, rng)
        if t % 7 == 0:
            iterates.refresh()
        records, blocks = np.arange(n)[draw(again, n, m)], np.arange(p)[draw(again, p, q)]
        X, beta, ahead = iterate(*plain, X, beta, ahead, steps, records, blocks, m)
        assert problem.data.unpack(iterates.X) == pytest.approx(X, abs=1e-10)
        assert iterates.beta == pytest.approx(beta, abs=1e-10)
    iterates.refresh()
    assert iterates.z == pytest.approx(scores(plain[1], X), abs=1e-9)
    value, gap = problem.gap(iterates.X, iterates.z, iterates.beta, iterates.G)
    assert value == pytest.approx(objective(*plain, X), rel=1e-10)
    assert gap == pytest.approx(value - dual_objective(*plain, beta), rel=1e-9)


@pytest.mark.parametrize(("m", "q", "balance"), [(1, 1, "data"), (3, 3, "theorem"), (6, 1, "data")])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_gap_falls_to_what_rounding_leaves(loss, m, q, balance):
    problem, _ = _problem(5, loss)
    assert BlockSolver(m, q, "sampled", balance, 1e-13, 3000).solve(problem, seed=1).history.gap.min() <= 1e-13


@given(st.integers(1, 8), st.integers(0, 2**32), st.floats(1e-8, 1e8))
def test_the_projection_is_the_nearest_positive_semi_definite_matrix(d, seed, size):
    S = np.random.default_rng(seed).normal(size=(d, d)) * size
    S = S + S.T
    P = psd_project(S[None])[0]
    # What it takes away is negative semi-definite and at a right angle to it.
    assert np.linalg.eigvalsh(P)[0] >= -1e-13 * size
    assert np.linalg.eigvalsh(S - P)[-1] <= 1e-12 * size
    assert abs(np.sum(P * (S - P))) <= 1e-11 * size**2
    L = psd_factor(S)
    assert pytest.approx(P, abs=1e-12 * size) == L.T @ L
