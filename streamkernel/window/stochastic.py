"""What S3GD and SVRG share: their arguments, the weights of classes, and the steps' length."""

from typing import ClassVar

import numpy as np

from streamkernel.arguments import require_from_zero, require_positive, require_whole
from streamkernel.compute.semi_stochastic import full_gradient
from streamkernel.compute.window_losses import SQUARED
from streamkernel.state import Array, excerpt
from streamkernel.window.descent import Descent
from streamkernel.window.linear_model import LinearProblem, LinearSolver
from streamkernel.window.losses import LOSSES, ElasticNet, WindowLoss

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


class StochasticSolver(LinearSolver):
    """A linear model solved by stochastic gradient steps."""

    batch: int
    step: float | None
    max_passes: float
    tol: float
    class_weight: str | None
    beta: float
    losses: ClassVar[tuple[str, ...] | None] = (*LOSSES, "modified_log")
    allows_l1_alone: ClassVar[bool] = True

    def _window_loss(self) -> WindowLoss:
        if self.loss == "modified_log":
            logistic = LOSSES["log"]
            return logistic._replace(gamma=logistic.gamma / self.beta, beta=float(self.beta))
        return super()._window_loss()

    def _checked(self) -> tuple[WindowLoss, ElasticNet]:
        require_whole("batch", self.batch)
        require_from_zero("tol", self.tol)
        for name in ("max_passes", "beta", *(() if self.step is None else ("step",))):
            require_positive(name, getattr(self, name))
        if self.class_weight not in (None, "balanced"):
            raise ValueError(f"class_weight must be 'balanced' or None, got {excerpt(self.class_weight)}")
        loss, regularizer = super()._checked()
        if self.class_weight and not loss.of_labels:
            raise ValueError(f"class_weight is for labels, and loss={self.loss!r} has none: leave it None")
        return loss, regularizer

    def _descent(self, problem: LinearProblem, start: Array, squares: Array, seed: int) -> Descent:
        """A run at its start; of rows whose mean squared norm is not 1, as if they were scaled to it."""
        if self.class_weight:
            problem.weights = _balanced(problem.y, problem.weights)
        batch = min(self.batch, len(problem.X))
        if self.step is None:
            step = default_step(problem, squares, batch, seed)
        else:
            step = self.step / (float(squares.mean()) or 1.0)
        run = Descent(problem, start, step, batch, seed)
        run.compile()
        return run


def _balanced(y: Array, weights: Array) -> Array:
    """Weights of which both labels have the same sum, if both are there."""
    positive = y > 0
    sums = weights[positive].sum(), weights[~positive].sum()
    if not min(sums):
        return weights
    return np.asarray(np.where(positive, weights / sums[0], weights / sums[1]) * (0.5 * len(y)))
