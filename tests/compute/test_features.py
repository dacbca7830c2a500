"""Projection, cosine and sine, sums: every kernel against its twin, every row by itself."""

import math

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.compute import features as kernels
from streamkernel.compute.features import SINE, TILE
from streamkernel.compute.vectors import multiply_add
from tests import naive

DTYPES = [np.dtype("float32"), np.dtype("float64")]
# Of a sum of some hundred terms of size 1; a float32 projection carries its own rounding into the angle.
TOLERANCE = {DTYPES[0]: 2e-4, DTYPES[1]: 1e-11}
BOUND = {DTYPES[0]: 2e-7, DTYPES[1]: 1e-15}


def _cos_sin(turns):
    cosines, sines = np.empty_like(turns), np.empty_like(turns)
    kernels.cos_sin(turns, SINE[turns.dtype], cosines, sines)
    return cosines, sines


def _assert_accurate(turns):
    for ours, exact in zip(_cos_sin(turns), naive.cos_sin(turns), strict=True):
        assert np.abs(ours - np.array(exact)).max() <= BOUND[turns.dtype]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_cosine_and_sine_at_and_beside_every_eighth(dtype):
    eighths = (np.arange(-24, 25) / 8).astype(dtype)
    _assert_accurate(
        np.concatenate([eighths, np.nextafter(eighths, dtype.type(9)), np.nextafter(eighths, dtype.type(-9))])
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_cosine_and_sine_of_absurdly_many_turns(dtype):
    top = math.log2(np.finfo(dtype).max)
    powers = 2.0 ** np.arange(0, int(top))
    turns = np.concatenate([powers, powers + 1, powers * 1.5 + 1, powers / 3]).astype(dtype)
    _assert_accurate(np.concatenate([turns, -turns]))


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=40))
def test_cosine_and_sine_anywhere(turns):
    for dtype in DTYPES:
        _assert_accurate(np.array(turns, dtype))


WITHIN_A_TILE = [1, 3, 17, TILE - 1, TILE]
SEVERAL_TILES = [*WITHIN_A_TILE, TILE + 1, 2 * TILE + 33]


def _some(rng, dtype, *shape):
    return rng.normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("n", "d", "K"), [(1, 1, 1), (3, 9, 1), (2, 4, 10)])
