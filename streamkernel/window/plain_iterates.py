"""The iterates of DSPDC on plain data: dense rows or columns, or a sparse matrix of rows."""

from typing import Any

import numpy as np

from streamkernel.compute.duality import multiply, multiply_transposed
from streamkernel.compute.primal_dual import advance_columns, advance_rows, advance_sparse
from streamkernel.window.coordinates import Coordinates
from streamkernel.window.iterates import Iterates
from streamkernel.window.linear_model import LinearProblem
from streamkernel.window.step_sizes import StepSizes

Array = np.ndarray[Any, np.dtype[Any]]


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

    Parameters
    ----------
    problem, rows, columns
        As of `Iterates`.
    transposed
        A^T, contiguous, shape (p, n).

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
