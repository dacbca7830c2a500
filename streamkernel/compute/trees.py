"""Regression trees with several outputs: what they predict of a record, and how their leaves follow it.

A tree is five arrays with an entry a node: the input it asks for (-1 in a leaf), its threshold, its first child (the
second follows), its values and its weight. A record goes to the first child where its input is at most the threshold;
an input that was not observed is NaN and goes to the second. Trees are grown on a window of records (`tree_growth`),
then kept up to date leaf by leaf.
"""

from typing import Any, NamedTuple

from streamkernel.compute.jit import Array, jit

#: A node's values are drawn to its parent's as by this much weight.
SHRINKAGE = 1.0
#: Records before the first tree, and between two.
FIRST = 30
SOONEST = 10
#: A leaf follows its records at least this fast.
SLOWEST = 0.02
#: What `counts` has: records that came; records since the last growth began; trees grown in each ensemble; and how many
#: records the growth under way has for its window, 0 where none is.
SEEN, SINCE, GROWN, GROWING = range(4)


class Forest(NamedTuple):
    """T ensembles of M trees on one window of records, each ensemble with targets of its own.

    Tree number i of an ensemble is in slot i % (M + 1): the M last are asked, and the slot left over is for the
    next. The arrays after `node_weights` are what its growth has come to, as far as it has; as that follows from the
    window and `counts`, it is no part of the state.

    - rows: Inputs of the last records, a ring, float64 of shape (C, d): the window, and what comes while a tree is
      grown.
    - targets: float64 of shape (T, C, K).
    - weights: float64 of shape (C,).
    - counts: int64 of shape (4,): `SEEN`, `SINCE`, `GROWN`, `GROWING`.
    - features, thresholds, children: int32, float64 and int32 of shape (T, M + 1, N).
    - values, node_weights: float64 of shape (T, M + 1, N, K) and (T, M + 1, N).
    - progress: Where the growth is, as `tree_growth` has it, int64 of shape (7,).
    - columns: Numbers of the inputs, as `tree_growth` has them, int64 of shape (5, d).
    - samples, cuts: Of each input: `take_sample`'s, and `find_cuts`', float64 of shape (d, ...).
    - codes: Of each record of the window: the intervals of its inputs, uint8 of shape (window, d).
    - watched: As `watch` has them, float64 of shape (window, G `LANES`).
    - order: The records of the window node by node, and room, int64 of shape (2, window).
    - nodes: Of each node: where its records begin and end in `order`, and its depth, int64 of shape (N, 3).
    - histograms: Of the node to be split, as `add_to_histograms` has them.
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
    progress: Array
    columns: Array
    samples: Array
    cuts: Array
    codes: Array
    watched: Array
    order: Array
    nodes: Array
    histograms: Array


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
def follow_in(forest: Forest, t: int, m: int, x: Array, target: Array, weight: float) -> None:
    """Let the tree in slot m of ensemble t follow a record."""
    leaf = leaf_of(x, forest.features[t, m], forest.thresholds[t, m], forest.children[t, m])
    follow(forest.values[t, m], forest.node_weights[t, m], leaf, target, weight)


@jit
def predict_trees(forest: Forest, x: Array, out: Array) -> None:
    """Each ensemble's values for a record: inputs (d,), values (T, K); zeros before the first tree."""
    T, slots = forest.features.shape[:2]
    last = forest.counts[GROWN]
    grown = min(last, slots - 1)
    out[:] = 0.0
    for i in range(last - grown, last):
        m = i % slots
        for t in range(T):
            leaf = leaf_of(x, forest.features[t, m], forest.thresholds[t, m], forest.children[t, m])
            for c in range(out.shape[1]):
                out[t, c] += forest.values[t, m, leaf, c] / grown
