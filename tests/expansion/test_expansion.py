"""Blocks that are drawn again or kept, coefficients and their one scale."""

import numpy as np
from hypothesis import given, settings
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


@settings(max_examples=20)
@given(
    shape=st.sampled_from([(1, 1), (1, 30), (3, 17), (32, 20), (600, 3)]),
    d=st.integers(1, 9),
    late=st.integers(0, 9),
    cache_bytes=st.sampled_from([0, 1, 100, 1000, 5000, 100_000, 2**26]),
    dtype=st.sampled_from(["float32", "float64"]),
)
def test_the_cache_changes_no_bit(shape, d, late, cache_bytes, dtype):
    F, n_blocks = shape
    rng = np.random.default_rng(d)
    keys = _keys(d + late)
    arguments = {"F": F, "dtype": dtype}
    plain, cached = _grown(n_blocks, cache_bytes=0, **arguments), _grown(n_blocks, cache_bytes=cache_bytes, **arguments)
    for known in (d, d + late):  # the second time some inputs are late
        X = rng.normal(size=(3, d + late)).astype(dtype)
        rows = X[:, :known].copy()
        ours = cached.scores(rows, keys[:known], NO_KEYS)
        assert ours.tobytes() == plain.scores(rows, keys[:known], NO_KEYS).tobytes()
        # The same inputs, some of them not known yet.
        assert cached.scores(rows, keys[:1], keys[1:known]).tobytes() == ours.tobytes()
        for block in (0, n_blocks - 1, n_blocks):
            assert (
                cached.features(block, X[:, :known], keys[:known]).tobytes()
                == plain.features(block, X[:, :known], keys[:known]).tobytes()
            )
        assert cached.frequencies.cache.W.nbytes <= cache_bytes
    assert cached.nbytes - plain.nbytes == cached.frequencies.cache.W.nbytes
    assert plain.frequencies.cache.W.nbytes == 0


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
