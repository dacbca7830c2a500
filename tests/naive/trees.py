"""Twins of the regression trees: cuts, growth, leaves that follow, and an ensemble of them."""

import math

import numpy as np

from tests.naive.gaussians import WORD, mix64, random_signs


def sort(values):
    """In place."""
    values[:] = sorted(values)


def sampling_step(n):
    return max(1, n // 256)


def take_sample(X, first, step):
    """Of each input, from record number `first` on: least and largest value, those taken, whether any is missing."""
    samples = []
    for column in np.transpose(X):
        observed = [value for value in column if not math.isnan(value)]
        taken = [x for i, x in enumerate(column) if (first + i) % step == 0 and not math.isnan(x)]
        ends = [min(observed), max(observed)] if observed else [math.inf, -math.inf]
        samples.append((ends + taken, len(observed) < len(column)))
    return samples


def find_cuts(sample, missing):
    cuts = []
    if sample[0] < sample[1]:
        ordered = sorted(sample)
        for b in range(1, 31):
            below = ordered[b * len(ordered) // 31]
            if below < ordered[-1]:
                above = min(value for value in ordered if value > below)
                cuts.append(below + 0.5 * (above - below))
        cuts = sorted(set(cuts))
    return [*cuts, math.inf] if missing and sample[0] < math.inf else cuts


def encode(X, cuts):
    """The intervals, and NaN is in the last."""
    return [
        [len(bounds) if math.isnan(x) else sum(x > cut for cut in bounds) for x, bounds in zip(row, cuts, strict=True)]
        for row in X
    ]


def explains_more(gain, other, base):
    return gain > other + 1e-9 * (other + base)


def explained(sums, k):
    return sum(total**2 for total in sums[:k]) / sums[k]


def n_watched(n_outputs):
    return 1 if n_outputs == 2 else min(n_outputs, 8)


def watch(targets, weights, word):
    """Targets times weights, weights, and ones."""
    K = len(targets[0])
    if K == 2:
        targets = np.asarray(targets)[:, :1]
    if K > 8:
        targets = targets @ np.transpose(random_signs(word, 8, K))
    weights = np.reshape(weights, (-1, 1))
    return np.hstack([targets * weights, weights, np.ones_like(weights)])


def add_to_histograms(codes, watched, rows, inputs, histograms):
    """One for each of `inputs`, (BINS, k + 2)."""
    for j, histogram in zip(inputs, histograms, strict=True):
        for i in rows:
            histogram[codes[i][j]] += watched[i]
    return histograms


def occupied(codes, rows, inputs):
    """A bit for each interval."""
    return [sum(1 << b for b in {int(codes[i][j]) for i in rows}) for j in inputs]


def best_cut(histogram, n_bins):
    """The gain and the last interval below."""
    gain, cut, k = 0, -1, len(histogram[0]) - 2
    sums = histogram.sum(axis=0)
    base = explained(sums, k)
    for b in range(n_bins - 1):
        below, above = histogram[: b + 1].sum(axis=0), histogram[b + 1 :].sum(axis=0)
        if histogram[b, -1] and min(below[-1], above[-1]) >= 3:
            more = explained(below, k) + explained(above, k) - base
            if explains_more(more, gain, base):
                gain, cut = more, b
    return gain, cut


def best_split(histograms, held, n_bins, k):
    gain, feature, split = 0, -1, -1
    for j, histogram in zip(held, histograms, strict=True):
        more, cut = best_cut(histogram, n_bins[j])
        if explains_more(more, gain, explained(histogram.sum(axis=0), k)):
            gain, feature, split = more, j, cut
    return feature, split


def partition(codes, feature, cut, rows):
    return [i for i in rows if codes[i][feature] <= cut], [i for i in rows if codes[i][feature] > cut]


def draw_inputs(drawn, n_bins, word, node):
    """Those that can be split, of at most 32; `drawn` is the order they are drawn in, and changed."""
    d = len(drawn)
    for t in range(min(d, 32) if d > 32 else 0):
        other = t + mix64((word + (node << 16) + t) % WORD) % (d - t)
        drawn[t], drawn[other] = drawn[other], drawn[t]
    return [j for j in drawn[:32] if n_bins[j] > 1]


def first_of_window(seen, since, growing):
    return seen - since - growing


def next_slot(grown, n_trees):
    return grown % (n_trees + 1)


def prepare(X, targets, weights, word):
    """Cuts, codes, and what splits watch."""
    samples = take_sample(X, 0, sampling_step(len(X)))
    cuts = [find_cuts(sample, missing) for sample, missing in samples]
    return cuts, np.array(encode(X, cuts), np.uint8).reshape(np.shape(X)), watch(targets, weights, word)


def split_node(codes, watched, rows, held, n_bins):
    """Input, last interval below, and the records of both sides; None where there is nothing to gain."""
    if not held:
        return None
    k = watched.shape[1] - 2
    histograms = add_to_histograms(codes, watched, rows, held, np.zeros((len(held), 32, k + 2)))
    feature, cut = best_split(histograms, held, n_bins, k)
    return None if feature < 0 else (feature, cut, *partition(codes, feature, cut, rows))


def make_leaf(targets, weights, rows):
    """Sums of targets and of weights."""
    return sum(weights[i] * targets[i] for i in rows), sum(weights[i] for i in rows)


def sum_nodes(nodes):
    """Inner nodes have the sums of their children."""
    for node in reversed(nodes):
        if node["split"]:
            child = node["split"][2]
            node["values"], node["weight"] = (
                nodes[child][part] + nodes[child + 1][part] for part in ("values", "weight")
            )


def shrink_nodes(nodes):
    """Sums become means, drawn to the parent's as by one record."""
    for node in nodes:
        parent = node["parent"]["values"] if node["parent"] else 0
        node["values"] = (node["values"] + parent) / (node["weight"] + 1)


def grow(X, targets, weights, word, most):
    """The nodes of a tree in their order: (feature, threshold, first child, values, weight)."""
    cuts, codes, watched = prepare(X, targets, weights, word)
    n_bins = [len(bounds) + 1 for bounds in cuts]
    nodes = [{"rows": list(range(len(X))), "depth": 0, "parent": None, "split": None}]
    drawn = list(range(len(cuts)))
    for number, node in enumerate(nodes):  # which grows on the way
        rows, split = node["rows"], None
        if len(rows) >= 6 and node["depth"] < 10 and len(nodes) + 2 <= most:
            split = split_node(codes, watched, rows, draw_inputs(drawn, n_bins, word, number), n_bins)
        if split:
            feature, cut, *sides = split
            node["split"] = (feature, cuts[feature][cut], len(nodes))
            nodes.extend({"rows": side, "depth": node["depth"] + 1, "parent": node, "split": None} for side in sides)
        else:
            node["values"], node["weight"] = make_leaf(targets, weights, rows)
    sum_nodes(nodes)
    shrink_nodes(nodes)
    return [(*(node["split"] or (-1, 0, 0)), node["values"], node["weight"]) for node in nodes]


def leaf_of(x, tree):
    node = 0
    while tree[node][0] >= 0:
        feature, threshold, child = tree[node][:3]
        node = child if x[feature] <= threshold else child + 1
    return node


def follow(values, node_weight, target, weight):
    node_weight += weight
    rate = min(max(weight / (node_weight + 1), 0.02 * weight), 1)
    return values + rate * (target - values), node_weight


def follow_in(tree, x, target, weight):
    leaf = leaf_of(x, tree)
    tree[leaf] = (*tree[leaf][:3], *follow(*tree[leaf][3:], target, weight))


def catch_up(tree, records):
    for x, target, weight in records:
        follow_in(tree, x, target, weight)


def predict_trees(trees, x, n_outputs):
    """The mean of the leaves of an ensemble."""
    return np.mean([tree[leaf_of(x, tree)][3] for tree in trees], axis=0) if trees else np.zeros(n_outputs)


def records_between(n, n_trees):
    return max(10, n // n_trees)


def records_to_grow(n, n_trees):
    return max(3, n // (6 * n_trees))


def most_work(n, d, K, n_ensembles, n_trees):
    """More than what is counted of any growth."""
    tried, k = min(d, 32), n_watched(K)
    groups = (k + 1) // 4 + 1
    window = 4 * n * d + 16 * d * (n // sampling_step(n) + 3)
    splits = 10 * n * (tried * groups + 1) + min(32 * 511, 32 * (10 * n // 6), 10 * n) * tried * (2 + (k + 1) // 2)
    values = n * (1 + 2 * K) + (n + 4 * 511) * (1 + K)
    return window + n_ensembles * (splits + values + records_to_grow(n, n_trees) * (10 + K))


def learn_trees(ensemble, x, target, weight):
    """An ensemble after a record: a growth that began with an earlier one ends with this, or one begins."""
    for tree in ensemble.trees:
        follow_in(tree, x, target, weight)
    ensemble.window.append((x, target, weight))
    ensemble.since += 1
    if ensemble.growing:
        grow_on(ensemble)
        return
    n = min(len(ensemble.window), ensemble.size)
    if n >= 30 and ensemble.since >= records_between(n, ensemble.n_trees):
        ensemble.growing, ensemble.since = n, 0


def grow_on(ensemble):
    """All at once, on the last record there is for it: on those before its growth began, then following the others."""
    if ensemble.since < records_to_grow(ensemble.growing, ensemble.n_trees):
        return
    start = len(ensemble.window) - ensemble.since
    X, targets, weights = map(np.array, zip(*ensemble.window[start - ensemble.growing : start], strict=True))
    tree = grow(X, targets, weights, mix64(ensemble.grown), 511)
    catch_up(tree, ensemble.window[start:])
    ensemble.trees = [*ensemble.trees, tree][-ensemble.n_trees :]
    ensemble.grown += 1
    ensemble.growing = 0


class Ensemble:
    """Trees, oldest first, and what `learn_trees` is to know of them."""

    def __init__(self, n_trees, size, n_outputs):
        self.n_trees, self.size, self.n_outputs = n_trees, size, n_outputs
        self.forget()

    def forget(self):
        self.trees, self.window = [], []
        self.since = self.grown = self.growing = 0

    def predict_experts(self, x):
        return predict_trees(self.trees, x, self.n_outputs)

    def learn(self, x, target, weight):
        learn_trees(self, x, target, weight)
