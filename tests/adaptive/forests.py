"""What the tests of the trees' arrays share."""

import numpy as np

from streamkernel.adaptive.forest import TreeEnsembles
from streamkernel.compute import tree_growth, trees

T, M, WINDOW, D, K = 2, 3, 40, 4, 3


def forest_of(n_trees=M, n_inputs=D, n_outputs=K):
    forest = TreeEnsembles(T, n_trees, WINDOW)
    forest.begin(n_inputs, n_outputs)
    return forest


def stream_of(n, d=D, k=K, seed=0):
    """Inputs, some of them not observed, and targets that follow them."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)), 1)
    X[rng.random(X.shape) < 0.05] = np.nan
    targets = (np.nan_to_num(X[:, :1]) > 0)[:, None, :] * rng.normal(size=(T, k)) + 0.1 * rng.normal(size=(n, T, k))
    return X, targets, rng.uniform(0.5, 2, n)


def learn(forest, X, targets, weights):
    """What was said of each record before it was learned, (n, T, K)."""
    said = np.full(targets.shape, np.nan)
    for x, target, weight, out in zip(X, targets, weights, said, strict=True):
        trees.predict_trees(forest.arrays, x, out)
        tree_growth.learn_trees(forest.arrays, x, target, weight)
    return said


def bits_of(forest):
    return {name: value.tobytes() for name, value in forest.state().items()}


def taught(n=75, n_trees=M):
    """Trees that learned n records, by default some way past the second growth of some, in mid-window."""
    forest, stream = forest_of(n_trees), stream_of(150)
    if n_trees:
        learn(forest, *(part[:n] for part in stream))
    return forest, [part[n:] for part in stream]
