"""Regression trees with several outputs: grown on a window of records at once, then kept up to date leaf by leaf.

A tree is five arrays with an entry a node: the input it asks for (-1 in a leaf), its threshold, its first child (the
second follows), its values and its weight. A record goes to the first child where its input is at most the threshold;
an input that was not observed is NaN and goes to the second.
"""

from typing import Any, NamedTuple

import numpy as np

from streamkernel.compute.gaussians import mix64, random_signs
from streamkernel.compute.jit import jit

Array = np.ndarray[Any, np.dtype[Any]]

#: Intervals of an input between which a split is sought, and the records whose quantiles bound them.
BINS = 32
SAMPLED = 256
#: The fewest records of a leaf, and how deep it may lie.
SMALLEST = 3
DEEPEST = 10
#: A node's values are drawn to its parent's as by this much weight.
SHRINKAGE = 1.0
#: Records before the first tree, and between two.
FIRST = 30
SOONEST = 10
#: A leaf follows its records at least this fast.
SLOWEST = 0.02
#: Inputs tried at a split, and outputs it looks at; where there are more, a draw of inputs and random sums of outputs.
TRIED = 32
WATCHED = 8
#: A split is better than another by this share, and explains that share of what its node's mean explains, or it is
#: rounding: of two that part the records alike the first is taken, on every machine.
_MARGIN = 1e-9


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
def sort(values: Array) -> None:
    """Sort numbers, (n,), in place: Shell's sort, with Ciura's gaps; numpy's takes 2 s to compile."""
    n = values.shape[0]
    for gap in (301, 132, 57, 23, 10, 4, 1):
        for i in range(gap, n):
            value = values[i]
            j = i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value


@jit
def bin_column(x: Array, codes: Array, cuts: Array) -> Any:
    """The interval of each value of an input.

    Parameters
    ----------
    x
        Values, float64 of shape (n,); NaN where not observed.
    codes
        Filled: uint8 of shape (n,). NaN is in the last interval.
    cuts
        Filled: the upper bounds of all intervals but the last, ascending, shape (BINS - 1,).

    Returns
    -------
    The number of intervals.

    """
    n = x.shape[0]
    step = max(1, n // SAMPLED)
    sample = np.empty(n // step + 3)
    taken = 0
    lowest, highest, missing = np.inf, -np.inf, False
    for i in range(n):
        if np.isnan(x[i]):
            missing = True
            continue
        lowest, highest = min(lowest, x[i]), max(highest, x[i])
        if i % step == 0:
            sample[taken] = x[i]
            taken += 1
    n_cuts = 0
    if lowest < highest:
        # A value that is rare is not in the sample, and one that is common fills more than an interval.
        sample[taken], sample[taken + 1] = lowest, highest
        taken += 2
        ordered = sample[:taken]
        sort(ordered)
        room = BINS - 2  # one cut is kept for what was not observed
        for b in range(1, room + 1):
            i = b * taken // (room + 1)
            below = ordered[i]
            if below >= highest:
                break
            while ordered[i] <= below:
                i += 1
            cut = below + 0.5 * (ordered[i] - below)
            if not below <= cut < ordered[i]:
                cut = below
            if n_cuts == 0 or cut > cuts[n_cuts - 1]:
                cuts[n_cuts] = cut
                n_cuts += 1
    if missing and lowest < np.inf:
        cuts[n_cuts] = np.inf
        n_cuts += 1
    for i in range(n):
        first, last = 0, n_cuts
        while first < last:
            middle = (first + last) // 2
            if x[i] <= cuts[middle]:
                last = middle
            else:
                first = middle + 1
        codes[i] = first
    return n_cuts + 1


@jit
def explains_more(gain: float, other: float, base: float) -> Any:
    """Whether one gain is larger than another by more than rounding, in a node whose mean explains `base`."""
    return gain > other + _MARGIN * (other + base)


@jit
def best_cut(codes: Array, rows: Array, R: Array, sums: Array, base: float, totals: Array, counts: Array) -> Any:
    """Where to split a node's records by one input: the gain in explained sum of squares, and the last interval below.

    Parameters
    ----------
    codes
        The input's interval of every record of the window.
    rows
        The node's records.
    R
        Of every record of the window: its targets times its weight, and its weight, (n, k + 1).
    sums, base
        The node's sums of R, shape (k + 1,), and what its mean explains, as `explained` has it.
    totals, counts
        Zeros, shape (BINS, k + 1) and (BINS,), int64; zeros again afterwards.

    """
    k = R.shape[1] - 1
    lowest, highest = BINS, 0
    for i in rows:
        b = codes[i]
        lowest, highest = min(lowest, b), max(highest, b)
        counts[b] += 1
    if k == 1:
        for i in rows:
            b = codes[i]
            totals[b, 0] += R[i, 0]
            totals[b, 1] += R[i, 1]
    else:
        for i in rows:
            b = codes[i]
            for c in range(k + 1):
                totals[b, c] += R[i, c]
    gain, cut = 0.0, -1
    below, above = 0, rows.shape[0]
    for b in range(lowest, highest):
        if b > lowest:
            for c in range(k + 1):
                totals[b, c] += totals[b - 1, c]
        if counts[b] == 0:
            continue
        below += counts[b]
        above -= counts[b]
        if below < SMALLEST or above < SMALLEST:
            continue
        left, right = 0.0, 0.0
        for c in range(k):
            left += totals[b, c] ** 2
            right += (sums[c] - totals[b, c]) ** 2
        more = left / totals[b, k] + right / (sums[k] - totals[b, k]) - base
        if explains_more(more, gain, base):
            gain, cut = more, b
    for b in range(lowest, highest + 1):
        counts[b] = 0
        for c in range(k + 1):
            totals[b, c] = 0.0
    return gain, cut


@jit
def explained(sums: Array) -> Any:
    """What a mean explains of the sum of squares, from sums of targets and of weights, (k + 1,)."""
    k = sums.shape[0] - 1
    total = 0.0
    for c in range(k):
        total += sums[c] ** 2
    return total / sums[k]


@jit
def partition(codes: Array, cut: int, rows: Array) -> Any:
    """Bring records up to an interval to the front, in place; returns their number."""
    first, last = 0, rows.shape[0] - 1
    while first <= last:
        if codes[rows[first]] <= cut:
            first += 1
        else:
            rows[first], rows[last] = rows[last], rows[first]
            last -= 1
    return first


@jit
def watched(targets: Array, weights: Array, word: Any) -> Array:
    """What splits are chosen by: targets times weights, and weights, (n, k + 1).

    Two classes say the same, so that one is enough; of many, that many random sums.
    """
    n, K = targets.shape
    k = 1 if K == 2 else min(K, WATCHED)
    R = np.zeros((n, k + 1))
    for i in range(n):
        R[i, k] = weights[i]
    if K <= WATCHED:
        for i in range(n):
            for c in range(k):
                R[i, c] = targets[i, c] * weights[i]
        return R
    signs = random_signs(word, WATCHED, K)
    for i in range(n):
        for c in range(K):
            t = targets[i, c] * weights[i]
            if t != 0.0:
                for s in range(WATCHED):
                    R[i, s] += t * signs[s, c]
    return R


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
