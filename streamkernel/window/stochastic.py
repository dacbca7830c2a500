"""What S3GD and SVRG share: their arguments, the weights of classes, and the steps' length."""

from typing import Any, ClassVar

import numpy as np

from streamkernel.arguments import require_from_zero, require_positive, require_whole
from streamkernel.state import excerpt
from streamkernel.window.descent import Descent
from streamkernel.window.linear_model import LinearProblem, LinearSolver
from streamkernel.window.losses import LOSSES, ElasticNet, WindowLoss
from streamkernel.window.smoothness import default_step

__all__ = ["StochasticSolver"]

Array = np.ndarray[Any, np.dtype[Any]]


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
