"""Projection, cosine and sine, sums: every kernel against its twin, every row by itself."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkernel.compute import features as kernels
from streamkernel.compute.features import SINE, TILE
from tests import naive

DTYPES = [np.dtype("float32"), np.dtype("float64")]
# Of a sum of some hundred terms of size 1; a float32 projection carries its own rounding into the angle.
TOLERANCE = {DTYPES[0]: 2e-4, DTYPES[1]: 1e-11}
BOUND = {DTYPES[0]: 2e-7, DTYPES[1]: 1e-15}


def _cos_sin(turns):
    cosines, sines = np.empty_like(turns), np.empty_like(turns)
    kernels._cos_sin(turns, SINE[turns.dtype], cosines, sines)
    return cosines, sines


def _assert_accurate(turns):
    for ours, exact in zip(_cos_sin(turns), naive._cos_sin(turns), strict=True):
        assert np.abs(ours - np.array(exact)).max() <= BOUND[turns.dtype]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_cosine_and_sine_over_some_periods(dtype):
    _assert_accurate(np.linspace(-3, 3, 30_011).astype(dtype))


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


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    ("n", "d", "F", "blocks", "K"),
    [(1, 1, 1, 1, 1), (3, 5, 32, 4, 1), (2, 4, 7, 3, 10), (2, 3, 32, 2 * TILE // 32 + 1, 2), (2, 2, TILE + 3, 2, 1)],
)
def test_add_scores(dtype, n, d, F, blocks, K):
    rng = np.random.default_rng(n + d + F)
    X = rng.normal(size=(n, d)).astype(dtype)
    X[:, 0] = 0  # absent
    W = rng.normal(size=(d, blocks * F + 5)).astype(dtype)
    alpha = rng.normal(size=(blocks, K, 2 * F)).astype(dtype)
    start = rng.normal(size=(n, K))
    scores = start.copy()
    kernels.add_scores(X, W, alpha, SINE[dtype], scores)
    assert np.allclose(scores, naive.add_scores(X, W, alpha, start), atol=TOLERANCE[dtype] * math.sqrt(blocks), rtol=0)


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


@settings(max_examples=60)
@given(
    n=st.integers(1, 9),
    d=st.integers(1, 12),
    more=st.integers(0, 9),
    F=st.integers(1, 40),
    blocks=st.integers(1, 40),
    K=st.integers(1, 12),
    dtype=st.sampled_from(DTYPES),
)
def test_a_rows_bits_do_not_depend_on_its_company(n, d, more, F, blocks, K, dtype):
    """Not on other rows, nor on columns and blocks that it does not use."""
    rng = np.random.default_rng(d + F)
    X = rng.normal(size=(n, d)).astype(dtype)
    W = rng.normal(size=(d, blocks * F)).astype(dtype)
    alpha = rng.normal(size=(blocks, K, 2 * F)).astype(dtype)
    together = np.zeros((n, K))
    kernels.add_scores(X, W, alpha, SINE[dtype], together)
    features = np.empty((n, 2 * F), dtype)
    kernels.paired_features(X, W, (blocks - 1) * F, SINE[dtype], features)

    wider_X = np.pad(X, ((0, 0), (0, more)))
    wider_W = np.pad(W, ((0, more), (0, more * F)), constant_values=0.7)
    for r in range(n):
        alone = np.zeros((1, K))
        cut = min(blocks, 1 + r * 5)
        kernels.add_scores(wider_X[r : r + 1], wider_W, alpha[:cut], SINE[dtype], alone)
        kernels.add_scores(
            wider_X[r : r + 1], np.ascontiguousarray(wider_W[:, cut * F :]), alpha[cut:], SINE[dtype], alone
        )
        assert alone.tobytes() == together[r].tobytes()
        features_alone = np.empty((1, 2 * F), dtype)
        own_W = np.ascontiguousarray(wider_W[:, (blocks - 1) * F : blocks * F])
        kernels.paired_features(wider_X[r : r + 1], own_W, 0, SINE[dtype], features_alone)
        assert features_alone.tobytes() == features[r].tobytes()


@given(st.integers(1, 20), st.integers(1, 12), st.integers(1, 30))
def test_mean_outer(n, K, width):
    rng = np.random.default_rng(n * K + width)
    phi, g = rng.normal(size=(n, width)), rng.normal(size=(n, K)) * (rng.random((n, K)) < 0.7)
    out = np.full((K, width), np.nan)
    kernels.mean_outer(phi, g, out)
    assert np.allclose(out, naive.mean_outer(phi, g), atol=1e-13, rtol=0)


def test_dot_and_project():
    rng = np.random.default_rng(0)
    for dtype in DTYPES:
        a, b = rng.normal(size=(2, 137)).astype(dtype)
        assert kernels._dot(a, b) == pytest.approx(naive._dot(a, b), abs=TOLERANCE[dtype])
        W = rng.normal(size=(5, 40)).astype(dtype)
        turns = np.full(11, np.nan, dtype)
        kernels._project(a[:5], W, 7, turns)
        assert np.allclose(turns, naive._project(a[:5], W, 7, 11), atol=TOLERANCE[dtype], rtol=0)


@given(st.integers(1, 30), st.integers(1, 40))
def test_largest_eigenvalue(n, rank):
    # Means apart from 0, as kernel matrices have: the largest eigenvalue stands out.
    factor = np.random.default_rng(n + 100 * rank).normal(0.7, 1, size=(n, rank))
    A = factor @ factor.T
    assert kernels.largest_eigenvalue(A) == pytest.approx(naive.largest_eigenvalue(A), rel=1e-3)


def test_largest_eigenvalue_of_plain_cases():
    assert kernels.largest_eigenvalue(np.zeros((3, 3))) == 0
    assert kernels.largest_eigenvalue(np.eye(4)) == pytest.approx(1, rel=1e-12)
    assert kernels.largest_eigenvalue(np.ones((5, 5))) == pytest.approx(5, rel=1e-12)
