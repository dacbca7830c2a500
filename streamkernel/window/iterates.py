"""Primal and dual iterates of a saddle-point problem, with what is maintained of the data's products with them.

The problem is min_x max_beta g(x) + (1/n) sum_i w_i (beta_i a_i . x - phi_i*(beta_i)).
"""

import abc
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from streamkernel.compute.duality import coefficients_gap, dual_start, multiply, multiply_transposed, records_gap
from streamkernel.compute.primal_dual import advance_columns, advance_rows, advance_sparse
from streamkernel.state import Array
from streamkernel.window.coordinates import Coordinates
from streamkernel.window.linear_model import LinearProblem
from streamkernel.window.step_sizes import StepSizes

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

    @property
    @abc.abstractmethod
    def x(self) -> Array:
        """Coefficients, shape (p,)."""

    @abc.abstractmethod
    def advance(self, steps: StepSizes, count: int) -> None:
        """Run `count` iterations."""

    @abc.abstractmethod
    def _place(self, x: Array) -> None:
        """Take coefficients."""

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
        dual_start(self.problem.loss.kind, self.problem.y, scores, derivatives)
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
        self.u, self._x, self.xbar = (np.zeros(columns.n) for _ in range(3))

    @property
    def x(self) -> Array:
        return self._x

    def advance(self, steps: StepSizes, count: int) -> None:
        choices = self.rows.draw(count), self.columns.draw(count)
        A, dual, primal = self.problem.X, (self.beta, self.u), (self._x, self.xbar)
        advance_rows(*self._arguments(steps), A, choices, dual, primal)

    def _place(self, x: Array) -> None:
        self._x[:] = x

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
        self._x = np.zeros(columns.n)
        self.weighted, self.h, self.hbar = (np.zeros(rows.n) for _ in range(3))

    @property
    def x(self) -> Array:
        return self._x

    def advance(self, steps: StepSizes, count: int) -> None:
        choices = self.rows.draw(count), self.columns.draw(count)
        dual, primal = (self.beta, self.weighted), (self._x, self.h, self.hbar)
        advance_columns(*self._arguments(steps), self._transposed, choices, dual, primal)

    def _place(self, x: Array) -> None:
        self._x[:] = x

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
