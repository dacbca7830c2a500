"""Dense symmetric matrices as the data of matrix risk minimization."""

from typing import Any

import numpy as np

from benchmarks.solvers.matrix_problem import BlockData, Indices

__all__ = ["DenseBlocks"]

Array = np.ndarray[Any, np.dtype[Any]]


class Triangles:
    """Symmetric matrices of shape (d, d) as vectors of their upper triangles, with the same inner products."""

    def __init__(self, d: int) -> None:
        self.d = d
        self._rows, self._columns = np.triu_indices(d)
        self.size = len(self._rows)
        # An off-diagonal number stands for two.
        self._weights = np.where(self._rows == self._columns, 1.0, np.sqrt(2.0))

    def pack(self, matrices: Array) -> Array:
        """Symmetric matrices (k, d, d) as vectors (k, size)."""
        return np.asarray(matrices[:, self._rows, self._columns] * self._weights)

    def unpack(self, blocks: Array) -> Array:
        """Vectors (k, size) as symmetric matrices (k, d, d)."""
        out = np.empty((len(blocks), self.d, self.d))
        numbers = blocks / self._weights
        out[:, self._rows, self._columns] = numbers
        out[:, self._columns, self._rows] = numbers
        return out


class DenseBlocks(BlockData):
    """Any symmetric matrices, stored as their upper triangles.

    Parameters
    ----------
    D
        Shape (n, p, d, d). Only the symmetric parts matter.

    """

    def __init__(self, D: Array) -> None:
        self.n, self.p, self.d = D.shape[:3]
        self._triangles = Triangles(self.d)
        self.size = self._triangles.size
        self._rows = np.empty((self.n, self.p, self.size))
        for row, matrices in zip(self._rows, D, strict=True):
            row[:] = self.pack((matrices + matrices.transpose(0, 2, 1)) / 2)

    def pack(self, matrices: Array) -> Array:
        return self._triangles.pack(matrices)

    def unpack(self, blocks: Array) -> Array:
        return self._triangles.unpack(blocks)

    def scores(self, records: Indices, X: Array) -> Array:
        return np.asarray(self._rows[records].reshape(-1, self.p * self.size) @ X.reshape(-1))

    def combine(self, records: Indices, c: Array) -> Array:
        return np.asarray((c @ self._rows[records].reshape(len(c), -1)).reshape(self.p, self.size))

    def block_scores(self, blocks: Indices, X: Array) -> Array:
        return np.asarray(self._rows[:, blocks].reshape(self.n, -1) @ X.reshape(-1))

    def block_combine(self, blocks: Indices, c: Array) -> Array:
        return np.asarray((c @ self._rows[:, blocks].reshape(self.n, -1)).reshape(-1, self.size))

    def squared_norms(self) -> Array:
        return np.asarray(np.einsum("ijk,ijk->i", self._rows, self._rows))

    def scale(self, records: Indices, blocks: Indices, factors: Array) -> float:
        part = factors[:, None] * self._rows[records][:, blocks].reshape(len(factors), -1)
        return float(np.linalg.eigvalsh(part @ part.T)[-1])
