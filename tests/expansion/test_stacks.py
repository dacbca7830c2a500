"""Stacks: groups of inputs that only ever grow in number, norms that are kept or not, and the kernel they estimate."""

import math

import numpy as np
import pytest

from streamkernel.expansion.expansion import Expansion
from streamkernel.expansion.sources import LARGEST, SMALLEST, Stacks
from streamkernel.kernels import Gaussian
from streamkernel.records.rows import Rows

NO_KEYS = np.zeros(0, np.uint64)
BANDWIDTH = 1.7


def _stacks(first_size=SMALLEST, block_size=32, cache_bytes=2**20, seed=3):
    stacks = Stacks(block_size, cache_bytes, seed)
    stacks.first_size = first_size
    return stacks


def _keys(d):
    return np.arange(d, dtype=np.uint64)


def _rows(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def _alpha(m, K=2):
    return np.random.default_rng(m).normal(size=(K, 2, m)).astype(np.float32)


def _scores(stacks, X, alpha):
    total = np.zeros((len(X), len(alpha)))
    stacks.add_scores(X, _keys(X.shape[1]), NO_KEYS, BANDWIDTH, alpha, alpha.shape[2], total)
    return total


def _expanded(alpha, F=50):
    """An expansion of the smallest groups and some coefficients."""
    expansion = Expansion(Gaussian(BANDWIDTH, structured=True), F, np.dtype("float32"), 2**20, 3)
    expansion.begin(np.zeros((1, 0), np.float32), BANDWIDTH)
    K, _, m = alpha.shape
    expansion.widen(K)
    for block in range(m // F):
        expansion.add(block, alpha[:, :, block * F : (block + 1) * F].reshape(K, 2 * F))
    return expansion


def _bits(expansion, X, n_extras=0):
    """The scores of rows, the last columns of which are inputs not seen before."""
    d = X.shape[1] - n_extras
    return expansion.scores(X, _keys(d), _keys(n_extras))


def _features(stacks, X, block=0):
    out = np.empty((len(X), 2 * stacks.block_size), np.float32)
    stacks.features(block, X, _keys(X.shape[1]), BANDWIDTH, out)
    return out


# Groups ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_inputs", "size"),
    [(1, SMALLEST), (SMALLEST, SMALLEST), (SMALLEST + 1, 2 * SMALLEST), (784, 1024), (4096, 4096), (9000, 4096)],
)
def test_the_first_group_holds_the_first_inputs(n_inputs, size):
    X = np.zeros((3, n_inputs + 40), np.float32)
    X[1, n_inputs - 1] = -0.5
    stacks = Stacks(32, 0, 0)
    stacks.begin(X)
    assert stacks.first_size == size
    stacks.begin(np.ones((1, 9000), np.float32))  # once chosen it stays
    assert stacks.first_size == size


def test_rows_without_an_input_begin_with_the_smallest_group():
    for X in (np.zeros((3, 0), np.float32), np.zeros((3, 200), np.float32)):
        stacks = Stacks(32, 0, 0)
        stacks.begin(X)
        assert stacks.first_size == SMALLEST


@pytest.mark.parametrize(
    ("first_size", "n_inputs", "sizes"),
    [
        (64, 0, [64]),
        (64, 64, [64]),
        (64, 65, [64, 64]),
        (64, 257, [64, 64, 128, 256]),
        (2048, 9000, [2048, 2048, 4096, 4096]),
        (4096, 12_289, [4096] * 4),
    ],
)
def test_a_later_group_is_as_large_as_all_before_it(first_size, n_inputs, sizes):
    groups = _stacks(first_size).groups(n_inputs)
    assert groups.sizes.tolist() == sizes
    assert groups.starts.tolist() == [sum(sizes[:i]) for i in range(len(sizes))]
    assert max(sizes) <= LARGEST
    more = _stacks(first_size).groups(n_inputs + 20_000)
    assert more.sizes[: len(sizes)].tolist() == sizes
    assert more.starts[: len(sizes)].tolist() == groups.starts.tolist()


@pytest.mark.parametrize(("first_size", "d"), [(SMALLEST, 10), (SMALLEST, 2 * SMALLEST + 1), (64, 50), (4096, 4000)])
@pytest.mark.parametrize("later", [1, 30, 300])
def test_later_inputs_change_no_bit_of_rows_without_them(first_size, d, later):
    X, alpha = _rows(3, d), _alpha(2500)
    wider = np.pad(X, ((0, 0), (0, later)))
    wider[2, d:] = 1
    before, after = (_scores(_stacks(first_size), rows, alpha) for rows in (X, wider))
    assert after[:2].tobytes() == before[:2].tobytes()
    assert (after[2] != before[2]).all()
    for block in (0, 70):
        assert _features(_stacks(first_size), wider, block)[:2].tobytes() == (
            _features(_stacks(first_size), X, block)[:2].tobytes()
        )


# Norms that are kept --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cache_bytes", [0, 1, 8191, 8192, 30_000, 100_000, 2**26])
def test_what_is_kept_changes_no_bit_while_blocks_and_groups_are_added(cache_bytes):
    """2,048 norms of a group are 8,192 bytes."""
    X = _rows(3, 200)
    X[0, 40:] = X[1, 60:] = 0
    stacks, kept = _stacks(cache_bytes=cache_bytes), []
    for d, m in [(10, 32), (10, 64), (10, 2048), (40, 2080), (40, 9000), (200, 9032), (200, 20_000)]:
        alpha, rows = _alpha(m), np.ascontiguousarray(X[:, :d])
        assert _scores(stacks, rows, alpha).tobytes() == _scores(_stacks(cache_bytes=0), rows, alpha).tobytes()
        for block in (0, m // 32 - 1, m // 32 + 100):
            assert _features(stacks, rows, block).tobytes() == (
                _features(_stacks(cache_bytes=0), rows, block).tobytes()
            )
        assert stacks.nbytes <= cache_bytes
        kept.append(stacks.nbytes)
    assert (kept[-1] > 0) == (cache_bytes >= 2048 * 4 * len(stacks.groups(200).sizes))
    assert (kept[0] > 0) == (cache_bytes >= 2048 * 4)


def test_rows_with_unseen_inputs_leave_what_is_kept():
    expansion, X = _expanded(_alpha(300)), _rows(2, SMALLEST)
    before = _bits(expansion, X)
    kept = expansion.frequencies.nbytes
    _bits(expansion, np.pad(X, ((0, 0), (0, 30)), constant_values=1), n_extras=30)
    assert expansion.frequencies.nbytes == kept > 0
    assert _bits(expansion, X).tobytes() == before.tobytes()


# Company --------------------------------------------------------------------------------------------------------------


def test_many_rows_have_the_bits_of_each_alone():
    assert Stacks.add_many is Stacks.add_scores
    for first_size, d in [(SMALLEST, 9), (SMALLEST, 140), (64, 60)]:
        X, alpha = _rows(70, d), _alpha(2600)
        X[::3, d // 2 :] = 0
        stacks = _stacks(first_size)
        together, features = _scores(stacks, X, alpha), _features(stacks, X)
        for r in range(70):
            assert _scores(stacks, X[r : r + 1], alpha).tobytes() == together[r].tobytes()
            assert _features(stacks, X[r : r + 1]).tobytes() == features[r].tobytes()


@pytest.mark.parametrize("d", [3, SMALLEST - 1, 2 * SMALLEST - 2])
@pytest.mark.parametrize("n_others", [0, 5, 60])
@pytest.mark.parametrize("n_later", [0, 2])
def test_an_unseen_input_has_the_place_it_has_when_its_row_comes_alone(d, n_others, n_later):
    """And the bits of a column that was just added; -0 is a number that is 0 and has a place too.

    Also where records after it, of the same call, bring columns.
    """
    expansion = _expanded(_alpha(2500))
    X = np.zeros((4, d + 4 + n_others), np.float32)
    X[:, :d] = _rows(4, d)
    X[1, d + 1] = 1  # one string
    X[2, [d, d + 1, d + 3]] = -0.0, 0.5, 2
    X[3, d + 4 :] = 1  # company
    own = [X[0, :d], np.append(X[1, :d], 1), np.append(X[2, :d], [-0.0, 0.5, 2])]
    n_known = np.full(4, d - n_later)
    X[:, d - n_later : d] = 0
    scores = _bits(expansion, Rows(X[:, :d], X[:, d:], _keys(4 + n_others), n_known).in_order(X), n_extras=4 + n_others)
    own = [np.delete(row, np.s_[d - n_later : d]) for row in own]
    for row, score in zip(own, scores, strict=False):
        alone = np.array([row], np.float32)
        assert _bits(expansion, alone, n_extras=len(row) - d + n_later).tobytes() == score.tobytes()
        assert _bits(expansion, alone).tobytes() == score.tobytes()


# The kernel -----------------------------------------------------------------------------------------------------------


def _expansion(X, structured, bandwidth, m, seed, first=None):
    expansion = Expansion(Gaussian(bandwidth, structured), m, np.dtype("float32"), 0, seed)
    expansion.begin(X if first is None else X[:, :first], bandwidth)
    return expansion


def _estimate(*arguments):
    X = arguments[0]
    phi = _expansion(*arguments).features(0, X, _keys(X.shape[1])).astype(np.float64)
    return phi @ phi.T


@pytest.mark.parametrize(("d", "first"), [(2, 2), (16, 16), (50, 50), (50, 16), (140, 16)])
def test_the_estimate_of_the_kernel_is_unbiased(d, first):
    """The mean of many seeds, of pairs half a bandwidth to some bandwidths apart, in one group and across some."""
    X = _rows(5, d, seed=d)
    X[0] = 0
    lengths = np.array([[1], [0.5], [1], [1.5], [2]])
    X = (X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9) * lengths).astype(np.float32)
    exact = Gaussian().matrix(X.astype(np.float64), X.astype(np.float64), 1.0)
    n_seeds = 300
    estimates = np.array([_estimate(X, True, 1.0, 2048, seed, first) for seed in range(n_seeds)])
    pairs = np.triu_indices(5, 1)
    errors = (estimates - exact)[:, *pairs]
    off = errors.mean(axis=0) / (errors.std(axis=0) / math.sqrt(n_seeds))
    assert np.abs(off).max() < 4


def _error(X, structured, bandwidth, seeds):
    exact, pairs = Gaussian().matrix(X, X, bandwidth), np.triu_indices(len(X), 1)
    squares = [((_estimate(X, structured, bandwidth, 8192, seed) - exact)[pairs] ** 2).mean() for seed in seeds]
    return math.sqrt(np.mean(squares))


@pytest.mark.parametrize(("d", "most"), [(50, 0.4), (128, 0.4), (20, 0.5)])
def test_the_error_is_a_part_of_that_of_independent_frequencies(d, most):
    """At m = 8,192, the bandwidth the median distance; of 20 inputs in a group of 32 it is .42."""
    X = _rows(100, d)
    bandwidth = float(np.median(np.linalg.norm(X[:, None] - X[None], axis=2)[np.triu_indices(100, 1)]))
    errors = [_error(X, structured, bandwidth, range(6)) for structured in (True, False)]
    assert errors[0] <= most * errors[1]
