"""Normal equations of regularized least squares, accumulated from rows that come in parts, and steps that they give."""

import abc
from collections.abc import Iterator

import numpy as np

from streamkernel.compute.cholesky import add_gram, add_products, factorize, solve
from streamkernel.compute.features import mean_outer
from streamkernel.state import Array

__all__ = ["NormalEquations", "RowParts", "minimize"]


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


class NormalEquations:
    """The Cholesky factor of (c/n) A^T W A + l2 I, for a curvature c and rows A of weights W.

    ValueError: The matrix is singular in float64.
    """

    def __init__(self, rows: RowParts, l2: float) -> None:
        self._C = np.zeros((rows.p, rows.p))
        np.fill_diagonal(self._C, l2)
        for part, A in rows.parts():
            add_gram(A * np.sqrt(rows.weights[part] * (rows.curvature / rows.n))[:, None], 0, len(A), 0, 1.0, self._C)
        factorize(self._C)
        diagonal = np.diag(self._C)
        # A factor tells its matrix's condition no better than by its diagonal.
        if not np.isfinite(diagonal).all() or diagonal.min() <= diagonal.max() * _SMALLEST:
            raise ValueError(
                f"the normal equations of these {rows.n} rows and {rows.p} columns are singular with l2={l2:g}: "
                "use a larger l2, remove columns that others add up to, or scale all columns alike"
            )

    def solved(self, b: Array) -> Array:
        """The solution of each row of b, shape (K, p)."""
        x = b.copy()
        solve(self._C, x)
        return x


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
    equations = NormalEquations(rows, l2)
    x, ahead, momentum = start, start, 1.0
    for _ in range(1 if rows.is_quadratic else max_passes):
        G = _gradient(rows, ahead) + l2 * ahead
        step = equations.solved(G)
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
