"""SVRG: stochastic gradient steps that a full gradient corrects; and what it shares with S3GD."""

from typing import Any, ClassVar

import numpy as np

from streamkernel.arguments import keep_arguments, require_from_zero, require_positive, require_whole
from streamkernel.compute.semi_stochastic import full_gradient
from streamkernel.compute.window_losses import SQUARED
from streamkernel.state import Array, excerpt
from streamkernel.window.descent import Descent
from streamkernel.window.linear_model import History, LinearProblem, LinearSolver
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
