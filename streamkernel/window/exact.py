"""Least squares by normal equations, and other smooth losses by steps with a bound of their curvature."""

import abc
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from streamkernel.arguments import keep_arguments, require_number, require_whole
from streamkernel.compute.cholesky import add_gram, add_products, factorize, solve
from streamkernel.compute.features import mean_outer
from streamkernel.compute.window_losses import score_derivatives, score_losses
from streamkernel.state import Array
from streamkernel.window.linear_model import History, LinearProblem, LinearSolver
from streamkernel.window.losses import ElasticNet, WindowLoss


class RowParts(abc.ABC):
    """Rows that may be more than the memory holds, and the loss of their scores.

    - n, p: Rows and columns.
    - weights: The rows' weights, float64 of shape (n,), of mean 1.
    - curvature: The Lipschitz constant of the derivative of the loss by the scores.
    - is_quadratic: Whether the loss is a square with this curvature.
    """

    n: int
    p: int
    weights: Array
    curvature: float
    is_quadratic: bool

    @abc.abstractmethod
    def parts(self) -> Iterator[tuple[slice, Array]]:
        """Each part's place and its rows, float64 of shape (m, p)."""

    @abc.abstractmethod
    def gradient(self, part: slice, scores: Array) -> Array:
        """The derivative of the loss by the scores of a part's rows, float64 of shape (m, K)."""


def normal_equations(rows: RowParts, l2: float) -> Array:
    """The Cholesky factor of (c/n) A^T W A + l2 I, for a curvature c and rows A of weights W.

    ValueError: The matrix is singular in float64.
    """
    C = np.zeros((rows.p, rows.p))
    np.fill_diagonal(C, l2)
    for part, A in rows.parts():
        add_gram(A * np.sqrt(rows.weights[part] * (rows.curvature / rows.n))[:, None], 0, len(A), 0, 1.0, C)
    factorize(C)
    diagonal = np.diag(C)
    # A factor tells its matrix's condition no better than by its diagonal.
    if not np.isfinite(diagonal).all() or diagonal.min() <= diagonal.max() * _SMALLEST:
        raise ValueError(
            f"the normal equations of these {rows.n} rows and {rows.p} columns are singular with l2={l2:g}: "
            "use a larger l2, remove columns that others add up to, or scale all columns alike"
        )
    return C


def minimize(rows: RowParts, l2: float, start: Array, tol: float, max_passes: int) -> Iterator[Array]:
    """Minimize the mean loss + l2/2 |x|^2 from `start`; yields the coefficients, (K, p), after each pass over the rows.

    Each step minimizes the quadratic of the loss's curvature that touches the objective from above: of a square that
    is the solution, of other losses a step of Newton's method with a bound in place of the Hessian, one factor for all.
    Steps are accelerated, and start over where they lead uphill.

    - rows: The data and the loss.
    - l2: The weight of the squares of the coefficients.
    - start: Where to begin, float64 of shape (K, p).
    - tol: Where to stop: the length of a step in the metric of the quadratic, over that of the solution.
    - max_passes: The most steps.

    References
    ----------
    [^1]: Boehning and Lindsay, "Monotonicity of quadratic-approximation algorithms", 1988.
    [^2]: O'Donoghue and Candes, "Adaptive restart for accelerated gradient schemes", 2015.

    """
    factor = normal_equations(rows, l2)
    x, ahead, momentum = start, start, 1.0
    for _ in range(1 if rows.is_quadratic else max_passes):
        G = _gradient(rows, ahead) + l2 * ahead
        step = G.copy()
        solve(factor, step)
        before, x = x, ahead - step
        yield x
        # Sums of NumPy, not of a library whose threads may change last bits.
        if np.square(step).sum() <= tol**2 * np.square(x).sum():
            return
        if (G * (x - before)).sum() > 0:
            momentum, ahead = 1.0, x
            continue
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = x + (momentum - 1) / following * (x - before)
        momentum = following


def _gradient(rows: RowParts, x: Array) -> Array:
    """The gradient of the mean loss by the coefficients, shape (K, p)."""
    total, of_part = np.zeros(x.shape), np.empty(x.shape)
    for part, A in rows.parts():
        scores = np.zeros((len(A), len(x)))
        add_products(A, x, scores)
        mean_outer(A, rows.gradient(part, scores) * rows.weights[part, None], of_part)
        total += of_part * (len(A) / rows.n)
    return total


#: The ratio of the factor's smallest diagonal number to its largest, of a matrix with no digit of float64 left.
_SMALLEST = 1e-8


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
