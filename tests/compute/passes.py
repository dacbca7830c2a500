"""What the tests of both passes share: where experts begin, how a pass meets its twin, and what holds for either.

A state is a tuple of arrays: matrices of heads, linear experts and stacks, what a pass has beside them, the memory's,
the forest's.
"""

from typing import NamedTuple

import numpy as np
import pytest

from streamkernel.adaptive.forest import TreeEnsembles
from streamkernel.adaptive.heads import LeastSquaresHeads
from streamkernel.adaptive.memory import Memory
from streamkernel.compute import memory as memories
from streamkernel.compute import trees
from streamkernel.compute.experts import Heads, Linear, Stacking
from tests import naive

RIDGE = 0.1
DRIFTS = np.array([0.0, 1e-3, 3e-2])
#: q of each stack, and the ridge of both.
STACK_DRIFTS, STACK_RIDGE = np.array([0.0, 1e-3]), 2.0
#: Trees of an ensemble that are all grown again within a stream, and their window.
TREES, WINDOW = 3, 40
#: Records of a stream, and inputs.
N, INPUTS = 130, 3
#: Columns of the linear experts, none where there are no such experts, and where a stream is cut.
CUTS = [(3, (1,)), (None, (7, 8, 30, 31, 100)), (3, tuple(range(1, N)))]
#: Records that are asked for neighbors and that are kept, and the metric of their distances.
MEMORY, KEPT, SCALES = 70, 90, np.array([0.5, 1.5, 1.0], np.float32)
#: A memory's arrays of float32.
LANES = ("rows", "scales", "distances", "nearest", "asked")


class Stream(NamedTuple):
    """Records, and the state in which they find the experts."""

    Phi: np.ndarray
    X: np.ndarray
    values: np.ndarray
    truths: np.ndarray
    weights: np.ndarray
    past: np.ndarray
    state: tuple[np.ndarray, ...]

    def part(self, rows, state):
        return Stream(*(records[rows] for records in self[:6]), state)


def heads_and_linear(D, L, K, E=2, scales=1):
    """Matrices as they begin, for three heads that learn each output on so many scales, and as many linear experts."""
    E, L = (0, 1) if L is None else (E, L)
    heads = LeastSquaresHeads(RIDGE, DRIFTS)
    heads.begin(D, scales * K)
    return *heads.arrays[:5], np.tile(np.eye(L) / RIDGE, (E, 1, 1)), np.zeros((E, K, L))


def stacks_of(n):
    """P and W of stacks of n experts, as they begin."""
    return np.tile(np.eye(n) / STACK_RIDGE, (2, 1, 1)), np.zeros((2, 1, n))


def stacks(matrices):
    """The last two matrices as compiled code has them."""
    return Stacking(*matrices[-2:], STACK_DRIFTS, STACK_RIDGE)


def named(matrices, rates):
    """The matrices of `heads_and_linear`, the first ones, as compiled code has them."""
    *heads, linear_P, linear_W = matrices[:7]
    return Heads(*heads, DRIFTS, RIDGE), Linear(linear_P, linear_W, rates[: len(linear_P)], RIDGE)


def plain(*parts):
    """Parts as plain tuples, as estimators have them: of each type of argument there is code to compile."""
    *experts, others = map(tuple, parts)
    return tuple(experts), others


def prior_of(losses):
    """Weights of experts whose losses are alike, no two the same."""
    return np.linspace(0.2, 2, len(losses))


def forest_of(n_ensembles, n_trees, K):
    forest = TreeEnsembles(n_ensembles, n_trees, WINDOW)
    forest.begin(INPUTS, K)
    return forest.arrays


def memory_of(size, dtype=np.float32):
    """A memory whose ring goes round within a stream; of no experts where `size` is 0."""
    memory = Memory(size, KEPT)
    memory.begin(INPUTS)
    memory.set_metric(SCALES)
    return memory.arrays._replace(**{name: getattr(memory.arrays, name).astype(dtype) for name in LANES})


def records(rng, D):
    """Columns, of which the last is the constant, and inputs, scaled and as they came, of which a few were missing."""
    Phi, values = rng.normal(size=(N, D)), np.round(rng.normal(size=(N, INPUTS)), 1)
    Phi[:, -1] = 1
    values[rng.random(values.shape) < 0.05] = np.nan
    return Phi, np.nan_to_num(values).astype(np.float32), values


def copied(state):
    """The state's arrays, copied: those of heads, linear experts and stacks, the others, the memory, and the forest."""
    parts = [part.copy() for part in state]
    n_forest, n_memory = len(trees.Forest._fields), len(memories.Ring._fields)
    of_both, forest = parts[9:-n_forest], trees.Forest(*parts[-n_forest:])
    return parts[:9], of_both[:-n_memory], memories.Ring(*of_both[-n_memory:]), forest


