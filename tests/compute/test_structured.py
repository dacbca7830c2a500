"""Structured frequencies against the matrices that they stand for, their law, and what no row may notice of another."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from streamkernel.compute import lanes
from streamkernel.compute import structured as kernels
from streamkernel.compute.features import SINE
from streamkernel.compute.structured import PART, Groups
from streamkernel.expansion.sources import SMALLEST, Stacks
from tests import naive

LANES = lanes.LANES
_SINE = SINE[np.dtype("float32")]
SIZES = [16, 32, 64, 128, 256, 512, 1024]
words = st.integers(0, 2**64 - 1)
NO_NORMS = np.zeros((9, 0), np.float32)


def _groups(*sizes):
    return Groups(np.array([0, *np.cumsum(sizes)[:-1]]), np.array(sizes))


def _rows(rng, n, d):
    return rng.normal(size=(n, d)).astype(np.float32)


@pytest.mark.parametrize("n", SIZES)
def test_transform(n):
    """Of whole numbers without a rounding, as long as they stay small."""
    rng = np.random.default_rng(n)
    signs = rng.integers(0, 2**32, 3 * max(n // 32, 1) * LANES, np.uint32)
    for exact in [True, False] if n <= 128 else [False]:
        values = rng.integers(-1, 2, LANES * n) if exact else rng.normal(size=LANES * n)
        data = values.astype(np.float32)
        kernels._transform(data, signs, n)
        tolerance = 0 if exact else 1e-6 * n**1.5
        assert np.abs(data - naive._transform(values, signs, n)).max() <= tolerance


# Draws ----------------------------------------------------------------------------------------------------------------


@given(words, st.integers(0, 40), st.integers(0, 2**30), st.integers(1, 20))
def test_words_and_signs(seed, group, tile, n):
    word = kernels._stack_word(np.uint64(seed), group, tile)
    assert int(word) == naive._stack_word(seed, group, tile)
    signs = np.empty(n, np.uint32)
    kernels._draw_signs(np.uint64(word), signs)
    assert signs.tolist() == naive._draw_signs(int(word), n)


@given(words, st.sampled_from(SIZES), st.floats(1e-3, 1e3), st.integers(1, 30))
def test_norms_bit_for_bit(word, n, scale, m):
    norms = np.empty(m, np.float32)
    kernels._draw_norms(np.uint64(word), n, scale, norms)
    assert norms.tobytes() == naive._draw_norms(word, n, scale, m).astype(np.float32).tobytes()


@pytest.mark.parametrize("n", [16, 128, 4096])
def test_norms_are_those_of_gaussian_vectors(n):
    norms = np.empty(200_000, np.float32)
    kernels._draw_norms(np.uint64(n), n, 1.0, norms)
    chi = stats.chi(n)
    assert norms.min() > 0
    assert norms.mean() == pytest.approx(chi.mean(), abs=4 * chi.std() / math.sqrt(len(norms)) + 1e-4 * chi.mean())
    assert norms.std() == pytest.approx(chi.std(), rel=0.01)
    # What the kernel's estimate rests on: a mean square of n.
    assert np.square(norms, dtype=np.float64).mean() == pytest.approx(n, rel=4 * math.sqrt(2 / n / len(norms)) + 1e-3)
    levels = [0.001, 0.05, 0.5, 0.95, 0.999]
    assert np.quantile(norms, levels) == pytest.approx(chi.ppf(levels), abs=0.1 * chi.std())


@given(words, st.sampled_from([(16,), (16, 16, 32), (32, 32)]), st.integers(0, 2), st.floats(1e-3, 1e3))
def test_draw_norms(seed, sizes, at, scale):
    groups, width = _groups(*sizes), 2 * LANES * max(sizes)
    norms = np.full((len(sizes), width), np.nan, np.float32)
    kernels.draw_norms(groups, np.uint64(seed), scale, at * width, norms)
    twin = np.array(naive.draw_norms(groups, seed, scale, at * width, width))
    assert np.allclose(norms, twin, rtol=1e-6, atol=0)


# Projections ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [16, 64])
@pytest.mark.parametrize("d", [3, 16, 70])
def test_add_group(n, d):
    rng = np.random.default_rng(n + d)
    X, turns = _rows(rng, 2, d), _rows(rng, 2, LANES * n + 9)
    signs, norms = rng.integers(0, 2**32, 3 * max(n // 32, 1) * LANES, np.uint32), _rows(rng, 1, LANES * n)[0] / n**1.5
    for start in (0, 2):
        after = turns.copy()
        kernels._add_group(X, 1, start, signs, norms, n, np.empty(LANES * n, np.float32), after, 5)
        assert (after[0] == turns[0]).all()
        assert np.allclose(after[1], naive._add_group(X[1], start, signs, norms, n, turns[1], 5), atol=2e-4, rtol=0)


SHAPES = [(3, (16,)), (16, (16,)), (20, (16, 16)), (50, (16, 16, 32)), (40, (64,))]


@pytest.mark.parametrize(("d", "sizes"), SHAPES)
@pytest.mark.parametrize("tiles", [1, 2])
def test_add_turns(d, sizes, tiles):
    rng = np.random.default_rng(d)
    X, groups, width = _rows(rng, 2, d), _groups(*sizes), tiles * LANES * max(sizes)
    start = _rows(rng, 2, width)
    for first in (0, width):
        turns = start.copy()
        kernels.add_turns(X, groups, np.uint64(5), 0.2, NO_NORMS, first, width, turns)
        assert np.allclose(turns, naive.add_turns(X, groups, 5, 0.2, first, start), atol=1e-4, rtol=0)
        # Norms that are kept are those that would be drawn.
        kept, again = np.empty((len(sizes), 2 * width), np.float32), start.copy()
        kernels.draw_norms(groups, np.uint64(5), 0.2, 0, kept)
        kernels.add_turns(X, groups, np.uint64(5), 0.2, kept, first, width, again)
        assert again.tobytes() == turns.tobytes()


@pytest.mark.parametrize("n", [16, 128])
def test_the_rows_of_a_stack_are_orthogonal_and_as_long_as_their_norms(n):
    turns, norms = np.zeros((n, LANES * n), np.float32), np.empty((1, LANES * n), np.float32)
    kernels.add_turns(np.eye(n, dtype=np.float32), _groups(n), np.uint64(1), 1.0, NO_NORMS, 0, LANES * n, turns)
    kernels.draw_norms(_groups(n), np.uint64(1), 1.0, 0, norms)
    for stack in range(LANES):
        W = turns.T[stack::LANES].astype(np.float64)  # row f // 16 of stack f % 16
        lengths = norms[0, stack::LANES] * n**1.5
        np.testing.assert_allclose(W @ W.T, np.diag(lengths**2), atol=1e-4 * n)
    # Others are as far from orthogonal as Gaussian vectors are.
    W = turns.T.astype(np.float64) / math.sqrt(n)
    cosines = (W[0::LANES] * W[1::LANES]).sum(axis=1)
    assert 0.5 < cosines.std() * math.sqrt(n) < 2


@pytest.mark.parametrize(("d", "sizes"), SHAPES)
@pytest.mark.parametrize(("m", "K"), [(1, 3), (300, 1), (PART, 3), (PART + 700, 1)])
def test_structured_scores(d, sizes, m, K):
    rng = np.random.default_rng(d + m)
    X, groups, alpha, start = (
        _rows(rng, 2, d),
        _groups(*sizes),
        _rows(rng, K, 2 * m).reshape(K, 2, m),
        rng.normal(size=(2, K)),
    )
    width = max(PART, LANES * max(sizes))
    scores = start.copy()
    kernels.structured_scores(X, groups, np.uint64(5), 0.2, NO_NORMS, width, alpha, m, _SINE, scores)
    exact = naive.structured_scores(X, groups, 5, 0.2, alpha, m, start)
    assert np.allclose(scores, exact, atol=1e-3 * math.sqrt(1 + m / 500), rtol=0)


@pytest.mark.parametrize(("d", "sizes"), SHAPES)
@pytest.mark.parametrize(("first", "F"), [(0, 1), (96, 32), (PART - 20, 33)])
def test_structured_features(d, sizes, first, F):
    X, groups, width = _rows(np.random.default_rng(d), 3, d), _groups(*sizes), max(PART, LANES * max(sizes))
    out = np.empty((3, 2 * F), np.float32)
    kernels.structured_features(X, groups, np.uint64(5), 0.2, NO_NORMS, width, first, _SINE, out)
    assert np.allclose(out, naive.structured_features(X, groups, 5, 0.2, first, F), atol=2e-4, rtol=0)


@given(
    first_size=st.sampled_from([SMALLEST, 2 * SMALLEST]),
    n=st.integers(1, 40),
    d=st.integers(1, 80),
    later=st.sampled_from([0, 1, 40, 200]),
    blocks=st.integers(1, 80),
    cache_bytes=st.sampled_from([0, 40_000, 2**26]),
    missing=st.sampled_from([0.0, 0.9]),
)
def test_a_rows_bits_do_not_depend_on_its_company(first_size, n, d, later, blocks, cache_bytes, missing):
    """Not on other rows, nor on inputs that came later, whatever groups they need, nor on what is kept."""
    rng, F, K = np.random.default_rng(n + d + blocks), 64, 2
    X, alpha = _rows(rng, n, d) * (rng.random((n, d)) >= missing), _rows(rng, K, 2 * F * blocks).reshape(K, 2, -1)
    X = X.astype(np.float32)
    keys = np.arange(d + later, dtype=np.uint64)

    def scored(stacks, rows, n_keys):
        total = np.zeros((len(rows), K))
        stacks.add_scores(rows, keys[:n_keys], keys[:0], 1.5, alpha, F * blocks, total)
        out = np.empty((len(rows), 2 * F), np.float32)
        stacks.features(blocks - 1, rows, keys[:n_keys], 1.5, out)
        return total, out

    def fresh(kept):
        stacks = Stacks(F, kept, 3)
        stacks.first_size = first_size
        return stacks

    stacks = fresh(cache_bytes)
    together, features = scored(stacks, X, d)
    wider = np.pad(X, ((0, 0), (0, later)))
    for r in range(0, n, 7):
        for other in (stacks, fresh(0)):
            total, out = scored(other, wider[r : r + 1], d + later)
            assert total.tobytes() == together[r].tobytes()
            assert out.tobytes() == features[r].tobytes()
