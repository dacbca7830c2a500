"""Primal and dual iterates of a saddle-point problem, with what is maintained of the data's products with them.

The problem is min_x max_beta g(x) + (1/n) sum_i w_i (beta_i a_i . x - phi_i*(beta_i)).

The data are dense or sparse rows, or the product of two factors, A = U V (the paper's Algorithm 2).
"""

import abc
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from streamkernel.compute.primal_dual import advance_columns, advance_factorized, advance_rows, advance_sparse
from streamkernel.compute.vectors import LANES, aligned_zeros
from streamkernel.compute.window_losses import (
    coefficients_gap,
    multiply,
    multiply_transposed,
    records_gap,
    score_derivatives,
)
from streamkernel.state import Array
from streamkernel.window.coordinates import Blocks, Coordinates, StepSizes
from streamkernel.window.linear_model import LinearProblem, dense_rows

# Rows of A that are at hand at a time, where all would be too many.
_ROWS = 1024


@dataclass(eq=False)
class Iterates(abc.ABC):
    """Primal and dual iterates of DSPDC, on data of one form.

    - beta: Dual variables, shape (n,).
    """

    problem: LinearProblem
    rows: Coordinates  #: The choices of dual and of primal coordinates
    columns: Coordinates

    def __post_init__(self) -> None:
        self.beta = np.zeros(self.rows.n)
        self._x = np.zeros(self.columns.n)

    @property
    def x(self) -> Array:
        """Coefficients, shape (p,)."""
        return self._x

    @abc.abstractmethod
    def advance(self, steps: StepSizes, count: int) -> None:
        """Run `count` iterations."""

    def _place(self, x: Array) -> None:
        """Take coefficients."""
        self._x[:] = x

    @abc.abstractmethod
    def _multiply(self, x: Array, weighted: Array) -> tuple[Array, Array]:
        """A x and A^T weighted, computed again, and so what is maintained of them: rounding errors end here."""

    @abc.abstractmethod
    def _stop(self) -> None:
        """Let xbar be x."""

    @abc.abstractmethod
    def _dense_rows(self, first: int, last: int) -> Array:
        """Rows of A."""

    def start(self, x: Array) -> tuple[float, float]:
        """Begin at coefficients, and at dual variables of 0 or of the losses' derivatives; returns what `load` does."""
        zeros = np.zeros_like(self.beta)
        at_zero = self.load(x, zeros)
        scores, _ = self._multiply(x, zeros)
        derivatives = np.empty_like(zeros)
        score_derivatives(self.problem.loss.kind, scores, self.problem.y, derivatives)
        at_derivatives = self.load(x, derivatives)
        return at_derivatives if at_derivatives[1] < at_zero[1] else self.load(x, zeros)

    def load(self, x: Array, beta: Array) -> tuple[float, float]:
        """Continue from iterates, without momentum; returns the objective and the primal-dual gap."""
        self._place(x)
        self.beta[:] = beta
        found = self.evaluate()
        self._stop()
        return found

    def evaluate(self) -> tuple[float, float]:
        """The objective and the primal-dual gap."""
        problem, x = self.problem, self.x
        l2, l1 = problem.regularizer
        z, sums = self._multiply(x, problem.weights * self.beta)
        loss, loss_gap = records_gap(problem.loss.kind, problem.y, problem.weights, self.beta, z)
        penalty, penalty_gap = coefficients_gap(x, sums / len(z), l2, l1)
        return loss + penalty, loss_gap + penalty_gap

    def largest_row(self) -> float:
        """The largest squared norm of a row of A, weighted."""
        return float(max(squares.sum(axis=1).max() for squares in self._squares()))

    def largest_part(self) -> float:
        """A bound of the squared spectral norm of any part of A that an iteration works on: the sum of its squares.

        It is that norm where either side of the part is one coordinate.
        """
        of_columns = (self.columns.sums(squares) for squares in self._squares())
        if self.rows.size == 1:
            return float(max(sums.max() for sums in of_columns))
        return float(self.rows.sums(np.concatenate(list(of_columns)).T).max())

    def _squares(self) -> Iterator[Array]:
        """The squares of A's numbers, weighted, some rows at a time."""
        weights = self.problem.weights
        for first in range(0, len(weights), _ROWS):
            last = min(first + _ROWS, len(weights))
            yield np.square(self._dense_rows(first, last)) * weights[first:last, None]

    def _arguments(
        self, steps: StepSizes
    ) -> tuple[int, tuple[Array, Array], tuple[float, float], tuple[float, float, float, float]]:
        """What compiled iterations take first."""
        problem = self.problem
        return (
            problem.loss.kind,
            (problem.y, problem.weights),
            (problem.regularizer.l2, problem.regularizer.l1),
            (steps.tau, steps.sigma / self.rows.n, self.rows.ratio, steps.theta + 1),
        )