def settled(matrices):
    """The matrices with nothing due: of heads, linear experts and stacks, P and then coefficients."""
    heads, linear = named(matrices, np.zeros(2))
    P, W, *_ = naive.settled_heads(heads)
    return P, W, linear.P, linear.W, *matrices[-2:]


def without_search(state):
    """The state, the memory's last search forgotten."""
    matrices, others, memory, forest = copied(state)
    for name in ("distances", "places", "nearest", "asked", "answered"):
        getattr(memory, name)[:] = -1
    return *matrices, *others, *memory, *forest


def bits(state):
    return [part.tobytes() for part in state]


def assert_as_the_twins(state, twins):
    """All but memory and forest, where nothing is due; of P its triangle."""
    matrices, others, _, _ = copied(state)
    for i, (mine, exact) in enumerate(zip([*settled(matrices), *others], twins, strict=True)):
        mine = np.array(mine)
        exact = np.array(exact).reshape(mine.shape)
        if i in (0, 2, 4):
            mine, exact = np.tril(mine), np.tril(exact)
        np.testing.assert_allclose(mine, exact, rtol=1e-8, atol=1e-8, err_msg=str(i))


def assert_the_memory_is(state, twin, **tolerance):
    """The last records, wherever the ring has them."""
    _, _, memory, _ = copied(state)
    n, size = len(twin.records), len(memory.targets)
    assert memory.seen.tolist() == [n]
    for i, (x, target, weight, residual) in list(enumerate(twin.records))[-size:]:
        np.testing.assert_allclose(memory.rows[:, i % size], x, **tolerance)
        assert (memory.targets[i % size], memory.weights[i % size]) == (target, weight)
        assert memory.residuals[i % size] == pytest.approx(residual, rel=1e-8, abs=1e-8)


def assert_the_trees_are(arrays, t, ensemble, atol=1e-8):
    """Node by node."""
    assert arrays.counts.tolist() == [len(ensemble.window), ensemble.since, ensemble.grown, ensemble.growing]
    for number, tree in enumerate(ensemble.trees, ensemble.grown - len(ensemble.trees)):
        m = number % arrays.features.shape[1]
        features, thresholds, children, values, weights = zip(*tree, strict=True)
        n = len(tree)
        assert arrays.features[t, m, :n].tolist() == list(features)
        assert (arrays.features[t, m, n:] == -1).all()
        assert arrays.thresholds[t, m, :n].tolist() == list(thresholds)
        assert arrays.children[t, m, :n].tolist() == list(children)
        np.testing.assert_allclose(arrays.values[t, m, :n], values, rtol=1e-8, atol=atol)
        np.testing.assert_allclose(arrays.node_weights[t, m, :n], weights, rtol=1e-12)
        for name in ("thresholds", "children", "values", "node_weights"):
            assert not getattr(arrays, name)[t, m, n:].any()


def assert_the_forest_is(state, ensembles):
    *_, forest = copied(state)
    assert len(forest.targets) == len(ensembles)
    for t, ensemble in enumerate(ensembles):
        assert_the_trees_are(forest, t, ensemble)


def memory_twin(size):
    """The twin of `memory_of`."""
    return naive.Memory(max(size, KEPT), size, SCALES)


def ensembles_of(n_ensembles, n_trees, K):
    """The twins of `forest_of`."""
    return [naive.Ensemble(n_trees, WINDOW, K) for _ in range(n_ensembles if n_trees else 0)]


# What holds for either pass, `through` which a stream goes: state and `out` after it ----------------------------------


def assert_what_is_only_predicted_changes_nothing(through, stream, no_truth):
    learned, _ = through(stream)
    predicted = stream._replace(truths=np.full_like(stream.truths, no_truth), state=learned)
    after, out = through(predicted)
    assert bits(without_search(after)) == bits(without_search(learned))
    assert np.isfinite(out).all()
    # Each record on its own is predicted the same, as nothing came between.
    assert [through(predicted.part([r], learned))[1].tobytes() for r in range(N)] == [row.tobytes() for row in out]


def assert_nothing_is_read_above_the_diagonal(through, stream):
    plain, expected = through(stream)
    spoilt, out = through(stream._replace(state=_without_upper(stream.state)))
    assert out.tobytes() == expected.tobytes()
    assert bits(_without_upper(spoilt)) == bits(_without_upper(plain))


def _without_upper(state):
    """P of linear experts and stacks with NaN above the diagonal, everything else as it is."""
    state = [part.copy() for part in state]
    for P in (state[5], state[7]):
        P[:, *np.triu_indices(P.shape[1], 1)] = np.nan
    return tuple(state)
