"""What the tests of both passes share: where experts begin, how a pass meets its twin, and what holds for either.

A state is a tuple of arrays: matrices of heads and linear experts, what a pass has beside them, the forest's.
"""

from typing import NamedTuple

import numpy as np

from streamkernel.adaptive.forest import TreeEnsembles
from streamkernel.compute import trees
from streamkernel.compute.experts import Heads, Linear
from streamkernel.compute.recursive import apply_deferred
from tests import naive

RIDGE = 0.1
DRIFTS = np.array([0.0, 1e-3, 3e-2])
# (D, L): columns of all, and of the linear experts; None where there are no linear experts
SHAPES = [(1, None), (1, 1), (5, 3), (9, 9), (12, None)]
#: Trees of an ensemble that are all grown anew within a stream, and their window.
TREES, WINDOW = 3, 40
#: Records of a stream, and inputs.
N, INPUTS = 160, 3


class Stream(NamedTuple):
    """Records, and the state in which they find the experts."""

    Phi: np.ndarray
    values: np.ndarray
    truths: np.ndarray
    weights: np.ndarray
    state: tuple[np.ndarray, ...]

    def part(self, rows, state):
        return Stream(*(records[rows] for records in self[:4]), state)


def heads_and_linear(D, L, K, E=2, scales=1):
    """Matrices as they begin, for three heads that learn each output on so many scales, and as many linear experts."""
    E, L = (0, 1) if L is None else (E, L)
    heads = np.tile(np.eye(D) / RIDGE, (3, 1, 1)), np.zeros((3, scales * K, D)), np.zeros((3, D + 2))
    return *heads, np.tile(np.eye(L) / RIDGE, (E, 1, 1)), np.zeros((E, K, L))


def named(matrices, rates):
    """The matrices of `heads_and_linear` as compiled code has them."""
    P, W, deferred, linear_P, linear_W = matrices
    return Heads(P, W, deferred, DRIFTS, RIDGE), Linear(linear_P, linear_W, rates[: len(linear_P)], RIDGE)


def forest_of(n_ensembles, n_trees, K):
    forest = TreeEnsembles(n_ensembles, n_trees, WINDOW)
    forest.begin(INPUTS, K)
    return forest.arrays


def records(rng, D):
    """Columns, of which the last is the constant, and inputs, of which a few were not observed."""
    Phi, values = rng.normal(size=(N, D)), np.round(rng.normal(size=(N, INPUTS)), 1)
    Phi[:, -1] = 1
    values[rng.random(values.shape) < 0.05] = np.nan
    return Phi, values


def copied(state):
    """The state's arrays, copied: those of heads and linear experts, the others, and the forest."""
    parts = [part.copy() for part in state]
    n_forest = len(trees.Forest._fields)
    return parts[:5], parts[5:-n_forest], trees.Forest(*parts[-n_forest:])


def settled(state):
    """The state with nothing deferred."""
    heads_P, heads_W, deferred, *others = (part.copy() for part in state)
    for P, debt in zip(heads_P, deferred, strict=True):
        apply_deferred(P, debt, 1 / RIDGE)
    return heads_P, heads_W, deferred, *others


def bits(state):
    return [part.tobytes() for part in state]


def assert_as_the_twins(state, twins):
    """All but the forest, where nothing is deferred; of P its triangle."""
    matrices, others, _ = copied(settled(state))
    for i, (mine, exact) in enumerate(zip([*matrices, *others], twins, strict=True)):
        exact = np.array(exact).reshape(mine.shape)
        if i in (0, 3):
            mine, exact = np.tril(mine), np.tril(exact)
        np.testing.assert_allclose(mine, exact, rtol=1e-8, atol=1e-8, err_msg=str(i))


def assert_the_forest_is(state, ensembles):
    """Node by node."""
    *_, forest = copied(state)
    assert len(forest.targets) == len(ensembles)
    for t, ensemble in enumerate(ensembles):
        assert forest.counts.tolist() == [len(ensemble.window), ensemble.since, ensemble.grown]
        for m, tree in enumerate(ensemble.trees):
            features, thresholds, children, values, weights = zip(*tree, strict=True)
            n = len(tree)
            assert forest.features[t, m, :n].tolist() == list(features)
            inner = [node for node in range(n) if features[node] >= 0]
            assert forest.thresholds[t, m, inner].tolist() == [thresholds[node] for node in inner]
            assert forest.children[t, m, inner].tolist() == [children[node] for node in inner]
            np.testing.assert_allclose(forest.values[t, m, :n], values, rtol=1e-8, atol=1e-8)
            np.testing.assert_allclose(forest.node_weights[t, m, :n], weights, rtol=1e-12)


def ensembles_of(n_ensembles, n_trees, K):
    """The twins of `forest_of`."""
    return [naive.Ensemble(n_trees, WINDOW, K) for _ in range(n_ensembles if n_trees else 0)]


# What holds for either pass, `through` which a stream goes: state and `out` after it ----------------------------------


def assert_any_cut_gives_the_same_bits(through, stream, cuts):
    whole, out = through(stream)
    state, pieces = stream.state, []
    for part in np.split(np.arange(N), cuts):
        state, piece = through(stream.part(part, state))
        pieces.append(piece)
    assert np.concatenate(pieces).tobytes() == out.tobytes()
    assert bits(state) == bits(whole)


def assert_when_it_is_settled_changes_no_bit(through, stream, every):
    whole, out = through(stream)
    state, pieces = stream.state, []
    for start in range(0, N, every):
        state, piece = through(stream.part(slice(start, start + every), settled(state)))
        pieces.append(piece)
    assert np.concatenate(pieces).tobytes() == out.tobytes()
    assert bits(settled(state)) == bits(settled(whole))


def assert_what_is_only_predicted_changes_nothing(through, stream, no_truth):
    learnt, _ = through(stream)
    predicted = stream._replace(truths=np.full_like(stream.truths, no_truth), state=learnt)
    after, out = through(predicted)
    assert bits(after) == bits(learnt)
    assert np.isfinite(out).all()
    # Each record on its own is predicted the same, as nothing came between.
    assert [through(predicted.part([r], learnt))[1].tobytes() for r in range(N)] == [row.tobytes() for row in out]


def assert_nothing_is_read_above_the_diagonal(through, stream):
    plain, expected = through(stream)
    spoilt, out = through(stream._replace(state=_without_upper(stream.state)))
    assert out.tobytes() == expected.tobytes()
    assert bits(_without_upper(spoilt)) == bits(_without_upper(plain))


def _without_upper(state):
    """P of heads and of linear experts with NaN above the diagonal, everything else as it is."""
    state = [part.copy() for part in state]
    for P in (state[0], state[3]):
        P[:, *np.triu_indices(P.shape[1], 1)] = np.nan
    return tuple(state)
