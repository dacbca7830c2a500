"""Data that are the product of two factors, A = U V, and the iterates of DSPDC on them (the paper's Algorithm 2)."""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from streamkernel.compute.duality import multiply, multiply_transposed
from streamkernel.compute.primal_dual import advance_factorized
from streamkernel.compute.vectors import LANES, aligned_zeros
from streamkernel.state import Array
from streamkernel.window.coordinates import Blocks, Coordinates
from streamkernel.window.iterates import Iterates
from streamkernel.window.linear_model import LinearProblem, dense_rows
from streamkernel.window.step_sizes import StepSizes

__all__ = ["Factorized"]


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