class RowIterates(Iterates):
    """Iterates that maintain u = A^T (weights beta): an iteration costs O(m p)."""

    def __init__(self, problem: LinearProblem, rows: Coordinates, columns: Coordinates) -> None:
        super().__init__(problem, rows, columns)
        self.u, self.xbar = np.zeros(columns.n), np.zeros(columns.n)

    def advance(self, steps: StepSizes, count: int) -> None:
        choices = self.rows.draw(count), self.columns.draw(count)
        A, dual, primal = self.problem.X, (self.beta, self.u), (self._x, self.xbar)
        advance_rows(*self._arguments(steps), A, choices, dual, primal)

    def _multiply(self, x: Array, weighted: Array) -> tuple[Array, Array]:
        z = np.empty(len(weighted))
        multiply(self.problem.X, x, z)
        multiply_transposed(self.problem.X, weighted, self.u)
        return z, self.u

    def _stop(self) -> None:
        self.xbar[:] = self._x

    def _dense_rows(self, first: int, last: int) -> Array:
        return np.asarray(self.problem.X[first:last])


class SparseIterates(RowIterates):
    """Row iterates of a scipy CSR matrix: an iteration costs O(q and the entries of m rows)."""

    def advance(self, steps: StepSizes, count: int) -> None:
        choices = self.rows.draw(count), self.columns.draw(count)
        X, dual, primal = self.problem.X, (self.beta, self.u), (self._x, self.xbar)
        advance_sparse(*self._arguments(steps), (X.data, X.indices, X.indptr), choices, dual, primal)

    def _multiply(self, x: Array, weighted: Array) -> tuple[Array, Array]:
        self.u[:] = self.problem.X.T @ weighted
        return np.asarray(self.problem.X @ x), self.u

    def _dense_rows(self, first: int, last: int) -> Array:
        return np.asarray(self.problem.X[first:last].toarray())


class ColumnIterates(Iterates):
    """Iterates that maintain A x and A xbar: an iteration costs O(n q).

    - transposed: A^T, contiguous, shape (p, n).
    """

    def __init__(self, problem: LinearProblem, rows: Coordinates, columns: Coordinates, transposed: Array) -> None:
        super().__init__(problem, rows, columns)
        self._transposed = transposed
        self.weighted, self.h, self.hbar = (np.zeros(rows.n) for _ in range(3))

    def advance(self, steps: StepSizes, count: int) -> None:
        choices = self.rows.draw(count), self.columns.draw(count)
        dual, primal = (self.beta, self.weighted), (self._x, self.h, self.hbar)
        advance_columns(*self._arguments(steps), self._transposed, choices, dual, primal)

    def _multiply(self, x: Array, weighted: Array) -> tuple[Array, Array]:
        sums = np.empty(len(x))
        multiply(self._transposed, weighted, sums)
        self.weighted[:] = weighted
        multiply_transposed(self._transposed, x, self.h)
        return self.h, sums

    def _stop(self) -> None:
        self.hbar[:] = self.h

    def _dense_rows(self, first: int, last: int) -> Array:
        return np.asarray(self._transposed[:, first:last].T)


