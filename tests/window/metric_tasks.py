"""Records of tasks, of which metrics are learned."""

import numpy as np


def records_of_tasks(seed=1, n=16, d=3, n_tasks=3):
    """Records of tasks whose labels follow from one input, and from another one of each task."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n * n_tasks, d))
    tasks = np.repeat(np.arange(n_tasks), n)
    y = X[:, 0] + X[np.arange(len(X)), tasks % d] + rng.normal(size=len(X)) / 4 > 0
    return X, y.astype(int), tasks
