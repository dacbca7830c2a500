"""The trees' arrays: how they begin, widen and come back from a record, and what a file may not say."""

import numpy as np
import pytest

from streamkernel.adaptive.forest import NODES
from streamkernel.compute import trees
from tests.adaptive.forests import WINDOW, D, K, M, T, bits_of, forest_of, learn, stream_of, taught


def test_it_begins_with_nothing_said():
    forest = forest_of()
    out = np.full((T, K), np.nan)
    trees.predict_trees(forest.arrays, np.ones(D), out)
    assert not out.any()
    assert not forest.arrays.counts.any()
    assert (forest.arrays.features == -1).all()


def test_a_later_output_is_one_whose_targets_were_zero_before():
    X, targets, weights = stream_of(120, k=K + 1)
    targets[:60, :, -1] = 0
    late, whole = forest_of(), forest_of(n_outputs=K + 1)
    learn(late, X[:60], np.ascontiguousarray(targets[:60, :, :-1]), weights[:60])
    late.add_output()
    assert late.arrays.targets.shape == (T, WINDOW + 3, K + 1)
    assert late.arrays.values.shape == (T, M + 1, NODES, K + 1)
    assert all(part.flags.c_contiguous for part in late.arrays)
    said = learn(late, X[60:], targets[60:], weights[60:])
    assert said.tobytes() == learn(whole, X, targets, weights)[60:].tobytes()
    assert bits_of(late) == bits_of(whole)


def test_the_bytes_are_those_of_window_trees_and_growth():
    kept = (WINDOW + 3) * (D + T * K + 1)
    nodes = T * (M + 1) * NODES
    growth = 8 * (7 + D * (5 + 514 + 31) + WINDOW * (8 + 2) + NODES * 3 + 2 * D * 32 * 4) + WINDOW * D
    assert forest_of().nbytes == 8 * kept + 8 * 4 + nodes * (4 + 8 + 4 + 8 * K + 8) + growth


def _refused(record, name):
    with pytest.raises(ValueError, match=f"does not fit: its field '{name}' is missing or impossible"):
        forest_of().load_state(record, D, K)


def _inner(record):
    """An inner node other than the root: ensemble, tree, node."""
    return next((t, m, node) for t, m, node in np.argwhere(record["tree_features"] >= 0).tolist() if node)


@pytest.mark.parametrize("feature", [D, D + 1, 2**31 - 1])
def test_a_feature_beyond_the_inputs_is_refused(feature):
    forest, _ = taught()
    record = forest.state()
    record["tree_features"][_inner(record)] = feature
    _refused(record, "tree_features")


@pytest.mark.parametrize("child", [-(2**31), -1, 0, "itself", NODES - 1, NODES, 2**31 - 1])
def test_a_child_that_points_backwards_or_past_the_end_is_refused(child):
    forest, _ = taught()
    record = forest.state()
    inner = _inner(record)
    record["tree_children"][inner] = inner[2] if child == "itself" else child
    _refused(record, "tree_children")
