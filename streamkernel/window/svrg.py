"""SVRG: stochastic gradient steps that a full gradient corrects."""

from typing import Any

from streamkernel.arguments import require_whole
from streamkernel.representation import keep_arguments
from streamkernel.state import Array
from streamkernel.window.history import History
from streamkernel.window.linear_model import LinearProblem
from streamkernel.window.stochastic import StochasticSolver, squared_norms

__all__ = ["SVRG"]


class SVRG(StochasticSolver):
    """A linear model solved by the proximal stochastic variance reduced gradient (SVRG) [1]_.

    It minimizes (1/n) sum phi(x_i . w, y_i) + l2/2 |w|^2 + l1 |w|_1. Each outer iteration computes the full gradient,
    and then steps along the gradients of mini-batches. The full gradient corrects them, so that their variance goes to
    0.

    Parameters
    ----------
    loss
        `"squared"`, `"log"`, `"smooth_hinge"`, `"squared_hinge"`, or `"modified_log"`, which is
        log(1 + exp(-beta (y z - 1))) / beta of a score z.
    l2
        The weight of half the squared norm, above 0; or 0 if `l1` is above 0. Convergence is then slower.
    l1
        The weight of the sum of absolute values.
    inner
        The number of steps between two full gradients. None finds it during the run.
    batch
        The number of rows a step, drawn with replacement, at most the number of rows.
    step
        The length of the steps for rows with a mean squared norm of 1. For other rows, it is divided by that norm. None
        is the inverse of the mean-square smoothness of mini-batches, halved if it is too large.
    max_passes
        The largest number of passes over the rows.
    tol
        The duality gap at which to stop.
    class_weight
        `"balanced"` gives both labels of a problem the same weight.
    beta
        The sharpness of the loss `"modified_log"`.
    seed
        The seed of the drawn rows. None draws one.

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

    inner: int | None

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
        keep_arguments(self, locals())

    def _checked(self) -> Any:
        if self.inner is not None:
            require_whole("inner", self.inner)
        return super()._checked()

    def _solve(self, problem: LinearProblem, start: Array, seed: int, shared: Any) -> tuple[Array, History]:  # noqa: ARG002
        run = self._descent(problem, start, squared_norms(problem.X), seed)
        run.look()
        run.finish(self.tol, self.max_passes, self.inner)
        return run.w, run.history
