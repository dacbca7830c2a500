"""The growth of a tree: split by split, breadth first, on the records of the window at once."""

from typing import Any

import numpy as np

from streamkernel.compute.binning import BINS, bin_column
from streamkernel.compute.gaussians import mix64
from streamkernel.compute.jit import jit
from streamkernel.compute.splits import SMALLEST, best_cut, explained, explains_more, partition, watched
from streamkernel.compute.trees import SHRINKAGE, Forest

Array = np.ndarray[Any, np.dtype[Any]]

#: How deep a leaf may lie.
DEEPEST = 10
#: Inputs tried at a split; where there are more, a draw of them.
TRIED = 32


@jit
def grow(
    codes: Array,
    cuts: Array,
    n_bins: Array,
    targets: Array,
    weights: Array,
    word: Any,
    features: Array,
    thresholds: Array,
    children: Array,
    values: Array,
    node_weights: Array,
) -> None:
    """Grow a tree on a window of records, breadth first, until its arrays are full.

    Parameters
    ----------
    codes, cuts, n_bins
        Intervals of every record's inputs, uint8 of shape (d, n), their bounds, (d, BINS - 1), and number, (d,).
    targets
        float64 of shape (n, K).
    weights
        float64 of shape (n,), above 0.
    word
        uint64, from which draws of inputs and random sums of outputs follow.
    features, thresholds, children, values, node_weights
        The tree: int32, float64 and int32 of shape (N,), float64 of shape (N, K) and (N,). Filled.

    """
    d, n = codes.shape
    K = targets.shape[1]
    N = features.shape[0]
    R = watched(targets, weights, word)
    k = R.shape[1]
    totals, counts = np.zeros((BINS, k)), np.zeros(BINS, np.int64)
    sums = np.empty(k)
    rows, order = np.empty(n, np.int64), np.empty(d, np.int64)
    for i in range(n):  # `np.arange` takes longer to compile
        rows[i] = i
    for j in range(d):
        order[j] = j
    tried = min(d, TRIED)
    starts, stops, depths = np.empty(N, np.int64), np.empty(N, np.int64), np.zeros(N, np.int64)
    starts[0], stops[0] = 0, n
    n_nodes, node = 1, 0
    while node < n_nodes:
        mine = rows[starts[node] : stops[node]]
        features[node] = -1
        if mine.shape[0] >= 2 * SMALLEST and depths[node] < DEEPEST and n_nodes + 2 <= N:
            sums[:] = 0.0
            for i in mine:
                for c in range(k):
                    sums[c] += R[i, c]
            base = explained(sums)
            gain, feature, cut = 0.0, -1, -1
            for t in range(tried):
                if tried < d:
                    drawn = t + np.int64(mix64(word + np.uint64((node << 16) + t)) % np.uint64(d - t))
                    order[t], order[drawn] = order[drawn], order[t]
                j = order[t]
                if n_bins[j] > 1:
                    g, b = best_cut(codes[j], mine, R, sums, base, totals, counts)
                    if explains_more(g, gain, base):
                        gain, feature, cut = g, j, b
            if feature >= 0:
                features[node] = feature
                thresholds[node] = cuts[feature, cut]
                children[node] = n_nodes
                middle = starts[node] + partition(codes[feature], cut, mine)
                starts[n_nodes], stops[n_nodes] = starts[node], middle
                starts[n_nodes + 1], stops[n_nodes + 1] = middle, stops[node]
                depths[n_nodes : n_nodes + 2] = depths[node] + 1
                n_nodes += 2
        node += 1
    values[:n_nodes] = 0.0
    node_weights[:n_nodes] = 0.0
    for node in range(n_nodes - 1, -1, -1):
        if features[node] < 0:
            for i in rows[starts[node] : stops[node]]:
                node_weights[node] += weights[i]
                for c in range(K):
                    values[node, c] += weights[i] * targets[i, c]
        else:
            for child in range(children[node], children[node] + 2):
                node_weights[node] += node_weights[child]
                for c in range(K):
                    values[node, c] += values[child, c]
    for c in range(K):
        values[0, c] /= node_weights[0] + SHRINKAGE
    for node in range(n_nodes):
        if features[node] >= 0:
            for child in range(children[node], children[node] + 2):
                for c in range(K):
                    values[child, c] = (values[child, c] + SHRINKAGE * values[node, c]) / (
                        node_weights[child] + SHRINKAGE
                    )


def grow_oldest(forest: Forest) -> None:
    """Grow the oldest tree of each ensemble anew on the records of the window.

    Not compiled: it would be optimised as one with what it calls.
    """
    n = min(int(forest.counts[0]), len(forest.rows))
    columns = np.ascontiguousarray(forest.rows[:n].T)
    codes = np.empty(columns.shape, np.uint8)
    cuts = np.empty((len(columns), BINS - 1))
    n_bins = np.array([bin_column(*column) for column in zip(columns, codes, cuts, strict=True)], np.int64)
    grown = int(forest.counts[2])
    word = np.uint64(mix64(np.uint64(grown)))
    m = grown % forest.features.shape[1]
    for t in range(len(forest.targets)):
        grow(
            codes,
            cuts,
            n_bins,
            forest.targets[t, :n],
            forest.weights[:n],
            word,
            forest.features[t, m],
            forest.thresholds[t, m],
            forest.children[t, m],
            forest.values[t, m],
            forest.node_weights[t, m],
        )
    forest.counts[1] = 0
    forest.counts[2] += 1
