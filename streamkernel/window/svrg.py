"""SVRG: stochastic gradient steps that a full gradient corrects."""

from typing import Any

import numpy as np

from streamkernel.window.arguments import require_counts
from streamkernel.window.history import History
from streamkernel.window.linear_model import Problem
from streamkernel.window.smoothness import squared_norms
from streamkernel.window.stochastic import StochasticSolver

__all__ = ["SVRG"]

Array = np.ndarray[Any, np.dtype[Any]]


class SVRG(StochasticSolver):
    """Linear model by proximal stochastic variance reduced gradient (SVRG) [1]_.

    It minimises (1/n) sum phi(x_i . w, y_i) + l2/2 |w|^2 + l1 |w|_1. Each outer iteration takes the full gradient, and
    then steps along the gradients of mini-batches, which the full gradient corrects so that their variance goes to 0.

    Parameters
    ----------
    loss
        `"squared"`, `"log"`, `"smooth_hinge"`, `"squared_hinge"`, or `"modified_log"`, which is
        log(1 + exp(-beta (y z - 1))) / beta of a score z.
    l2
        Weight of half the squared norm, above 0.
    l1
        Weight of the sum of absolute values.
    inner
        Steps between two full gradients. None looks for their number while it runs.
    batch
        Rows a step, drawn with replacement, at most as many as there are.
    step
        Length of the steps for rows whose mean squared norm is 1; for other rows it is divided by that norm. None is
        the inverse of the smoothness that mini-batches have in the mean square, and is halved where it is too large.
    max_passes
        Passes over the rows after which it ends.
    tol
        Duality gap at which it ends.
    class_weight
        `"balanced"` gives both labels of a problem the same weight.
    beta
        Sharpness of the loss `"modified_log"`.
    seed
        Seed of the rows that are drawn. None draws one.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(500, 3))
    >>> y = X @ [1.0, -2.0, 0.5] > 0
    >>> model = SVRG(l2=1e-2, seed=1).fit(X, y)
    >>> bool(model.history_.gap[-1] <= 1e-6)
    True
    >>> float((model.predict(X) == y).mean()) > 0.98
    True

    References
    ----------
    .. [1] Xiao and Zhang, "A Proximal Stochastic Gradient Method with Progressive Variance Reduction", SIAM Journal on
       Optimization 24(4), 2014.

    """

    def __init__(
        self,
        loss: str = "log",
        l2: float = 1e-3,
        l1: float = 0.0,
        inner: int | None = None,
        batch: int = 10,
        step: float | None = None,
        max_passes: float = 100,
        tol: float = 1e-6,
        class_weight: str | None = None,
        beta: float = 10.0,
        seed: int | None = None,
    ) -> None:
        self.loss = loss
        self.l2 = l2
        self.l1 = l1
        self.inner = inner
        self.batch = batch
        self.step = step
        self.max_passes = max_passes
        self.tol = tol
        self.class_weight = class_weight
        self.beta = beta
        self.seed = seed

    def _checked(self) -> Any:
        if self.inner is not None:
            require_counts(self, "inner")
        return super()._checked()

    def _solve(self, problem: Problem, start: Array, seed: int, shared: Any) -> tuple[Array, History]:  # noqa: ARG002
        run = self._descent(problem, start, squared_norms(problem.X), seed)
        run.look()
        run.finish(self.tol, self.max_passes, self.inner)
        return run.w, run.history