class Factorized:
    """A matrix of rows A = U V that stores only the factors.

    Parameters
    ----------
    U
        Shape (n, d).
    V
        Shape (d, p).

    Examples
    --------
    >>> import numpy as np
    >>> data = Factorized(np.ones((5, 2)), np.ones((2, 3)))
    >>> data.shape
    (5, 3)
    >>> data @ np.ones(3)
    array([6., 6., 6., 6., 6.])

    """

    is_product: ClassVar[bool] = True

    def __init__(self, U: Any, V: Any) -> None:
        self.U, self.V = dense_rows(U, "U"), dense_rows(V, "V")
        if self.U.shape[1] != self.V.shape[0]:
            raise ValueError(
                f"U has {self.U.shape[1]} columns and V {self.V.shape[0]} rows: A = U V needs equal numbers"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """(n, p)."""
        return self.U.shape[0], self.V.shape[1]

    def __matmul__(self, x: Array) -> Array:
        """Scores A x, of x of shape (p,) or (p, K)."""
        return np.asarray(self.U @ (self.V @ x))


class PaddedFactors(NamedTuple):
    """U, V and the tiles of V as compiled iterations take them: whole vectors, aligned to lines of the cache."""

    U: Array  #: Shape (n, depth): d rounded up, with zeros
    V: Array  #: Shape (d, p), or (d, 0) where columns come in blocks
    #: The blocks of V's columns, shape (blocks, depth, width); one, of zeros, where columns do not come in blocks.
    tiles: Array


def padded_factors(data: Factorized, columns: Coordinates) -> PaddedFactors:
    """The factors for choices of columns."""
    (n, d), V = data.U.shape, data.V
    depth, width = (size + -size % LANES for size in (d, columns.size))
    U = aligned_zeros(n, depth)
    U[:, :d] = data.U
    if not isinstance(columns, Blocks):
        return PaddedFactors(U, V, aligned_zeros(1, depth, width))
    tiles = aligned_zeros(len(columns.starts) - 1, depth, width)
    for tile, first, last in zip(tiles, columns.starts[:-1], columns.starts[1:], strict=True):
        tile[:d, : last - first] = V[:, columns.order[first:last]]
    return PaddedFactors(U, np.empty((d, 0)), tiles)


class FactorizedIterates(Iterates):
    """Iterates that maintain U^T (weights beta), V x and V xbar: an iteration costs O(d (m + q)).

    - factors: Of `padded_factors`.
    """

    def __init__(self, problem: LinearProblem, rows: Coordinates, columns: Coordinates, factors: PaddedFactors) -> None:
        super().__init__(problem, rows, columns)
        self._factors = factors
        blocks, depth, width = factors.tiles.shape
        self._placed = aligned_zeros(blocks, width) if isinstance(columns, Blocks) else np.zeros((1, columns.n))
        # The place of each coefficient in `_placed`.
        self._places = np.arange(columns.n)
        if isinstance(columns, Blocks):
            block = np.searchsorted(columns.starts, np.arange(columns.n), side="right") - 1
            self._places[columns.order] = block * width + np.arange(columns.n) - columns.starts[block]
        self.u, self.v, self.vbar = (aligned_zeros(depth) for _ in range(3))

    @property
    def x(self) -> Array:
        return np.asarray(self._placed.ravel()[self._places])

    def advance(self, steps: StepSizes, count: int) -> None:
        choices = self.rows.draw(count), self.columns.draw(count)
        U, V, tiles = self._factors
        dual, primal = (self.beta, self.u), (self._placed, self.v, self.vbar)
        advance_factorized(*self._arguments(steps), (U, V, tiles), choices, dual, primal)

    def largest_row(self) -> float:
        """The largest squared norm of a row of A, weighted, without A."""
        U, V = self.problem.X.U, self.problem.X.V
        squares = np.einsum("ik,kl,il->i", U, np.einsum("kj,lj->kl", V, V), U)
        return float((self.problem.weights * squares).max())

    def _place(self, x: Array) -> None:
        self._placed.ravel()[self._places] = x

    def _multiply(self, x: Array, weighted: Array) -> tuple[Array, Array]:
        U, V = self.problem.X.U, self.problem.X.V
        d = len(V)
        z, sums = np.empty(len(weighted)), np.empty(len(x))
        multiply(V, x, self.v[:d])
        multiply(U, self.v[:d], z)
        multiply_transposed(U, weighted, self.u[:d])
        multiply_transposed(V, self.u[:d], sums)
        return z, sums

    def _stop(self) -> None:
        self.vbar[:] = self.v

    def _dense_rows(self, first: int, last: int) -> Array:
        return np.asarray(np.einsum("ik,kj->ij", self.problem.X.U[first:last], self.problem.X.V))
