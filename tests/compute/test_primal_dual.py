"""Compiled iterations of DSPDC, their draws and the primal-dual gap, against their twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from streamkernel.compute import gaussians, primal_dual, window_losses
from streamkernel.window.coordinates import Blocks, StepSizes, Subsets
from streamkernel.window.iterates import Factorized, FactorizedIterates, padded_factors
from streamkernel.window.linear_model import LinearProblem
from streamkernel.window.losses import LOSSES, ElasticNet
from tests import naive

kinds = st.sampled_from([loss.kind for loss in LOSSES.values()])
seeds = st.integers(0, 2**32)
# Of a part of a strip of a tile, and of several.
widths = st.sampled_from([3, 7, 20, 70, 150])


class Case:
    """A small problem in the middle of a solve, and choices for some iterations."""

    def __init__(self, kind, seed, subsets=False, n=9, p=7, d=4, iterations=5):
        rng = np.random.default_rng(seed)
        self.U, self.V = rng.normal(size=(n, d)), rng.normal(size=(d, p))
        self.A = self.U @ self.V * (rng.random((n, p)) < 0.6)
        self.y = rng.choice([-1.0, 1.0], n)
        self.weights = rng.integers(0, 3, n) / 2
        self.beta = -self.y * rng.random(n)
        self.x, self.xbar = rng.normal(size=(2, p))
        kind_of_draw = Subsets if subsets else Blocks
        m, q = rng.integers(1, n + 1), rng.integers(1, p + 1)
        self.drawn_from = lambda: (kind_of_draw(n, m, seed), kind_of_draw(p, q, seed + 1))
        self.rows, self.columns = self.drawn_from()
        self.choices = self.rows.draw(iterations), self.columns.draw(iterations)
        steps = (*rng.uniform(0.1, 1.0, 2), self.rows.ratio, 1 + rng.random())
        self.first = kind, (self.y, self.weights), (0.3, 0.05), steps

    @property
    def weighted(self):
        return self.weights * self.beta


def assert_close(found, expected):
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


@given(kinds, seeds, st.booleans())
def test_dense_and_sparse_rows(kind, seed, subsets):
    case = Case(kind, seed, subsets)
    X = sparse.csr_matrix(case.A)
    of_sparse = X.data, X.indices, X.indptr
    for name, A in (("advance_rows", case.A), ("advance_sparse", of_sparse)):
        dual, primal = (case.beta.copy(), case.A.T @ case.weighted), (case.x.copy(), case.xbar.copy())
        expected = getattr(naive, name)(*case.first, A, case.choices, dual, primal)
        getattr(primal_dual, name)(*case.first, A, case.choices, dual, primal)
        assert_close((dual, primal), expected)


@given(kinds, seeds, st.booleans())
def test_columns(kind, seed, subsets):
    case = Case(kind, seed, subsets)
    A = np.ascontiguousarray(case.A.T)
    scores = case.A @ case.x
    dual, primal = (case.beta.copy(), case.weighted), (case.x.copy(), scores.copy(), scores.copy())
    expected = naive.advance_columns(*case.first, A, case.choices, dual, primal)
    primal_dual.advance_columns(*case.first, A, case.choices, dual, primal)
    assert_close((dual, primal), expected)


@given(
    st.sampled_from(list(LOSSES)),
    seeds,
    st.booleans(),
    st.sampled_from([3, 7, 20, 70, 150]),
    st.sampled_from([2, 8, 11]),
)
def test_factors(loss, seed, subsets, p, d):
    case = Case(LOSSES[loss].kind, seed, subsets, p=p, d=d)
    problem = LinearProblem(Factorized(case.U, case.V), case.y, case.weights, LOSSES[loss], ElasticNet(0.3, 0.05))
    iterates = FactorizedIterates(problem, case.rows, case.columns, padded_factors(problem.X, case.columns))
    iterates.load(case.x, case.beta)
    tau, dual_step, _, extrapolation = case.first[3]
    expected = naive.advance_factorized(
        *case.first, (case.U, case.V, None), case.choices, (case.beta,), (case.x[None],)
    )
    # The same choices once more.
    iterates.rows, iterates.columns = case.drawn_from()
    iterates.advance(StepSizes(tau, dual_step * len(case.y), extrapolation - 1, 0.0), 5)
    dual, primal = (iterates.beta, iterates.u[:d]), (iterates.x, iterates.v[:d], iterates.vbar[:d])
    assert_close((dual, primal), expected)
    assert not iterates.v[d:].any()


@given(st.integers(1, 2**32), seeds, st.integers(1, 9))
def test_draws_of_blocks(bound, seed, count):
    state, drawn = np.array([seed], np.uint64), np.empty(count, np.int64)
    expected = naive.draw_blocks(seed, bound, drawn)
    gaussians.draw_blocks(state, bound, drawn)
    assert list(drawn) == expected


@given(st.integers(1, 30), seeds, st.data())
def test_draws_of_subsets(n, seed, data):
    drawn = np.empty((4, data.draw(st.integers(1, n))), np.int64)
    pool = np.arange(n)
    expected = naive.draw_subsets(seed, list(range(n)), drawn)
    gaussians.draw_subsets(np.array([seed], np.uint64), pool, drawn)
    assert drawn.tolist() == expected
    assert all(len(set(row)) == len(row) for row in expected)
    assert sorted(pool) == list(range(n))


@given(kinds, seeds)
def test_gaps(kind, seed):
    case = Case(kind, seed)
    z, sums = np.empty(len(case.A)), np.empty(len(case.x))
    window_losses.multiply(case.A, case.x, z)
    window_losses.multiply_transposed(case.A, case.weighted, sums)
    np.testing.assert_allclose(z, naive.multiply(case.A, case.x), atol=1e-12)
    np.testing.assert_allclose(sums, naive.multiply_transposed(case.A, case.weighted), atol=1e-12)
    arguments = kind, case.y, case.weights, case.beta, z
    assert window_losses.records_gap(*arguments) == pytest.approx(naive.records_gap(*arguments), rel=1e-10, abs=1e-12)
    arguments = case.x, sums / len(z), 0.3, 0.05
    assert window_losses.coefficients_gap(*arguments) == pytest.approx(naive.coefficients_gap(*arguments), rel=1e-10)
