"""Blocks that are drawn again or kept, coefficients and their one scale."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.expansion.expansion import SMALLEST_SCALE, Expansion
from streamkernel.kernels import Gaussian

NO_KEYS = np.zeros(0, np.uint64)


def _cosines(expansion, first, last, keys):
    """Of the frequencies of some blocks, shape (d, (last - first) F): a row for each input that is 1 alone."""
    F, alone = expansion.block_size, np.eye(len(keys), dtype=expansion.dtype)
    blocks = [expansion.features(block, alone, keys)[:, :F] for block in range(first, last)]
    return np.concatenate(blocks, axis=1) * np.sqrt(F, dtype=expansion.dtype)


def _expansion(F=4, dtype="float32", cache_bytes=2**20, seed=3, bandwidth=1.3):
    return Expansion(Gaussian(bandwidth), F, np.dtype(dtype), cache_bytes, seed)


def _keys(d, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, d, dtype=np.uint64)


def _grown(n_blocks, n_outputs=2, **arguments):
    expansion = _expansion(**arguments)
    expansion.widen(n_outputs)
    rng = np.random.default_rng(1)
    for block in range(n_blocks):
        expansion.add(block, rng.normal(size=(n_outputs, 2 * expansion.block_size)))
    return expansion


def test_scores_are_the_sum_of_features_times_coefficients():
    expansion = _grown(40, dtype="float64")
    X, keys = np.random.default_rng(2).normal(size=(6, 3)), _keys(3)
    plain = sum(expansion.features(k, X, keys) @ expansion.alpha[k].T for k in range(40))
    assert np.allclose(expansion.scores(X, keys, NO_KEYS), plain, atol=1e-12)


@given(st.permutations(range(6)), st.sampled_from([0, 2**20]))
def test_frequencies_belong_to_keys_not_to_columns(order, cache_bytes):
    one, other = (_grown(5, dtype="float64", cache_bytes=cache_bytes) for _ in range(2))
    keys, X = _keys(6), np.random.default_rng(4).normal(size=(3, 6))
    order = np.array(order)
    assert np.array_equal(_cosines(one, 0, 5, keys)[order], _cosines(other, 0, 5, keys[order]))
    reordered = np.ascontiguousarray(X[:, order])
    assert np.allclose(one.scores(X, keys, NO_KEYS), other.scores(reordered, keys[order], NO_KEYS), atol=1e-13, rtol=0)


def test_blocks_continue_one_stream_and_seeds_have_their_own():
    expansion = _expansion(F=4)
    keys = _keys(3)
    assert np.array_equal(_cosines(expansion, 4, 12, keys), _cosines(_expansion(F=16), 1, 3, keys))
    one, other = _cosines(expansion, 0, 500, keys).ravel(), _cosines(_expansion(F=4, seed=4), 0, 500, keys).ravel()
    assert abs(np.corrcoef(one, other)[0, 1]) < 4 / np.sqrt(len(one))


def test_the_cache_starts_over_where_columns_were_taken_back():
    expansion = _grown(6)
    keys, X = _keys(4), np.random.default_rng(5).normal(size=(2, 4)).astype(np.float32)
    expansion.scores(X, keys, NO_KEYS)
    other = np.concatenate([keys[:2], _keys(2, seed=9)])
    fresh = _grown(6)
    assert np.array_equal(expansion.scores(X, other, NO_KEYS), fresh.scores(X, other, NO_KEYS))


@given(st.lists(st.floats(0.0, 1.5), max_size=40))
def test_one_scale_stands_for_the_decay_of_every_coefficient(factors):
    expansion = _grown(3, dtype="float64")
    plain = expansion.alpha.copy()
    rng = np.random.default_rng(6)
    for factor in factors:
        expansion.decay(factor)
        assert abs(expansion.scale) >= SMALLEST_SCALE
        plain *= factor
        delta = rng.normal(size=(2, 8))
        expansion.add(1, delta)
        plain[1] += delta
    assert np.allclose(expansion.scale * expansion.alpha, plain, atol=1e-9 * max(1, np.abs(plain).max()))


def test_decay_touches_no_coefficient_until_the_scale_would_vanish():
    expansion = _grown(2)
    before = expansion.alpha.copy()
    expansion.decay(1e-3)
    assert np.array_equal(expansion.alpha, before)
    expansion.decay(1e-4)
    assert expansion.scale == 1.0
    assert np.allclose(expansion.alpha, before * np.float32(1e-7))
