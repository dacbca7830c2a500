"""Block DSPDC: its iterations as written, another solver's optimum, and matrices that stay positive semi-definite."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkernel import KernelClassifier, WindowRefit
from streamkernel.compute.dual_blocks import dual_steps
from streamkernel.compute.window_losses import LOGISTIC, SMOOTH_HINGE, SQUARED, SQUARED_HINGE
from streamkernel.window import MatrixDSPDC, block_iterates, matrix_problem
from streamkernel.window.block_data import DenseBlocks, Triangles
from streamkernel.window.block_iterates import BlockIterates, draw
from streamkernel.window.block_solver import BlockSolver
from streamkernel.window.losses import LOSSES
from streamkernel.window.matrix_problem import MatrixProblem
from streamkernel.window.psd import psd_factor, psd_project
from streamkernel.window.step_sizes import step_sizes
from tests import naive
from tests.window import matrix_risk


def _data(seed, n=12, p=3, d=3, loss="smooth_hinge"):
    rng = np.random.default_rng(seed)
    D = rng.normal(size=(n, p, d, d))
    z = np.einsum("ijkk->i", D)
    y = z + rng.normal(size=n) if loss == "squared" else np.where(z + rng.normal(size=n) > 0, 1.0, -1.0)
    return D, y


def _problem(seed, loss="smooth_hinge", n=12, p=3, d=3):
    """A problem with weights, l2 and linear terms of each block, and the same in plain numpy."""
    rng = np.random.default_rng(seed + 100)
    D, y = _data(seed, n, p, d, loss)
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
def test_it_comes_to_the_optimum_of_another_solver(m, q, balance):
    problem, plain = _problem(5)
    best = matrix_risk.optimum(*plain)
    solution = BlockSolver(m, q, "sampled", balance, 1e-14, 3000).solve(problem, seed=1)
    assert solution.history.gap.min() <= 1e-14
    assert problem.data.unpack(solution.X) == pytest.approx(best, abs=1e-6)
    least = matrix_risk.objective(*plain, best)
    assert matrix_risk.objective(*plain, problem.data.unpack(solution.X)) == pytest.approx(least, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_comes_to_the_optimum_of_another_solver(loss):
    D, y = _data(7, n=20, loss=loss)
    solver = MatrixDSPDC(loss, l2=0.1, dual=4, primal=2, tol=1e-13, max_passes=2000, seed=1).fit(D, y)
    kind, ones, none = LOSSES[loss].kind, np.ones(20), np.zeros((3, 3, 3))
    best = matrix_risk.optimum(kind, D, y, ones, np.full(3, 0.1), none)
    assert solver.coef_ == pytest.approx(best, abs=1e-6)
    value = matrix_risk.objective(kind, D, y, ones, np.full(3, 0.1), none, best)
    assert solver.history_.objective[-1] == pytest.approx(value, abs=1e-10)
    assert solver.decision_function(D) == pytest.approx(matrix_risk.scores(D, best), abs=1e-5)


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
    D, y = _data(9, n=30, d=6)
    solver = MatrixDSPDC(dual=2, primal=1, tol=1e-9, max_passes=40, seed=1).fit(D, y)
    assert len(seen) > solver.n_projections_ > 400  # those of the gap, too
    assert sum(seen) > 100
    assert np.linalg.eigvalsh(solver.coef_).min() > -1e-13


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


@settings(max_examples=20)
@given(st.integers(1, 6), st.integers(0, 2**32))
def test_triangles_keep_matrices_and_their_inner_products(d, seed):
    S = np.random.default_rng(seed).normal(size=(4, d, d))
    S = S + S.transpose(0, 2, 1)
    triangles = Triangles(d)
    packed = triangles.pack(S)
    assert packed.shape == (4, triangles.size)
    assert triangles.unpack(packed) == pytest.approx(S, rel=1e-15)
    assert packed @ packed.T == pytest.approx(np.einsum("ijk,ljk->il", S, S))


def test_a_scale_that_is_too_small_is_doubled_until_the_gap_falls():
    D, y = _data(11, n=20)
    for scale in (1e-200, 1e-1):
        solver = MatrixDSPDC(dual=4, primal=2, scale=scale, max_passes=1000, seed=1).fit(D, y)
        assert solver.history_.gap.min() <= 1e-6
    assert MatrixDSPDC(dual=4, primal=2, scale="thumb", max_passes=400, seed=1).fit(D, y).history_.gap[-1] <= 1e-6


def test_scales_are_squared_norms_of_parts():
    D, _ = _data(13)
    data = DenseBlocks(D)
    rows = data.pack(((D + D.transpose(0, 1, 3, 2)) / 2).reshape(-1, 3, 3)).reshape(12, -1)
    assert data.squared_norms() == pytest.approx(np.sum(rows**2, axis=1))
    part = rows[3:7, 6:12] * np.array([1.0, 2.0, 3.0, 0.5])[:, None]
    expected = np.linalg.norm(part, 2) ** 2
    assert data.scale(slice(3, 7), slice(1, 2), np.array([1.0, 2.0, 3.0, 0.5])) == pytest.approx(expected)


def test_the_same_seed_gives_the_same_bytes_and_a_start_at_the_optimum_stays():
    D, y = _data(15)
    one, other = (MatrixDSPDC(dual=5, max_passes=200, tol=1e-12, seed=3).fit(D, y) for _ in range(2))
    assert one.coef_.tobytes() == other.coef_.tobytes()
    assert one.history_.gap.tobytes() == other.history_.gap.tobytes()
    again = MatrixDSPDC(dual=5, max_passes=200, tol=1e-6, seed=4).fit(D, y, coef_init=one.coef_)
    assert again.history_.passes[-1] < one.history_.passes[-1] / 5
    assert again.coef_ == pytest.approx(one.coef_, abs=1e-3)


def test_classes_are_learned_one_against_rest_and_weights_count():
    rng = np.random.default_rng(17)
    D = rng.normal(size=(60, 2, 3, 3))
    y = np.array(["a", "b", "c"])[np.argmax(np.einsum("ijkk->ik", D), axis=1)]
    solver = MatrixDSPDC("log", l2=1e-2, dual=6, max_passes=150, tol=1e-5, seed=1).fit(D, y)
    assert solver.coef_.shape == (3, 2, 3, 3)
    assert len(solver.history_) == 3
    assert np.mean(solver.predict(D) == y) > 0.8
    weights = (y != "c").astype(float)
    kept = y != "c"
    some = MatrixDSPDC("log", dual=6, max_passes=400, tol=1e-10, seed=1)
    assert some.fit(D, y == "a", weights).coef_ == pytest.approx(
        MatrixDSPDC("log", dual=1, max_passes=400, tol=1e-10, seed=1).fit(D[kept], y[kept] == "a").coef_, abs=1e-3
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"l2": 0.0}, "l2 must be a finite number above 0, got 0.0"),
        ({"dual": 0}, "dual must be a whole number of at least 1, got 0"),
        ({"dual": 13}, "dual must be at most 12, the number of records, got 13"),
        ({"primal": 4}, "primal must be at most 3, the number of blocks, got 4"),
        ({"primal": 1.5}, "primal must be a whole number of at least 1, got 1.5"),
        ({"scale": -1.0}, 'scale must be "sampled" or "thumb" or a finite number above 0, got -1.0'),
        ({"tol": np.nan}, "tol must be a finite number above 0, got nan"),
        ({"balance": "both"}, 'balance must be "theorem", "data" or None, got \'both\''),
        ({"loss": "hinge"}, "loss must be one of squared, log, smooth_hinge, squared_hinge, got 'hinge'"),
    ],
)
def test_arguments_that_cannot_be(arguments, message):
    D, y = _data(19)
    with pytest.raises(ValueError, match="^" + message.replace("[", r"\[") + "$"):
        MatrixDSPDC(**arguments).fit(D, y)


def test_data_that_cannot_be():
    D, y = _data(21)
    solver = MatrixDSPDC(max_passes=5, seed=1).fit(D, y)
    coef = solver.coef_
    broken = D.copy()
    broken[4, 1, 0, 0] = np.inf
    for X, message in (
        (D[:, 0], r"X must be matrices of shape \(n, p, d, d\), got shape \(12, 3, 3\)"),
        (broken, "X has a number at record 4 that is not finite: remove or fill such values"),
        ("rows", r"X must be numbers of shape \(n, p, d, d\), got 'rows'"),
        (D + 1j, r"X must be numbers of shape \(n, p, d, d\), got array"),
        (D * 1e200, "X has values past 1e\\+70, whose products are too large for floats: scale the matrices"),
    ):
        with pytest.raises(ValueError, match=message):
            solver.fit(X, y)
    with pytest.raises(ValueError, match="y must have a value for each of the 12 rows"):
        solver.fit(D, y[:3])
    with pytest.raises(ValueError, match="coef_init must be of the shape of coef_"):
        solver.fit(D, y, coef_init=np.zeros((2, 4, 4)))
    with pytest.raises(ValueError, match="the gap at the start is too large for a float: scale y"):
        solver.clone({"loss": "squared"}).fit(D, np.where(y == y[0], 1e300, 0.0))
    with pytest.raises(ValueError, match=r"X must have matrices of shape \(3, 3, 3\), as fitted, got \(2, 3, 3\)"):
        solver.predict(D[:, :2])
    with pytest.raises(ValueError, match="this MatrixDSPDC has no coefficients yet: call fit first"):
        MatrixDSPDC().predict(D)
    assert solver.coef_ is coef
    assert block_iterates.__all__


def test_a_refit_of_a_machine_does_not_take_it():
    with pytest.raises(ValueError, match="solver must accept rows of features, like Exact, DSPDC, S3GD and SVRG"):
        WindowRefit(KernelClassifier(seed=1), solver=MatrixDSPDC())
