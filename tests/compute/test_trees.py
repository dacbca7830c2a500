"""Trees against their plain twins, and against what trees are for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.adaptive.forest import NODES, TreeEnsembles
from streamkernel.compute import binning, splits, tree_growth, trees
from tests import naive


@pytest.fixture
def rng():
    return np.random.default_rng(3)


VALUE = st.one_of(st.sampled_from([0.0, 1.0, -1.0, 1e12, np.nan]), st.floats(-10, 10, width=16))


def _binned(x):
    codes, cuts = np.empty(len(x), np.uint8), np.empty(binning.BINS - 1)
    n_bins = binning.bin_column(x, codes, cuts)
    return codes, cuts[: n_bins - 1]


@pytest.mark.parametrize("n", [0, 1, 2, 30, 513])
def test_sort(rng, n):
    values = np.round(rng.normal(size=n), 1)
    expected = values.copy()
    naive.sort(expected)
    binning.sort(values)
    assert values.tolist() == expected.tolist()


@given(st.lists(VALUE, min_size=1, max_size=60))
def test_bins(values):
    x = np.array(values)
    codes, cuts = _binned(x)
    expected_codes, expected_cuts = naive.bin_column(x)
    assert cuts.tolist() == expected_cuts
    assert codes.tolist() == expected_codes


def test_bins_of_a_long_column_are_of_its_quantiles(rng):
    x = rng.normal(size=2000)
    codes, cuts = _binned(x)
    assert (codes.tolist(), cuts.tolist()) == naive.bin_column(x)
    shares = np.bincount(codes) / len(x)
    assert len(shares) == binning.BINS - 1
    assert shares.max() < 3 / len(shares)


def test_a_rare_value_has_an_interval():
    x = np.zeros(2000)
    x[777] = 1.0
    codes, cuts = _binned(x)
    assert cuts.tolist() == [0.5]
    assert np.flatnonzero(codes).tolist() == [777]


def test_an_input_that_is_there_or_not_can_be_split():
    x = np.where(np.arange(50) % 3 == 0, 1.0, np.nan)
    codes, cuts = _binned(x)
    assert cuts.tolist() == [np.inf]
    assert (codes == np.isnan(x)).all()


def _problem(rng, n, d, K):
    X = np.round(rng.normal(size=(n, d)), 1)
    X[rng.random(X.shape) < 0.05] = np.nan
    codes, cuts, n_bins = np.empty((d, n), np.uint8), np.empty((d, binning.BINS - 1)), np.empty(d, np.int64)
    for j in range(d):
        n_bins[j] = binning.bin_column(np.ascontiguousarray(X[:, j]), codes[j], cuts[j])
    signal = np.nan_to_num(X[:, :1]) > 0
    targets = rng.normal(size=(n, K)) * 0.3 + signal * rng.normal(size=K)
    return X, codes, cuts, n_bins, targets, rng.uniform(0.5, 2.0, n)


@pytest.mark.parametrize("k", [1, 3])
def test_the_best_cut(rng, k):
    _, codes, _, _, targets, weights = _problem(rng, 80, 3, 3)
    rows = rng.permutation(80)[:50]
    R = np.hstack([targets[:, :k] * weights[:, None], weights[:, None]])
    totals, counts = np.zeros((binning.BINS, k + 1)), np.zeros(binning.BINS, np.int64)
    sums = R[rows].sum(axis=0)
    assert splits.explained(sums) == pytest.approx(naive.explained(sums))
    for column in codes:
        gain, cut = splits.best_cut(column, rows, R, sums, splits.explained(sums), totals, counts)
        expected_gain, expected_cut = naive.best_cut(column, rows, R)
        assert gain == pytest.approx(expected_gain, rel=1e-9)
        assert cut == expected_cut
        assert not totals.any()
        assert not counts.any()


def test_rounding_is_no_gain():
    assert splits.explains_more(1.0, 0.5, 1e3)
    assert naive.explains_more(1.0, 0.5, 1e3)
    assert not splits.explains_more(1.0 + 1e-12, 1.0, 1e3)
    assert not naive.explains_more(1.0 + 1e-12, 1.0, 1e3)
    assert not splits.explains_more(0.0, 0.0, 0.0)


def test_a_partition_keeps_every_record(rng):
    codes = rng.integers(0, 9, 70).astype(np.uint8)
    for cut in range(-1, 10):
        rows = rng.permutation(70)[:40]
        expected = naive.partition(codes, cut, rows.tolist())
        middle = splits.partition(codes, cut, rows)
        assert sorted(rows[:middle]) == sorted(expected[0])
        assert sorted(rows[middle:]) == sorted(expected[1])


@pytest.mark.parametrize("K", [1, 2, 8, 9, 30])
def test_the_outputs_watched(rng, K):
    targets, weights = rng.normal(size=(20, K)), rng.uniform(size=20)
    np.testing.assert_allclose(
        splits.watched(targets, weights, np.uint64(5)), naive.watched(targets, weights, 5), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize(
    ("n", "d", "K", "most"), [(60, 2, 1, NODES), (200, 5, 3, NODES), (150, 40, 10, 31), (5, 2, 2, 9)]
)
def test_a_tree(rng, n, d, K, most):
    X, codes, cuts, n_bins, targets, weights = _problem(rng, n, d, K)
    features, children = np.full(most, -1, np.int32), np.zeros(most, np.int32)
    thresholds, values, node_weights = np.zeros(most), np.zeros((most, K)), np.zeros(most)
    tree_growth.grow(
        codes, cuts, n_bins, targets, weights, np.uint64(77), features, thresholds, children, values, node_weights
    )
    expected = naive.grow(codes, cuts, targets, weights, 77, most)
    assert len(expected) <= most
    for node, (feature, threshold, child, value, weight) in enumerate(expected):
        assert features[node] == feature
        if feature >= 0:
            assert (thresholds[node], children[node]) == (threshold, child)
        np.testing.assert_allclose(values[node], value, rtol=1e-9, atol=1e-12)
        assert node_weights[node] == pytest.approx(weight)
    for x in X:
        assert trees.leaf_of(x, features, thresholds, children) == naive.leaf_of(x, expected)


@pytest.mark.parametrize("weight", [0.3, 1.0, 80.0])
def test_a_leaf_follows(rng, weight):
    values, target = rng.normal(size=(4, 3)), rng.normal(size=3)
    weights = np.array([0.0, 3.0, 500.0, 7.0])
    for leaf in range(4):
        expected = naive.follow(values[leaf], weights[leaf], target, weight)
        trees.follow(values, weights, leaf, target, weight)
        np.testing.assert_allclose(values[leaf], expected[0], rtol=1e-12)
        assert weights[leaf] == expected[1]


def test_an_ensemble_over_a_stream(rng):
    """Two ensembles of three trees through a window that is filled twice, against the twin of each."""
    forest = TreeEnsembles(n_ensembles=2, n_trees=3, window=64)
    forest.begin(3, 2)
    twins = [([], []), ([], [])]
    since = grown = 0
    said = np.empty((2, 2))
    for _ in range(150):
        x = np.round(rng.normal(size=3), 1)
        targets = np.array([[x[0] > 0, x[1]], [x[2], x[0] * x[1]]]) + 0.1 * rng.normal(size=(2, 2))
        trees.predict_trees(forest.arrays, x, said)
        for (ensemble, _), values in zip(twins, said, strict=True):
            np.testing.assert_allclose(values, naive.predict_trees(ensemble, x, 2), rtol=1e-9, atol=1e-12)
        if trees.learn_trees(forest.arrays, x, targets, 1.5):
            forest.grow()
        for (ensemble, window), target in zip(twins, targets, strict=True):
            after = naive.learn_trees(ensemble, window, x, target, 1.5, 64, 3, since, grown)
        since, grown = after
        assert forest.arrays.counts.tolist() == [len(window), since, grown]
    assert grown > 6


def test_the_oldest_tree_is_grown(rng):
    forest = TreeEnsembles(n_ensembles=1, n_trees=2, window=40)
    forest.begin(2, 1)
    records = [(rng.normal(size=2), rng.normal(size=1), 1.0) for _ in range(40)]
    for place, (x, target, weight) in enumerate(records):
        forest.arrays.rows[place], forest.arrays.targets[0, place], forest.arrays.weights[place] = x, target, weight
    forest.arrays.counts[0] = 40
    for grown in range(3):
        before = forest.arrays.values.copy()
        tree_growth.grow_oldest(forest.arrays)
        assert (before[0, 1 - grown % 2] == forest.arrays.values[0, 1 - grown % 2]).all()
        for node, (*_, value, _) in enumerate(naive.grow_oldest(records, grown)):
            np.testing.assert_allclose(forest.arrays.values[0, grown % 2, node], value, rtol=1e-9, atol=1e-12)


def test_a_box_is_found_where_no_sum_of_waves_finds_it(rng):
    """An axis-aligned rule of three inputs among ten, learnt from one window."""
    X = rng.uniform(size=(3000, 10))
    rule = (X[:, 0] > 0.4) & (X[:, 1] < 0.7) ^ (X[:, 2] > 0.5)
    forest = TreeEnsembles(n_ensembles=1, n_trees=4, window=2000)
    forest.begin(10, 1)
    said, errors = np.empty((1, 1)), []
    for x, y in zip(X, rule, strict=True):
        trees.predict_trees(forest.arrays, x, said)
        errors.append((said[0, 0] > 0.5) != y)
        if trees.learn_trees(forest.arrays, x, np.array([[float(y)]]), 1.0):
            forest.grow()
    assert np.mean(errors[-500:]) < 0.05
