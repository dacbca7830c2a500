"""Twins of the regression trees: cuts, growth, leaves that follow, and an ensemble of them."""

import math

import numpy as np

from tests.naive.gaussians import WORD, mix64, random_signs


def sort(values):
    """In place."""
    values[:] = sorted(values)


def bin_column(x):
    """Codes and cuts."""
    observed = [value for value in x if not math.isnan(value)]
    cuts = []
    if observed and min(observed) < max(observed):
        step = max(1, len(x) // 256)
        sample = sorted([value for value in x[::step] if not math.isnan(value)] + [min(observed), max(observed)])
        for b in range(1, 31):
            below = sample[b * len(sample) // 31]
            if below < sample[-1]:
                above = min(value for value in sample if value > below)
                cuts.append(below + 0.5 * (above - below))
        cuts = sorted(set(cuts))
    if observed and len(observed) < len(x):
        cuts.append(math.inf)
    return [len(cuts) if math.isnan(value) else sum(value > cut for cut in cuts) for value in x], cuts


def explains_more(gain, other, base):
    return gain > other + 1e-9 * (other + base)


def explained(sums):
    return sum(total**2 for total in sums[:-1]) / sums[-1]


def best_cut(codes, rows, R):
    """The gain and the last interval below."""
    gain, cut = 0, -1
    base = explained(R[rows].sum(axis=0))
    for b in sorted({int(codes[i]) for i in rows})[:-1]:
        sides = [[i for i in rows if codes[i] <= b], [i for i in rows if codes[i] > b]]
        if min(map(len, sides)) >= 3:
            more = sum(explained(R[side].sum(axis=0)) for side in sides) - base
            if explains_more(more, gain, base):
                gain, cut = more, b
    return gain, cut


def partition(codes, cut, rows):
    return [i for i in rows if codes[i] <= cut], [i for i in rows if codes[i] > cut]


def watched(targets, weights, word):
    weights = np.reshape(weights, (-1, 1))
    K = len(targets[0])
    if K == 2:
        targets = np.asarray(targets)[:, :1]
    if K > 8:
        targets = targets @ np.transpose(random_signs(word, 8, K))
    return np.hstack([targets * weights, weights])


def grow(codes, cuts, targets, weights, word, most):
    """The nodes of a tree in their order: (feature, threshold, first child, values, weight)."""
    d, n = codes.shape
    R = watched(targets, weights, word)
    nodes = [{"rows": list(range(n)), "depth": 0, "parent": None, "split": None}]
    order = list(range(d))
    for number, node in enumerate(nodes):  # which grows on the way
        rows = node["rows"]
        if len(rows) < 6 or node["depth"] >= 10 or len(nodes) + 2 > most:
            continue
        best = (0, None, None)
        for t in range(min(d, 32)):
            if d > 32:
                drawn = t + mix64((word + (number << 16) + t) % WORD) % (d - t)
                order[t], order[drawn] = order[drawn], order[t]
            gain, cut = best_cut(codes[order[t]], rows, R)
            if explains_more(gain, best[0], explained(R[rows].sum(axis=0))):
                best = (gain, order[t], cut)
        _, feature, cut = best
        if feature is not None:
            node["split"] = (feature, cuts[feature][cut], len(nodes))
            sides = partition(codes[feature], cut, rows)
            nodes.extend({"rows": side, "depth": node["depth"] + 1, "parent": node, "split": None} for side in sides)
    tree = []
    for node in nodes:
        rows = node["rows"]
        weight = sum(weights[i] for i in rows)
        parent = node["parent"]["values"] if node["parent"] else 0
        node["values"] = (sum(weights[i] * targets[i] for i in rows) + parent) / (weight + 1)
        feature, threshold, child = node["split"] or (-1, None, None)
        tree.append((feature, threshold, child, node["values"], weight))
    return tree


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


def predict_trees(trees, x, n_outputs):
    """The mean of the leaves of an ensemble."""
    return np.mean([tree[leaf_of(x, tree)][3] for tree in trees], axis=0) if trees else np.zeros(n_outputs)


def learn_trees(trees, window, x, target, weight, size, n_trees, since, grown):
    """The trees of an ensemble, after a record; `window` holds the records that came, of which the last count."""
    for tree in trees:
        leaf = leaf_of(x, tree)
        values, node_weight = follow(tree[leaf][3], tree[leaf][4], target, weight)
        tree[leaf] = (*tree[leaf][:3], values, node_weight)
    window.append((x, target, weight))
    n = min(len(window), size)
    if n >= 30 and since + 1 >= max(10, n // n_trees):
        # In the places of a ring, as the order of sums is theirs.
        last = sorted(range(len(window) - n, len(window)), key=lambda i: i % size)
        tree = grow_oldest([window[i] for i in last], grown)
        trees[grown % n_trees : grown % n_trees + 1] = [tree]
        return 0, grown + 1
    return since + 1, grown


def grow_oldest(records, grown):
    X, targets, weights = (np.array(part) for part in zip(*records, strict=True))
    codes, cuts = zip(*(bin_column(column) for column in X.T), strict=True)
    return grow(np.array(codes), cuts, targets, weights, mix64(grown), 511)


class Ensemble:
    """Trees, and what `learn_trees` is to know of them."""

    def __init__(self, n_trees, size, n_outputs):
        self.trees, self.window = [], []
        self.n_trees, self.size, self.n_outputs = n_trees, size, n_outputs
        self.since = self.grown = 0

    def forget(self):
        self.trees[:], self.window[:] = [], []
        self.since = self.grown = 0

    def predict_experts(self, x):
        return predict_trees(self.trees, x, self.n_outputs)

    def learn(self, x, target, weight):
        self.since, self.grown = learn_trees(
            self.trees, self.window, x, target, weight, self.size, self.n_trees, self.since, self.grown
        )
