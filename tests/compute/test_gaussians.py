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


def _unmixed(counted, dither):
    """The halves of the one word that the hash takes to these bits: each of its steps is undone."""
    x, y = counted >> 16, (counted & 0xFFFF) << 16 | dither
    x ^= y ^ (y >> 13)
    high = y * pow(0x85EBCA77, -1, 2**32) % 2**32 ^ x ^ (x >> 15)
    return x * pow(0x9E3779B1, -1, 2**32) % 2**32, high


@given(halves, halves)
def test_the_hash_is_a_bijection_so_its_bits_are_uniform(low, high):
    assert _unmixed(*naive.hash64(low, high)) == (low, high)


@pytest.fixture(scope="module")
def law():
    """Every value that a draw can have, float64 of shape (49, 65536), and the probability of each of its rows."""
    values = naive.shaped(naive.centered(np.arange(49)[:, None], np.arange(2**16)[None, :]))
    assert values.dtype == np.float32
    return values.astype(np.float64), np.array([math.comb(48, c) / 2**48 for c in range(49)])


def test_moments_of_the_law(law):
    values, weights = law
    moments = [float(weights @ (values**power).mean(axis=1)) for power in range(1, 7)]
    assert moments[0] == pytest.approx(0, abs=1e-12)
    assert moments[1] == pytest.approx(1, abs=1e-7)
    assert moments[2] == pytest.approx(0, abs=1e-12)
    assert moments[3] == pytest.approx(3, abs=1e-6)
    assert moments[5] == pytest.approx(15, abs=0.02)
    counts = naive.centered(np.arange(49)[:, None], np.arange(2**16)[None, :]).astype(np.float64)
    assert weights @ (counts**2).mean(axis=1) == pytest.approx(kernels.COUNTED_DEVIATION**2, rel=1e-12)


@pytest.mark.parametrize(("nearest", "farthest", "error"), [(0.0, 17.0, 1.5e-4), (17.0, 70.0, 2e-3)])
def test_characteristic_function_of_the_law(law, nearest, farthest, error):
    """E phi(x).phi(x') of inputs that differ in one coordinate, by up to 70 bandwidths."""
    values, weights = law
    coarse = np.sort(values, axis=1).reshape(49, 4096, 16).mean(axis=2)  # 4,096 points a count tell the integral
    t = np.arange(nearest, farthest, 0.4)
    ours = np.array([weights @ np.cos(u * coarse).mean(axis=1) for u in t])
    assert np.abs(ours - np.exp(-(t**2) / 2)).max() < error


def test_a_large_sample_looks_standard_normal_and_independent():
    n, d = 100_000, 16
    features = np.empty(n, np.uint64)
    kernels.feature_words(np.uint64(7), 0, features)
    out = np.empty((d, n))
    kernels.gaussians(features, np.random.default_rng(0).integers(0, 2**64, d, dtype=np.uint64), 1.0, out)
    assert abs(out.mean()) < 4 / math.sqrt(n * d)
    assert abs(out.var() - 1) < 4 * math.sqrt(2 / (n * d))
    assert abs((out**4).mean() - 3) < 4 * math.sqrt(96 / (n * d))
    pairs = np.triu_indices(d, 1)
    # The largest of 120 standard normals is past 4.5 once in a thousand times.
    for values in (out, out**2, out**3 - 3 * out):
        assert np.abs(np.corrcoef(values)[pairs]).max() < 4.5 / math.sqrt(n)
    neighbors = (out[:, 1:] * out[:, :-1]).mean(axis=1)
    assert np.abs(neighbors).max() < 4 / math.sqrt(n)