@pytest.mark.parametrize("m", SEVERAL_TILES)
def test_add_scores(dtype, n, d, K, m):
    rng = np.random.default_rng(n + d + m)
    X, W, alpha = _some(rng, dtype, n, d), _some(rng, dtype, d, m + 5), _some(rng, dtype, K, 2, TILE + m + 3)
    X[:, d // 2] = 0  # absent
    for first in (0, TILE):
        start = rng.normal(size=(n, K))
        scores = start.copy()
        kernels.add_scores(X, W, alpha, first, m, SINE[dtype], scores)
        exact = naive.add_scores(X, W, alpha, first, m, start)
        assert np.allclose(scores, exact, atol=TOLERANCE[dtype] * math.sqrt(1 + m / TILE), rtol=0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("K", [1, 4])
@pytest.mark.parametrize("m", WITHIN_A_TILE)
def test_add_tile_and_add_projected(dtype, K, m):
    rng = np.random.default_rng(K + m)
    turns, alpha, start = _some(rng, dtype, 3, m), _some(rng, dtype, K, 2, m + 7), rng.normal(size=(3, K))
    together, exact = start.copy(), naive.add_projected(turns, alpha, 5, start)
    kernels.add_projected(turns, alpha, 5, SINE[dtype], together)
    assert np.allclose(together, exact, atol=TOLERANCE[dtype], rtol=0)
    room = np.empty((2, m + 2), dtype)
    for r in range(3):
        own = start[r].copy()
        kernels.add_tile(turns[r], alpha, 5, SINE[dtype], *room, own)
        assert np.allclose(own, naive.add_tile(turns[r], alpha, 5, start[r]), atol=TOLERANCE[dtype], rtol=0)
        alone = start[r : r + 1].copy()
        kernels.add_projected(turns[r : r + 1], alpha, 5, SINE[dtype], alone)
        assert alone.tobytes() == together[r].tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("first", "F"), [(0, 1), (3, 8), (0, 33)])
def test_paired_features(dtype, first, F):
    rng = np.random.default_rng(F)
    X, W = rng.normal(size=(4, 3)).astype(dtype), rng.normal(size=(3, first + F)).astype(dtype)
    out = np.empty((4, 2 * F), dtype)
    kernels.paired_features(X, W, first, SINE[dtype], out)
    assert np.allclose(out, naive.paired_features(X, W, first, F), atol=TOLERANCE[dtype], rtol=0)
    assert np.allclose(np.square(out, dtype=np.float64).sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize(("n", "d", "F", "n_linear"), [(4, 3, 8, 3), (1, 1, 1, 1), (3, 5, 33, 0), (2, 6, 2, 4)])
def test_adaptive_columns(n, d, F, n_linear):
    rng = np.random.default_rng(F)
    X, W, scales = (rng.normal(size=shape).astype(np.float32) for shape in ((n, d), (d, F), d))
    out = np.full((n, 2 * F + 1 + n_linear), np.nan)
    kernels.adaptive_columns(X, W, scales, 1.7, n_linear, SINE[X.dtype], out)
    assert np.allclose(out, naive.adaptive_columns(X, W, scales, 1.7, n_linear), atol=1e-5, rtol=0)
    X[0] = np.sign(X[0]) * 1e9
    kernels.adaptive_columns(X, W, scales, 1.7, n_linear, SINE[X.dtype], out)
    assert (np.abs(out[0, 2 * F + 1 :]) == kernels.LINEAR_LIMIT).all()


@given(
    n=st.integers(1, 9),
    d=st.integers(1, 12),
    more=st.integers(0, 9),
    F=st.integers(1, 40),
    m=st.one_of(st.integers(1, TILE), st.integers(TILE + 1, 3 * TILE)),
    K=st.integers(1, 12),
    dtype=st.sampled_from(DTYPES),
    missing=st.sampled_from([0.0, 0.5]),
)
def test_a_rows_bits_do_not_depend_on_its_company(n, d, more, F, m, K, dtype, missing):
    """Not on other rows, nor on columns that it does not use, nor on how tiles are put together."""
    rng = np.random.default_rng(d + m)
    X, W, alpha = _some(rng, dtype, n, d), _some(rng, dtype, d, m), _some(rng, dtype, K, 2, m + more)
    X *= rng.random((n, d)) >= missing
    together = np.zeros((n, K))
    kernels.add_scores(X, W, alpha, 0, m, SINE[dtype], together)
    features, first = np.empty((n, 2 * F), dtype), max(m - F, 0)
    W_of_block = np.pad(W, ((0, 0), (0, F)))
    kernels.paired_features(X, W_of_block, first, SINE[dtype], features)

    for r in range(n):
        # Columns that it does not hold come between those that it does.
        order = rng.permutation(d + more)
        mixed_x = np.zeros((1, d + more), dtype)
        places = np.sort(order[:d])
        mixed_x[0, places] = X[r]
        mixed_W = np.full((d + more, m + F), 0.7, dtype)
        mixed_W[places] = W_of_block
        alone, cut = np.zeros((1, K)), min(r * TILE, m // TILE * TILE)
        kernels.add_scores(mixed_x, mixed_W, alpha, 0, cut, SINE[dtype], alone)
        rest = np.ascontiguousarray(mixed_W[:, cut:])
        kernels.add_scores(mixed_x, rest, alpha, cut, m - cut, SINE[dtype], alone)
        assert alone.tobytes() == together[r].tobytes()
        features_alone = np.empty((1, 2 * F), dtype)
        own_W = np.ascontiguousarray(mixed_W[:, first : first + F])
        kernels.paired_features(mixed_x, own_W, 0, SINE[dtype], features_alone)
        assert features_alone.tobytes() == features[r].tobytes()


@given(st.integers(1, 40), st.integers(1, 12))
def test_column_means(n, K):
    g = np.random.default_rng(n * K).normal(size=(n, K))
    assert np.allclose(kernels.column_means(g), naive.column_means(g), atol=1e-14, rtol=0)


@given(st.integers(1, 20), st.integers(1, 12), st.integers(1, 30))
def test_mean_outer(n, K, width):
    rng = np.random.default_rng(n * K + width)
    phi, g = rng.normal(size=(n, width)), rng.normal(size=(n, K)) * (rng.random((n, K)) < 0.7)
    out = np.full((K, width), np.nan)
    kernels.mean_outer(phi, g, out)
    assert np.allclose(out, naive.mean_outer(phi, g), atol=1e-13, rtol=0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("m", [1, 8, 137])
def test_dot_pairs(dtype, m):
    cosines, sines, a, b = _some(np.random.default_rng(m), dtype, 4, m)
    total = kernels._dot_pairs(cosines, sines, a, b)
    assert total == pytest.approx(naive._dot_pairs(cosines, sines, a, b), abs=TOLERANCE[dtype])


@given(st.lists(st.sampled_from([0.0, -0.0, 1.0, -2.5, 1e-30]), max_size=20))
def test_observed(x):
    columns = np.full(len(x), -1)
    n = kernels.observed(np.array(x, np.float32), columns)
    assert columns[:n].tolist() == naive.observed(x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", range(14))
@pytest.mark.parametrize("m", [1, 16, 37])
def test_project_columns(dtype, n, m):
    """In fours, and what is left over: as if column after column."""
    rng = np.random.default_rng(n + m)
    x, W, columns = _some(rng, dtype, 20), _some(rng, dtype, 20, m + 9), np.sort(rng.permutation(20)[:n])
    turns = np.full(m, np.nan, dtype)
    turns[:] = 0.5
    kernels.project_columns(x, columns, W, 0, 7, turns)
    assert np.allclose(turns - 0.5, naive.project_columns(x, columns, W, 7, m), atol=TOLERANCE[dtype], rtol=0)
    one_by_one = np.full(m, 0.5, dtype)
    for j in columns:
        _accumulate(x[j], W[j, 7 : 7 + m], one_by_one)
    assert turns.tobytes() == one_by_one.tobytes()
    if n:
        above = columns[0]
        turns[:] = 0.5
        kernels.project_columns(x, columns, W[above:], above, 7, turns)
        assert turns.tobytes() == one_by_one.tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("n", "d", "missing"), [(1, 5, 0.0), (9, 64, 0.5), (5, 150, 0.9), (40, 129, 0.1)])
def test_project_some(dtype, n, d, missing):
    """In strips of inputs, all or most of which some rows do not have: with the bits of each row alone."""
    rng, m = np.random.default_rng(d), 37
    X, W = _some(rng, dtype, n, d), _some(rng, dtype, d, m + 9)
    X *= rng.random((n, d)) >= missing
    X[0] = 0
    columns, ends = np.empty((n, d), np.int64), np.empty(n, np.int64)
    for r in range(n):
        ends[r] = kernels.observed(X[r], columns[r])
    turns = np.full((n + 2, 50), np.nan, dtype)
    kernels._project_some(X, columns, ends, W, 7, m, np.empty((64, m + 1), dtype), turns)
    exact = naive._project_some(X, W, 7, m)
    assert np.allclose(turns[:n, :m], exact, atol=10 * TOLERANCE[dtype], rtol=0)
    for r in range(n):
        alone = np.zeros(m, dtype)
        kernels.project_columns(X[r], columns[r, : ends[r]], W, 0, 7, alone)
        assert turns[r, :m].tobytes() == alone.tobytes()


@numba.njit
def _accumulate(value, row, turns):
    for i in range(turns.shape[0]):
        turns[i] = multiply_add(value, row[i], turns[i])


@given(st.integers(1, 30), st.integers(1, 40))
def test_largest_eigenvalue(n, rank):
    # Means apart from 0, as kernel matrices have: the largest eigenvalue stands out.
    factor = np.random.default_rng(n + 100 * rank).normal(0.7, 1, size=(n, rank))
    A = factor @ factor.T
    assert kernels.largest_eigenvalue(A) == pytest.approx(naive.largest_eigenvalue(A), rel=1e-3)
