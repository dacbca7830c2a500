"""The default length of stochastic gradient steps."""

from typing import Any

import numpy as np

from streamkernel.compute.semi_stochastic import full_gradient
from streamkernel.compute.window_losses import SQUARED
from streamkernel.window.linear_model import LinearProblem

__all__ = ["default_step", "squared_norms"]

Array = np.ndarray[Any, np.dtype[Any]]

_SAMPLE = 1000
_POWER_STEPS = 20
_SINGLE = 0.25


def squared_norms(X: Array) -> Array:
    """|x|^2 of each row.

    ValueError: A sum of squares is too large for a float.
    """
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->i", X, X)
        if not np.isfinite(np.square(squares / len(X)).sum()):
            raise ValueError("X has values whose squares are too large for floats: scale its columns")
    return np.asarray(squares)


def default_step(problem: LinearProblem, squares: Array, batch: int, seed: int) -> float:
    """1 / L, the inverse smoothness that a mini-batch of `batch` rows has in the mean square.

    L = ((batch - 1) lambda + R^2 / 4) / (batch gamma): lambda is the largest eigenvalue of the rows' mean outer
    product, by the power method on a sample, and R^2 = E|x|^4 / E|x|^2 the squared norm that counts in the variance of
    single rows. Of that a quarter is taken, since steps are corrected: it matters only where a few rows are long.
    """
    X, weights = problem.X, problem.weights
    n, p = X.shape
    rng = np.random.default_rng(seed)
    some = np.sort(rng.choice(n, _SAMPLE, replace=False)) if n > _SAMPLE else slice(None)
    rows, shares = X[some], weights[some]
    v, product = rng.standard_normal(p), np.empty(p)
    targets, derivatives, largest = np.zeros(len(rows)), np.empty(len(rows)), 0.0
    for _ in range(_POWER_STEPS):
        length = np.sqrt(np.square(v).sum())
        if length == 0.0:
            break
        v /= length
        # The gradient of half the mean squared score is the mean outer product times v.
        full_gradient(SQUARED, 0.0, rows, targets, shares, v, derivatives, product)
        largest = float(np.sqrt(np.square(product).sum()))
        v = product.copy()
    weighted = weights * squares
    total = float(weighted.sum())
    single = float(np.square(weighted).sum()) / total if total > 0.0 else 0.0
    smoothness = ((batch - 1) * largest + _SINGLE * single) / (batch * problem.loss.gamma)
    return 1.0 / smoothness if smoothness > 0.0 else 1.0
