"""Least squares by normal equations, and other smooth losses by steps with a bound of their curvature."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from streamkernel.arguments import require_number, require_whole
from streamkernel.compute.window_losses import score_derivatives, score_losses
from streamkernel.representation import keep_arguments
from streamkernel.state import Array
from streamkernel.window.history import History
from streamkernel.window.linear_model import LinearProblem, LinearSolver
from streamkernel.window.losses import ElasticNet, WindowLoss
from streamkernel.window.normal_equations import RowParts, minimize

__all__ = ["Exact"]

#: Rows of a part.
_AT_ONCE = 256


class Exact(LinearSolver):
    """Ridge regression by normal equations and their Cholesky factor: min_x (1/n) sum phi(a_i . x) + l2/2 |x|^2.

    For the squared loss, the solution is exact after one pass. Other losses use steps with a bound of their curvature
    instead of the Hessian, and one factor for all steps. Memory is p^2 numbers and time is n p^2 / 2 products, so use
    it for p up to a few thousand.

    Parameters
    ----------
    loss
        "squared" (the default), "log", "smooth_hinge" or "squared_hinge".
    l2
        The weight of half the squared coefficients, above 0. Defaults to 1e-4.
    tol
        When to stop with a loss other than "squared": when the step is shorter than `tol` times the coefficients.
        Defaults to 1e-3.
    max_passes
        The largest number of steps in that case. Defaults to 10.

    Raises
    ------
    ValueError
        In `fit`, if an argument is out of range, the data are not finite, or their normal equations are singular.

    Examples
    --------
    >>> from streamkernel.window import Exact
    >>> solver = Exact(l2=1e-9).fit([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [1.0, 3.0, 5.0])
    >>> solver.coef_.round(3), solver.n_iter_
    (array([1., 2.]), 1)

    References
    ----------
    [^1]: Hoerl and Kennard, "Ridge regression: biased estimation for nonorthogonal problems", 1970.
    [^2]: Boehning and Lindsay, "Monotonicity of quadratic-approximation algorithms", 1988.

    """

    tol: float
    max_passes: int
    l1 = 0.0
    seed = 0

    def __init__(self, loss: str = "squared", l2: float = 1e-4, tol: float = 1e-3, max_passes: int = 10) -> None:
        keep_arguments(self, locals())

    def _checked(self) -> tuple[WindowLoss, ElasticNet]:
        require_whole("max_passes", self.max_passes)
        require_number("tol", self.tol, "a number between 0 and 1", lambda tol: 0 < tol < 1)
        return super()._checked()

    def _solve(self, problem: LinearProblem, start: Array, seed: int, shared: Any) -> tuple[Array, History]:  # noqa: ARG002
        rows = _Rows(problem)
        begun = time.perf_counter()
        spent, history = 0.0, [(0.0, 0.0, rows.objective(start), np.nan)]
        x = start
        for number, coefs in enumerate(minimize(rows, self.l2, start[None, :], self.tol, self.max_passes), 1):
            x = coefs[0]
            spent += time.perf_counter() - begun
            history.append((float(number), spent, rows.objective(x), np.nan))
            begun = time.perf_counter()
        return x, History.of(history)


class _Rows(RowParts):
    """The rows of a problem, which are all there."""

    def __init__(self, problem: LinearProblem) -> None:
        self._problem = problem
        self.n, self.p = problem.X.shape
        self.weights = problem.weights
        self.curvature = 1 / problem.loss.gamma
        self.is_quadratic = not problem.loss.of_labels

    def parts(self) -> Iterator[tuple[slice, Array]]:
        for start in range(0, self.n, _AT_ONCE):
            part = slice(start, min(start + _AT_ONCE, self.n))
            yield part, self._problem.X[part]

    def gradient(self, part: slice, scores: Array) -> Array:
        out = np.empty(len(scores))
        score_derivatives(self._problem.loss.kind, scores[:, 0].copy(), self._problem.y[part], out)
        return out[:, None]

    def objective(self, x: Array) -> float:
        """The objective at x."""
        losses = np.empty(self.n)
        with np.errstate(over="ignore", invalid="ignore"):
            score_losses(self._problem.loss.kind, self._problem.X @ x, self._problem.y, losses)
            value = float(np.mean(self.weights * losses)) + self._problem.regularizer.value(x)
        if not np.isfinite(value):
            raise ValueError("the objective is too large for a float: scale y, or use another coef_init")
        return value
