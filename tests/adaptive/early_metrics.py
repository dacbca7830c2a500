"""Models whose metrics come early, and the stream they learn."""

import numpy as np

from streamkernel import AdaptiveKernelClassifier


def records(kind, n, seed=0):
    """A later input, a later class, records without a target and of weight 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    xs = [{name: float(v) for name, v in zip("abc", row, strict=True)} for row in X]
    for i in range(n):
        if i >= 63:
            xs[i]["late"] = float(X[i, 0] * X[i, 1])
        if i >= 66 and i % 3 == 0:
            xs[i]["later"] = 1.0
    wave = np.sin(2 * X[:, 0]) + X[:, 1]
    ys = [float(v) for v in wave]
    if kind is AdaptiveKernelClassifier:
        ys = ["high" if v > 0.3 and i > 64 else "low" if v < 0 else "middle" for i, v in enumerate(wave)]
    for i in range(5, n, 17):
        ys[i] = None
    weights = [0.0 if i % 11 == 3 else 1.0 + i % 3 for i in range(n)]
    return xs, ys, weights


def small_model(kind):
    return kind(
        n_features=8, metric_schedule=(20, 60, 61, 90), buffer_size=50, memory=40, n_trees=2, tree_window=50, seed=1
    )
