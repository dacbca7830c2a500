"""The data of matrix risk minimization: what the scores of n records are of p matrices, as an operator."""

import abc
from typing import Any, TypeAlias

import numpy as np

__all__ = ["BlockData", "DenseBlocks", "Indices", "Triangles"]

Array = np.ndarray[Any, np.dtype[Any]]
#: Some records, or some blocks: neighbors as a slice, which costs no copy, or by number.
Indices: TypeAlias = slice | Array


class BlockData(abc.ABC):
    """n records' symmetric matrices D_i^j, one a block: the score of record i is sum_j <D_i^j, X_j>.

    Blocks are vectors of `size` numbers whose inner product is that of the matrices: X has shape (p, size).

    Attributes
    ----------
    n, p, d, size
        Records, blocks, rows of a matrix, and numbers that a block is stored in.

    """

    n: int
    p: int
    d: int
    size: int

    @property
    def shape(self) -> tuple[int, int]:
        """Records, and numbers of all blocks."""
        return self.n, self.p * self.size

    @abc.abstractmethod
    def pack(self, matrices: Array) -> Array:
        """Symmetric matrices (k, d, d) as blocks (k, size)."""

    @abc.abstractmethod
    def unpack(self, blocks: Array) -> Array:
        """Blocks (k, size) as symmetric matrices (k, d, d)."""

    @abc.abstractmethod
    def scores(self, records: Indices, X: Array) -> Array:
        """The scores of some records, shape (m,)."""

    @abc.abstractmethod
    def combine(self, records: Indices, c: Array) -> Array:
        """sum_i c_i D_i of some records, for all blocks: shape (p, size)."""

    @abc.abstractmethod
    def block_scores(self, blocks: Indices, X: Array) -> Array:
        """What some blocks X, shape (q, size), add to the scores of all records, shape (n,)."""

    @abc.abstractmethod
    def block_combine(self, blocks: Indices, c: Array) -> Array:
        """sum_i c_i D_i^j over all records, for some blocks j: shape (q, size)."""

    @abc.abstractmethod
    def squared_norms(self) -> Array:
        """|D_i|^2 of each record, over all blocks: shape (n,)."""

    @abc.abstractmethod
    def scale(self, records: Indices, blocks: Indices, factors: Array) -> float:
        """The squared spectral norm of the part of the data of some records, times their factors, and some blocks."""


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
        Shape (n, p, d, d); of one that is not symmetric the symmetric part is taken, which gives the same scores.

    Examples
    --------
    >>> import numpy as np
    >>> data = DenseBlocks(np.array([[[[1.0, 4.0], [0.0, 3.0]]]]))
    >>> data.scores(slice(0, 1), data.pack(np.array([[[1.0, 2.0], [2.0, 1.0]]])))
    array([12.])

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
