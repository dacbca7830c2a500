"""The law of the frequencies: it is part of every checkpoint, so it is pinned here bit by bit."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.compute import gaussians as kernels
from tests import naive

words = st.integers(0, 2**64 - 1)


@given(words)
def test_mix64(word):
    assert int(kernels.mix64(np.uint64(word))) == naive.mix64(word)


@given(words, st.integers(1, 64), st.integers(0, 20))
def test_random_signs(word, n, m):
    signs = kernels.random_signs(np.uint64(word), n, m)
    assert signs.shape == (n, m)
    assert signs.T.tolist() == [list(column) for column in zip(*naive.random_signs(word, n, m), strict=True)]


@given(words, st.integers(0, 2**40), st.integers(1, 20))
def test_feature_words(seed, first, n):
    out = np.empty(n, np.uint64)
    kernels.feature_words(np.uint64(seed), first, out)
    assert out.tolist() == naive.feature_words(seed, first, n)


halves = st.integers(0, 2**32 - 1)


@given(halves, halves)
def test_normal_and_counted(low, high):
    drawn = kernels.normal(np.uint32(low), np.uint32(high))
    assert np.float32(drawn) == drawn == naive.normal(low, high)
    assert kernels.counted(np.uint32(low), np.uint32(high)) == naive.counted(low, high)


@given(st.lists(words, min_size=1, max_size=40), st.lists(words, min_size=1, max_size=4), st.floats(1e-3, 1e3))
def test_draws_are_those_of_whole_numbers_bit_for_bit(features, inputs, scale):
    for dtype in (np.float32, np.float64):
        out = np.empty((len(inputs), len(features)), dtype)
        kernels.gaussians(np.array(features, np.uint64), np.array(inputs, np.uint64), scale, out)
        assert out.tobytes() == naive.gaussians(features, inputs, scale, dtype).tobytes()


@pytest.fixture(scope="module")
def law():
    """Every value that a draw can have, float64 of shape (49, 65536), and the probability of each of its rows."""
    values = naive.shaped(naive.centered(np.arange(49)[:, None], np.arange(2**16)[None, :]))
    assert values.dtype == np.float32
    return values.astype(np.float64), np.array([math.comb(48, c) / 2**48 for c in range(49)])
