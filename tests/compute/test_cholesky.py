"""The Cholesky factorization against its twins, and the bits of a system whatever stands beside it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkernel.compute import cholesky as kernels
from tests import naive

seeds = st.integers(0, 2**32)
# Below, at and past the rows and columns of a tile.
sizes = st.one_of(st.integers(1, 9), st.sampled_from([31, 32, 33, 127, 129, 140]))


@given(st.integers(0, 9), st.integers(1, 9), st.sampled_from([1.0, -1.0]), seeds)
def test_copy_tile(n, m, sign, seed):
    P = np.random.default_rng(seed).normal(size=(n + 3, m + 2))
    tile = np.full((32, 128), np.nan)
    kernels._copy_tile(P, (1, 1 + n), (2, 2 + m), sign, tile)
    expected = naive._copy_tile(P, (1, 1 + n), (2, 2 + m), sign)
    assert (tile[: len(expected), :m] == expected).all()
    assert np.isnan(tile[len(expected) :]).all()


@given(st.sampled_from([4, 8]), st.integers(2, 9), st.data())
def test_rows_of_a_tile(n, m, data):
    rng = np.random.default_rng(data.draw(seeds))
    left, right, rows = rng.normal(size=(n, m)), rng.normal(size=(n, m)), rng.normal(size=(2, m))
    i, first = data.draw(st.integers(0, m - 2)), data.draw(st.integers(0, m - 1))
    expected = naive._add_one(left, right, i, n, first, rows[0])
    both = naive._add_two(left, right, i, n, *rows)
    own = rows[0].copy()
    kernels._add_one(left, right, i, n, first, own)
    np.testing.assert_allclose(own[first:], expected, rtol=1e-10, atol=1e-12)
    assert (own[:first] == rows[0, :first]).all()
    kernels._add_two(left, right, i, n, *rows)
    np.testing.assert_allclose(rows, both, rtol=1e-10, atol=1e-12)


@given(sizes, sizes, st.sampled_from([1.0, -1.0]), st.data())
def test_add_gram(n, m, sign, data):
    rng = np.random.default_rng(data.draw(seeds))
    first = data.draw(st.integers(0, n))
    last = data.draw(st.integers(first, n))
    column = data.draw(st.integers(0, m))
    P, C = rng.normal(size=(n, m)), rng.normal(size=(m, m))
    expected = naive.add_gram(P, first, last, column, sign, C)
    below = np.tril(C, -1)
    kernels.add_gram(P, first, last, column, sign, C)
    np.testing.assert_allclose(np.triu(C), np.triu(expected), rtol=1e-10, atol=1e-10)
    assert (np.tril(C, -1) == below).all()


@settings(max_examples=20)
@given(sizes, st.sampled_from([1e-6, 1.0]), st.integers(1, 4), seeds)
def test_a_system_is_solved(m, ridge, K, seed):
    rng = np.random.default_rng(seed)
    P = rng.normal(size=(max(m // 2, 1), m))
    A = P.T @ P + ridge * np.eye(m)
    U = A.copy()
    kernels.factorize(U)
    np.testing.assert_allclose(np.triu(U), naive.factorize(A), rtol=1e-6, atol=1e-8)
    b = rng.normal(size=(K, m))
    x = b.copy()
    kernels.solve(U, x)
    exact = naive.solve(U, b)
    # What rounding does to one entry depends on the largest: the system is all but singular where the ridge is small.
    np.testing.assert_allclose(x, exact, rtol=1e-5, atol=1e-7 * np.abs(exact).max())
    np.testing.assert_allclose(x @ A, b, rtol=1e-6, atol=1e-7)


@given(st.integers(1, 6), st.integers(1, 40), st.integers(1, 4), seeds)
def test_add_products(n, D, K, seed):
    rng = np.random.default_rng(seed)
    phi, delta, scores = rng.normal(size=(n, D)), rng.normal(size=(K, D)), rng.normal(size=(n, K))
    expected = naive.add_products(phi, delta, scores)
    kernels.add_products(phi, delta, scores)
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 3), st.sampled_from([0.0, 0.7, np.inf, np.nan]), seeds)
def test_ridge_solution(B, D, K, ridge, seed):
    rng = np.random.default_rng(seed)
    phi, g, weights = rng.normal(size=(B, D)), rng.normal(size=(B, K)), rng.choice([0.0, 1.0, 2.5], B)
    out = np.full((K, D), 7.0)
    is_finite = kernels.ridge_solution(phi, phi * np.sqrt(weights)[:, None], g, weights, ridge, 0.25, out)
    exact = naive.ridge_solution(phi, g, weights, ridge, 0.25)
    assert is_finite == (exact is not None)
    if exact is not None:
        np.testing.assert_allclose(out, exact, rtol=1e-8, atol=1e-10)
