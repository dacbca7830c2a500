"""How the growth of trees is spread over records: what each of them pays, and that nothing depends on it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.adaptive.forest import NODES, TreeEnsembles
from streamkernel.compute import splits, tree_growth
from streamkernel.compute.trees import GROWING, GROWN, SEEN, SINCE
from tests import naive

#: Records, inputs, outputs, ensembles, trees and window.
SHAPES = st.tuples(
    st.integers(120, 400),
    st.integers(0, 40),
    st.integers(1, 11),
    st.integers(1, 2),
    st.integers(1, 6),
    st.sampled_from([30, 64, 300]),
)


def _stream(n, d, K, T, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, ::3] = np.round(X[:, ::3])
    X[rng.random(X.shape) < 0.02] = np.nan
    return X, rng.normal(size=(n, T, K)), rng.uniform(0.5, 2, n)


def _forest(d, K, T, n_trees, window):
    forest = TreeEnsembles(T, n_trees, window)
    forest.begin(d, K)
    return forest


def _work(forest, stream):
    """What each record did for a growth, and what it was to do, one after the other; None where none was under way."""
    arrays = forest.arrays
    for x, targets, weight in zip(*stream, strict=True):
        growing, since = int(arrays.counts[GROWING]), int(arrays.counts[SINCE])
        work, most = int(arrays.progress[tree_growth.WORK]), tree_growth.most_work(arrays)
        tree_growth.learn_trees(arrays, x, targets, weight)
        if growing:
            left = naive.records_to_grow(growing, forest.n_trees) - since
            yield int(arrays.progress[tree_growth.WORK]) - work, (most - work) // left, growing, most
        else:
            yield None


def _at_once(forest, n):
    """The largest part that is not divided: the search of a split, the records of a leaf, or some of a phase."""
    (_, d), K = forest.arrays.rows.shape, forest.arrays.targets.shape[2]
    search = min(d, tree_growth.TRIED) * splits.BINS * (tree_growth.CUT + naive.n_watched(K))
    return 2 * tree_growth.AT_ONCE + search + n * (2 + K) + 16 * (n // naive.sampling_step(n) + 3) + 20 * (1 + K + d)


@given(SHAPES)
def test_no_record_does_much_more_than_its_part(shape):
    """And a growth is done by the record before the last, or that one's part is no larger than the others'."""
    n, d, K, T, n_trees, window = shape
    forest = _forest(d, K, T, n_trees, window)
    total, n_growths = 0, 0
    for record in _work(forest, _stream(n, d, K, T)):
        if record is None:
            total = 0
            continue
        work, part, growing, most = record
        assert work <= part + _at_once(forest, growing)
        total += work
        assert total <= most
        assert most == naive.most_work(growing, d, K, T, n_trees)
        n_growths += not forest.arrays.counts[GROWING]
    assert n_growths == forest.arrays.counts[GROWN] > 0


def test_a_growth_has_the_window_it_began_with_and_ends_when_its_records_are_there():
    X, targets, weights = _stream(700, 2, 1, 1)
    forest = _forest(2, 1, 1, 2, 400)
    counts = forest.arrays.counts
    began = []
    for i in range(700):
        growing = counts[GROWING]
        tree_growth.learn_trees(forest.arrays, X[i], targets[i], weights[i])
        if counts[GROWING] > growing:
            began.append((i, int(counts[GROWING])))
            assert counts[SINCE] == 0
        if counts[GROWING] < growing:
            start, n = began[-1]
            assert i - start == max(3, n // 12)
            window, later = (
                [part[rows] for part in (X, targets[:, 0], weights)]
                for rows in (slice(start + 1 - n, start + 1), slice(start + 1, i + 1))
            )
            tree = naive.grow(*window, naive.mix64(len(began) - 1), NODES)
            naive.catch_up(tree, zip(*later, strict=True))
            m = (counts[GROWN] - 1) % 3
            np.testing.assert_allclose(forest.arrays.values[0, m, : len(tree)], [node[3] for node in tree], atol=1e-9)
    assert [n for _, n in began] == sorted(n for _, n in began)
    assert began[-1][1] == 400
    assert counts[SEEN] == 700
