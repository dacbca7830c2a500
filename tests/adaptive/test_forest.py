"""The trees' arrays: how they begin, widen and come back from a record, and what a file may not say."""

import math

import numpy as np
import pytest

from streamkernel.adaptive.forest import NODES, TreeEnsembles
from streamkernel.compute import trees
from streamkernel.state import from_bytes, to_bytes

T, M, WINDOW, D, K = 2, 3, 40, 4, 3


def _forest(n_trees=M, n_inputs=D, n_outputs=K):
    forest = TreeEnsembles(T, n_trees, WINDOW)
    forest.begin(n_inputs, n_outputs)
    return forest


def _stream(n, d=D, k=K, seed=0):
    """Inputs, some of them not observed, and targets that follow them."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)), 1)
    X[rng.random(X.shape) < 0.05] = np.nan
    targets = (np.nan_to_num(X[:, :1]) > 0)[:, None, :] * rng.normal(size=(T, k)) + 0.1 * rng.normal(size=(n, T, k))
    return X, targets, rng.uniform(0.5, 2, n)


def _learn(forest, X, targets, weights):
    """What was said of each record before it was learnt, (n, T, K)."""
    said = np.full(targets.shape, np.nan)
    for x, target, weight, out in zip(X, targets, weights, said, strict=True):
        trees.predict_trees(forest.arrays, x, out)
        if trees.learn_trees(forest.arrays, x, target, weight):
            forest.grow()
    return said


def _bits(forest):
    return {name: value.tobytes() for name, value in forest.state().items()}


def _taught(n=75, n_trees=M):
    """Trees that learnt n records, by default some way past the second growth of some, in mid-window."""
    forest, stream = _forest(n_trees), _stream(150)
    if n_trees:
        _learn(forest, *(part[:n] for part in stream))
    return forest, [part[n:] for part in stream]


def test_it_begins_with_nothing_said():
    forest = _forest()
    out = np.full((T, K), np.nan)
    trees.predict_trees(forest.arrays, np.ones(D), out)
    assert not out.any()
    assert not forest.arrays.counts.any()
    assert (forest.arrays.features == -1).all()


def test_it_begins_anew():
    forest, _ = _taught()
    forest.begin(2, 1)
    assert _bits(forest) == _bits(_forest(n_inputs=2, n_outputs=1))
    X, targets, weights = _stream(60, 2, 1)
    other = _forest(n_inputs=2, n_outputs=1)
    assert _learn(forest, X, targets, weights).tobytes() == _learn(other, X, targets, weights).tobytes()


def test_an_input_that_comes_late_was_not_observed_before():
    """As if it had had its place from the first, and never a value: the trees stay, and may ask for it."""
    X, targets, weights = _stream(120)
    known, late = X.copy(), _forest(n_inputs=D - 1)
    known[:60, -1] = math.nan
    first = _learn(late, np.ascontiguousarray(X[:60, :-1]), targets[:60], weights[:60])
    before = late.arrays
    late.widen(D)
    assert np.isnan(late.arrays.rows[:, -1]).all()
    assert late.arrays.rows.flags.c_contiguous
    assert all(getattr(late.arrays, name) is getattr(before, name) for name in before._fields if name != "rows")
    rest = _learn(late, X[60:], targets[60:], weights[60:])
    whole = _forest()
    assert np.concatenate([first, rest]).tobytes() == _learn(whole, known, targets, weights).tobytes()
    assert _bits(late) == _bits(whole)
    assert (late.arrays.features == D - 1).any()


def test_to_widen_by_nothing_changes_nothing():
    forest, _ = _taught()
    before = _bits(forest)
    forest.widen(D)
    assert _bits(forest) == before


def test_a_later_output_is_one_whose_targets_were_zero_before():
    X, targets, weights = _stream(120, k=K + 1)
    targets[:60, :, -1] = 0
    late, whole = _forest(), _forest(n_outputs=K + 1)
    _learn(late, X[:60], np.ascontiguousarray(targets[:60, :, :-1]), weights[:60])
    late.add_output()
    assert late.arrays.targets.shape == (T, WINDOW, K + 1)
    assert late.arrays.values.shape == (T, M, NODES, K + 1)
    assert all(part.flags.c_contiguous for part in late.arrays)
    said = _learn(late, X[60:], targets[60:], weights[60:])
    assert said.tobytes() == _learn(whole, X, targets, weights)[60:].tobytes()
    assert _bits(late) == _bits(whole)


@pytest.mark.parametrize("n", [0, 7, 30, 37, 40, 75, 80])
def test_the_record_comes_back_and_goes_on_alike(n):
    """Before the first tree, before the window is full, and where the next record goes in its midst."""
    forest, rest = _taught(n)
    restored = _forest(n_inputs=1, n_outputs=1)
    kept = forest.state()
    restored.load_state(from_bytes(to_bytes(kept)), D, K)
    assert _bits(restored) == _bits(forest)
    bits = {name: value.tobytes() for name, value in kept.items()}
    assert _learn(forest, *rest).tobytes() == _learn(restored, *rest).tobytes()
    assert _bits(restored) == _bits(forest)
    # what was recorded did not move with the trees
    assert {name: value.tobytes() for name, value in kept.items()} == bits != _bits(forest)


def test_a_record_has_no_more_of_the_window_than_came():
    forest, _ = _taught(7)
    assert forest.state()["window_rows"].shape == (7, D)
    assert forest.state()["window_targets"].shape == (T, 7, K)
    assert forest.state()["window_weights"].shape == (7,)


def test_the_bytes_are_those_of_window_and_trees():
    window = WINDOW * (D + T * K + 1)
    nodes = T * M * NODES
    assert _forest().nbytes == 8 * window + 8 * 3 + nodes * (4 + 8 + 4 + 8 * K + 8)


def test_without_trees_there_is_nothing():
    forest = _forest(n_trees=0)
    assert forest.nbytes == 8 * 3
    forest.widen(D + 2)
    forest.add_output()
    assert forest.arrays.targets.shape == (0, 0, K + 1)
    restored = TreeEnsembles(T, 0, WINDOW)
    restored.load_state(from_bytes(to_bytes(forest.state())), D + 2, K + 1)
    assert _bits(restored) == _bits(forest)
    trees.predict_trees(forest.arrays, np.ones(D + 2), np.empty((0, K + 1)))


# What a file may not say ----------------------------------------------------------------------------------------------


def _refused(record, name):
    with pytest.raises(ValueError, match=f"does not fit: its field '{name}' is missing or impossible"):
        _forest().load_state(record, D, K)


@pytest.mark.parametrize("name", list(_forest().state()))
def test_a_field_that_does_not_fit_is_refused(name):
    forest, _ = _taught()
    record = forest.state()
    value = record[name]
    other = np.float32 if value.dtype == np.float64 else np.float64
    _refused({field: value for field, value in record.items() if field != name}, name)
    for wrong in (value[..., :-1], value[None], value[:-1], value.astype(other), value.tolist(), None, 3, "x"):
        _refused({**record, name: wrong}, name)


@pytest.mark.parametrize("shape", [(D - 1, K), (D + 1, K), (D, K - 1), (D, K + 1)])
def test_a_record_of_another_shape_is_refused(shape):
    forest, _ = _taught()
    with pytest.raises(ValueError, match="does not fit"):
        _forest().load_state(forest.state(), *shape)


@pytest.mark.parametrize(("n_ensembles", "n_trees", "window"), [(1, M, WINDOW), (T, M + 1, WINDOW), (T, 0, WINDOW)])
def test_a_record_of_other_trees_is_refused(n_ensembles, n_trees, window):
    forest, _ = _taught()
    with pytest.raises(ValueError, match="does not fit"):
        TreeEnsembles(n_ensembles, n_trees, window).load_state(forest.state(), D, K)


def test_a_record_of_another_window_is_refused():
    forest, _ = _taught()
    with pytest.raises(ValueError, match="'window_rows'"):
        TreeEnsembles(T, M, WINDOW + 1).load_state(forest.state(), D, K)


@pytest.mark.parametrize("i", range(3))
def test_a_negative_count_is_refused(i):
    forest, _ = _taught()
    record = forest.state()
    record["tree_counts"][i] = -1
    _refused(record, "tree_counts")


NOT_FINITE = (math.nan, math.inf, -math.inf)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("window_targets", NOT_FINITE),
        ("window_weights", (*NOT_FINITE, 0.0, -1.0)),
        ("tree_thresholds", (math.nan,)),
        ("tree_values", NOT_FINITE),
        ("tree_node_weights", (*NOT_FINITE, -1.0)),
    ],
)
def test_a_number_that_cannot_be_is_refused(name, values):
    forest, _ = _taught()
    for value in values:
        record = forest.state()
        record[name].flat[0] = value
        _refused(record, name)


def test_inputs_that_were_not_observed_or_split_by_that_are_taken():
    X, targets, weights = _stream(75)
    X[::2, 1] = math.nan
    targets[::2] += 10
    forest, restored = _forest(), _forest()
    _learn(forest, X, targets, weights)
    assert np.isposinf(forest.arrays.thresholds).any()
    restored.load_state(forest.state(), D, K)
    assert _bits(restored) == _bits(forest)


def _inner(record):
    """An inner node other than the root: ensemble, tree, node."""
    return next((t, m, node) for t, m, node in np.argwhere(record["tree_features"] >= 0).tolist() if node)


@pytest.mark.parametrize("feature", [D, D + 1, 2**31 - 1])
def test_a_feature_beyond_the_inputs_is_refused(feature):
    forest, _ = _taught()
    record = forest.state()
    record["tree_features"][_inner(record)] = feature
    _refused(record, "tree_features")


@pytest.mark.parametrize("child", [-(2**31), -1, 0, "itself", NODES - 1, NODES, 2**31 - 1])
def test_a_child_that_points_backwards_or_past_the_end_is_refused(child):
    forest, _ = _taught()
    record = forest.state()
    inner = _inner(record)
    record["tree_children"][inner] = inner[2] if child == "itself" else child
    _refused(record, "tree_children")


def test_the_last_child_there_can_be_is_taken():
    forest, _ = _taught()
    record = forest.state()
    inner = _inner(record)
    record["tree_children"][inner] = NODES - 2
    restored = _forest()
    restored.load_state(record, D, K)
    assert restored.arrays.children[inner] == NODES - 2


def test_what_a_leaf_has_for_a_child_does_not_matter():
    forest, rest = _taught()
    record = forest.state()
    record["tree_children"][record["tree_features"] < 0] = NODES + 7
    restored = _forest()
    restored.load_state(record, D, K)
    assert _learn(restored, *rest).tobytes() == _learn(forest, *rest).tobytes()


@pytest.mark.parametrize("seen", [3, 25, 100])
def test_what_is_kept_of_the_window_are_the_last_records(seen):
    forest = TreeEnsembles(1, 2, 40)
    forest.begin(1, 1)
    for i in range(seen):
        if trees.learn_trees(forest.arrays, np.array([float(i)]), np.array([[i / 2]]), i + 1.0):
            forest.grow()
    forest.keep_last(20)
    n = min(seen, 20)
    assert forest.arrays.counts[0] == n
    last = np.arange(seen - n, seen)
    assert forest.arrays.rows[:n, 0].tolist() == last.tolist()
    assert forest.arrays.targets[0, :n, 0].tolist() == (last / 2).tolist()
    assert forest.arrays.weights[:n].tolist() == (last + 1).tolist()
