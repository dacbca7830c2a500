"""The data of matrix risk minimization: what the scores of n records are of p matrices, as an operator."""

import abc
from typing import Any, TypeAlias

import numpy as np

__all__ = ["BlockData", "Indices"]

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
