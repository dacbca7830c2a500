"""Block DSPDC: the paper's iterations, another solver's optimum, and positive semi-definite matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.solvers import matrix_problem
from benchmarks.solvers.block_solver import BlockIterates, BlockSolver, draw
from benchmarks.solvers.matrix_problem import DenseBlocks, MatrixProblem, psd_factor, psd_project
from benchmarks.solvers.matrix_risk import random_matrices
from streamkernel.compute.window_losses import LOGISTIC, SMOOTH_HINGE, SQUARED, SQUARED_HINGE, dual_steps
from streamkernel.window.coordinates import step_sizes
from streamkernel.window.losses import LOSSES
from tests import naive
from tests.window import matrix_risk


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
        X, beta, ahead = matrix_risk.iterate(*plain, X, beta, ahead, steps, records, blocks, m)
        assert problem.data.unpack(iterates.X) == pytest.approx(X, abs=1e-10)
        assert iterates.beta == pytest.approx(beta, abs=1e-10)
    iterates.refresh()
    assert iterates.z == pytest.approx(matrix_risk.scores(plain[1], X), abs=1e-9)
    objective, gap = problem.gap(iterates.X, iterates.z, iterates.beta, iterates.G)
    assert objective == pytest.approx(matrix_risk.objective(*plain, X), rel=1e-10)
    assert gap == pytest.approx(objective - matrix_risk.dual_objective(*plain, beta), rel=1e-9)


def test_draws_take_each_number_equally_often():
    rng = np.random.default_rng(3)
    for n, m in ((6, 2), (7, 3), (5, 5)):
        counts = np.zeros(n)
        for _ in range(3000):
            chosen = np.arange(n)[draw(rng, n, m)]
            assert len(set(chosen)) == m
            counts[chosen] += 1
        assert counts / 3000 == pytest.approx(np.full(n, m / n), abs=0.04)


@pytest.mark.parametrize(("m", "q", "balance"), [(1, 1, "data"), (3, 3, "theorem"), (6, 1, "data")])
@pytest.mark.parametrize("loss", LOSSES)
def test_it_comes_to_the_optimum_of_another_solver(loss, m, q, balance):
    problem, plain = _problem(5, loss)
    best = matrix_risk.optimum(*plain)
    solution = BlockSolver(m, q, "sampled", balance, 1e-13, 3000).solve(problem, seed=1)
    assert solution.history.gap.min() <= 1e-13
    assert problem.data.unpack(solution.X) == pytest.approx(best, abs=1e-6)
    least = matrix_risk.objective(*plain, best)
    assert solution.history.objective[-1] == pytest.approx(least, abs=1e-10)


def test_every_projected_matrix_is_positive_semi_definite(monkeypatch):
    seen = []

    def looked_at(S):
        P = psd_project(S)
        for one, projected in zip(S, P, strict=True):
            assert np.array_equal(projected, projected.T)
            size = np.abs(one).max()
            assert np.linalg.eigvalsh(projected)[0] >= -1e-14 * len(one) * size
            seen.append(np.linalg.eigvalsh(one)[0] < 0)
        return P

    monkeypatch.setattr(matrix_problem, "psd_project", looked_at)
    problem, _ = _problem(9, n=30, d=6)
    solution = BlockSolver(2, 1, "sampled", None, 1e-9, 40).solve(problem, seed=1)
    assert len(seen) > solution.n_projections > 400  # those of the gap, too
    assert sum(seen) > 100
    assert np.linalg.eigvalsh(problem.data.unpack(solution.X)).min() > -1e-13


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


@pytest.mark.parametrize(("scale", "passes"), [(1e-200, 1000), (1e-1, 1000), ("thumb", 400)])
def test_a_scale_that_is_too_small_is_doubled_until_the_gap_falls(scale, passes):
    problem = random_matrices(20, 3, 3, seed=11)
    assert BlockSolver(4, 2, scale, None, 1e-6, passes).solve(problem, seed=1).history.gap.min() <= 1e-6


def test_scales_are_squared_norms_of_parts():
    problem, plain = _problem(13)
    data, D = problem.data, plain[1]
    rows = data.pack(D.reshape(-1, 3, 3)).reshape(12, -1)
    assert data.squared_norms() == pytest.approx(np.sum(rows**2, axis=1))
    part = rows[3:7, 6:12] * np.array([1.0, 2.0, 3.0, 0.5])[:, None]
    expected = np.linalg.norm(part, 2) ** 2
    assert data.scale(slice(3, 7), slice(1, 2), np.array([1.0, 2.0, 3.0, 0.5])) == pytest.approx(expected)


def test_a_start_with_a_gap_too_large_for_a_float_is_refused():
    problem, _ = _problem(21, "squared")
    problem.y[0] = 1e300
    with pytest.raises(ValueError, match="the gap at the start is too large for a float: scale y"):
        BlockSolver(1, 1, "sampled", None, 1e-6, 5).solve(problem, seed=1)
