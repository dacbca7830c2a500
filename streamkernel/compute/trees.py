"""Regression trees with several outputs: what they predict of a record, and how their leaves follow it.

A tree is five arrays with an entry a node: the input it asks for (-1 in a leaf), its threshold, its first child (the
second follows), its values and its weight. A record goes to the first child where its input is at most the threshold;
an input that was not observed is NaN and goes to the second. Trees are grown on a window of records (`tree_growth`),
then kept up to date leaf by leaf.
"""

from typing import Any, NamedTuple

import numpy as np

from streamkernel.compute.jit import jit

Array = np.ndarray[Any, np.dtype[Any]]

#: A node's values are drawn to its parent's as by this much weight.
SHRINKAGE = 1.0
#: Records before the first tree, and between two.
FIRST = 30
SOONEST = 10
#: A leaf follows its records at least this fast.
SLOWEST = 0.02


class Forest(NamedTuple):
    """T ensembles of M trees on one window of records, each ensemble with targets of its own.

    Attributes
    ----------
    rows
        The window: inputs, float64 of shape (n, d).
    targets
        float64 of shape (T, n, K).
    weights
        float64 of shape (n,).
    counts
        Records that came, records since the last growth, trees grown in each ensemble: int64 of shape (3,).
    features, thresholds, children
        int32, float64 and int32 of shape (T, M, N).
    values, node_weights
        float64 of shape (T, M, N, K) and (T, M, N).

    """

    rows: Array
    targets: Array
    weights: Array
    counts: Array
    features: Array
    thresholds: Array
    children: Array
    values: Array
    node_weights: Array


@jit
def leaf_of(x: Array, features: Array, thresholds: Array, children: Array) -> Any:
    """The leaf a record, (d,), comes to."""
    node = 0
    while features[node] >= 0:
        node = children[node] + (0 if x[features[node]] <= thresholds[node] else 1)
    return node


@jit
def follow(values: Array, node_weights: Array, leaf: int, target: Array, weight: float) -> None:
    """Move a leaf's values towards a record's target."""
    node_weights[leaf] += weight
    rate = min(max(weight / (node_weights[leaf] + SHRINKAGE), SLOWEST * weight), 1.0)
    for c in range(target.shape[0]):
        values[leaf, c] += rate * (target[c] - values[leaf, c])


@jit
def predict_trees(forest: Forest, x: Array, out: Array) -> None:
    """Each ensemble's values for a record: inputs (d,), values (T, K); zeros before the first tree."""
    T, M = forest.features.shape[:2]
    grown = min(forest.counts[2], M)
    out[:] = 0.0
    for t in range(T):
        for m in range(grown):
            leaf = leaf_of(x, forest.features[t, m], forest.thresholds[t, m], forest.children[t, m])
            for c in range(out.shape[1]):
                out[t, c] += forest.values[t, m, leaf, c] / grown


@jit
def learn_trees(forest: Forest, x: Array, targets: Array, weight: float) -> Any:
    """Let the leaves follow a record and take it into the window; whether it is time to grow the oldest trees anew.

    Parameters
    ----------
    forest
        Updated.
    x
        Inputs, float64 of shape (d,).
    targets
        What each ensemble learns, (T, K).
    weight
        The record's weight, above 0.

    """
    T, M = forest.features.shape[:2]
    counts = forest.counts
    for t in range(T):
        for m in range(min(counts[2], M)):
            leaf = leaf_of(x, forest.features[t, m], forest.thresholds[t, m], forest.children[t, m])
            follow(forest.values[t, m], forest.node_weights[t, m], leaf, targets[t], weight)
    window = forest.rows.shape[0]
    place = counts[0] % window
    for j in range(x.shape[0]):
        forest.rows[place, j] = x[j]
    for t in range(T):
        for c in range(targets.shape[1]):
            forest.targets[t, place, c] = targets[t, c]
    forest.weights[place] = weight
    counts[0] += 1
    counts[1] += 1
    n = min(counts[0], window)
    return n >= FIRST and counts[1] >= max(SOONEST, n // M)
