"""Trees against their plain twins, and against what trees are for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.adaptive.forest import TreeEnsembles
from streamkernel.compute import splits, tree_growth, trees
from tests import naive
from tests.compute import passes


@pytest.fixture
def rng():
    return np.random.default_rng(3)


VALUE = st.one_of(st.sampled_from([0.0, 1.0, -1.0, 1e12, np.nan]), st.floats(-10, 10, width=16))


def _binned(X, pieces=1):
    """Codes, cuts and numbers of intervals, sampled and encoded in some pieces."""
    n, d = X.shape
    samples, sizes = np.empty((d, 2 * splits.SAMPLED + 2)), np.zeros((2, d), np.int64)
    samples[:, :2] = np.inf, -np.inf
    codes, cuts, n_bins = np.full((n, d), 255, np.uint8), np.empty((d, splits.BINS - 1)), np.zeros(d, np.int64)
    step = tree_growth.sampling_step(n)
    for part in np.array_split(np.arange(n), pieces):
        splits.take_sample(X[part], part[0] if len(part) else 0, step, samples, sizes)
    for j in range(d):
        n_bins[j] = splits.find_cuts(samples[j, : 2 + sizes[0, j]], sizes[1, j], cuts[j])
    for part in np.array_split(np.arange(n), pieces):
        some = codes[part]
        splits.encode(X[part], cuts, n_bins, some)
        codes[part] = some
    return codes, [bounds[: m - 1].tolist() for bounds, m in zip(cuts, n_bins, strict=True)]


def _expected(X):
    cuts = [
        naive.find_cuts(sample, missing) for sample, missing in naive.take_sample(X, 0, naive.sampling_step(len(X)))
    ]
    return naive.encode(X, cuts), cuts


@given(st.lists(st.tuples(VALUE, VALUE), min_size=1, max_size=60), st.integers(1, 5))
def test_bins(values, pieces):
    X = np.array(values)
    codes, cuts = _binned(X, pieces)
    expected_codes, expected_cuts = _expected(X)
    assert cuts == expected_cuts
    assert codes.tolist() == expected_codes


def _problem(rng, n, d, K):
    X = np.round(rng.normal(size=(n, d)), 1)
    X[rng.random(X.shape) < 0.05] = np.nan
    signal = np.nan_to_num(X[:, :1]) > 0
    targets = rng.normal(size=(n, K)) * 0.3 + signal * rng.normal(size=K)
    return X, targets, rng.uniform(0.5, 2.0, n)


@pytest.mark.parametrize("n", [50, 70])
@pytest.mark.parametrize("K", [1, 2, 3, 7, 11])
def test_the_best_split(rng, K, n):
    """Histograms filled in two parts, the best cut of each, and the best of these."""
    X, targets, weights = _problem(rng, 80, 4, K)
    codes, cuts = _binned(X)
    rows, held, k = rng.permutation(80)[:n], np.array([3, 0, 2]), naive.n_watched(K)
    n_bins = np.array([len(bounds) + 1 for bounds in cuts])
    width = splits.lanes(K)
    watched, histograms = np.full((80, width), np.nan), np.zeros((width // 4 * 3 * splits.BINS, 4))
    splits.watch(targets, weights, np.uint64(5), watched)
    exact = naive.watch(targets, weights, 5)
    np.testing.assert_allclose(watched[:, : k + 2], exact, rtol=1e-12, atol=1e-12)
    assert not watched[:, k + 2 :].any()
    for part in (rows[:17], rows[17:]):
        splits.add_to_histograms(codes, watched, part, held, histograms)
    expected = naive.add_to_histograms(codes, exact, rows, held, np.zeros((3, splits.BINS, k + 2)))
    mine = histograms.reshape(width // 4, 3, splits.BINS, 4).transpose(1, 2, 0, 3).reshape(3, splits.BINS, width)
    np.testing.assert_allclose(mine[..., : k + 2], expected, rtol=1e-12, atol=1e-12)
    sums = np.zeros(width)
    sums[: k + 2] = expected[0].sum(axis=0)
    found, kept = np.empty(3, np.uint64), (np.arange(width) < k).astype(float)
    assert splits.explained(sums, k) == pytest.approx(naive.explained(sums, k))
    splits.occupied(codes, rows, held, found)
    assert found.tolist() == naive.occupied(codes, rows, held)
    arguments = rows, histograms.copy(), held, n_bins, k, width
    assert tree_growth.best_split(codes, *arguments) == naive.best_split(expected, held, n_bins, k)
    assert not arguments[1].any()
    for every in (False, True):
        for t, j in enumerate(held):
            some = histograms.copy()
            intervals = np.uint64(2 ** n_bins[j] - 1) if every else found[t]
            places = t * splits.BINS, 3 * splits.BINS
            gain, cut = splits.best_cut(some, *places, intervals, sums, kept, k, np.empty(width))
            expected_gain, expected_cut = naive.best_cut(expected[t], n_bins[j])
            assert gain == pytest.approx(expected_gain, rel=1e-9)
            assert cut == expected_cut
            assert not some.reshape(width // 4, 3, splits.BINS, 4)[:, t].any()


def test_a_partition_keeps_every_record_and_their_order(rng):
    codes = rng.integers(0, 9, (70, 2)).astype(np.uint8)
    for cut in range(-1, 10):
        rows = rng.permutation(70)[:40]
        first, second = naive.partition(codes, 1, cut, rows.tolist())
        assert splits.partition(codes, 1, cut, rows, np.empty(40, np.int64)) == len(first)
        assert rows.tolist() == first + second


@pytest.mark.parametrize("weight", [0.3, 1.0, 80.0])
def test_a_leaf_follows(rng, weight):
    values, target = rng.normal(size=(4, 3)), rng.normal(size=3)
    weights = np.array([0.0, 3.0, 500.0, 7.0])
    for leaf in range(4):
        expected = naive.follow(values[leaf], weights[leaf], target, weight)
        trees.follow(values, weights, leaf, target, weight)
        np.testing.assert_allclose(values[leaf], expected[0], rtol=1e-12)
        assert weights[leaf] == expected[1]


def _taught(forest, records):
    for x, targets, weight in records:
        tree_growth.learn_trees(forest.arrays, x, targets, weight)


@pytest.mark.parametrize(
    ("n", "d", "K", "n_trees", "window"),
    [(110, 3, 2, 3, 40), (110, 2, 1, 1, 60), (120, 5, 3, 2, 60), (100, 40, 10, 2, 50), (80, 0, 2, 2, 40)],
)
def test_an_ensemble_over_a_stream(rng, n, d, K, n_trees, window):
    """Two ensembles whose trees are all grown again, against the twin of each: also while a growth is under way."""
    forest = TreeEnsembles(2, n_trees, window)
    forest.begin(d, K)
    twins = [naive.Ensemble(n_trees, window, K) for _ in range(2)]
    X = np.round(rng.normal(size=(n, d)), 1)
    X[rng.random(X.shape) < 0.05] = np.nan
    targets = (np.nan_to_num(X[:, :1]).sum(axis=1) > 0)[:, None, None] * rng.normal(size=(2, K))
    targets = targets + 0.3 * rng.normal(size=(n, 2, K))
    said = np.empty((2, K))
    for x, target, weight in zip(X, targets, rng.uniform(0.5, 2.0, n), strict=True):
        trees.predict_trees(forest.arrays, x, said)
        for values, ensemble, own in zip(said, twins, target, strict=True):
            np.testing.assert_allclose(values, ensemble.predict_experts(x), rtol=1e-8, atol=1e-11)
            ensemble.learn(x, own, weight)
        _taught(forest, [(x, target, weight)])
    for t, ensemble in enumerate(twins):
        passes.assert_the_trees_are(forest.arrays, t, ensemble, atol=1e-11)
        assert ensemble.grown > n_trees
