"""Twins of packed symmetric matrices: tiles one after the other, and whole matrices."""

import numpy as np

from tests.naive.recursive import symmetric

#: Rows and columns of a tile.
SIDE = 8


def _tiles(n):
    """Rows and columns of each tile that is stored, in this order."""
    spans = [range(start, start + SIDE) for start in range(0, n, SIDE)]
    return [(rows, columns) for rows in spans for columns in spans if columns.start <= rows.start]


def place(i, j):
    before = sum(SIDE * SIDE for rows, columns in _tiles(i + 1) if (rows.start, columns.start) < (i - i % 8, j - j % 8))
    return before + i % 8 * SIDE + j % 8


def pack(P):
    """Of the lower triangle."""
    n = -(-len(P) // SIDE) * SIDE
    whole = np.zeros((n, n))
    whole[: len(P), : len(P)] = symmetric(P)
    return np.array([whole[i, j] for rows, columns in _tiles(n) for i in rows for j in columns])


def unpack(tiles, D):
    """The lower triangle, beneath zeros."""
    numbers = iter(tiles)
    n = -(-D // SIDE) * SIDE
    whole = {(i, j): next(numbers) for rows, columns in _tiles(n) for i in rows for j in columns}
    return np.array([[whole[i, j] if j <= i else 0.0 for j in range(D)] for i in range(D)])


def packed_product(tiles, x):
    return symmetric(unpack(tiles, len(x))) @ x


def packed_downdate(tiles, vectors):
    whole = symmetric(unpack(tiles, vectors.shape[1]))
    for c in vectors:
        whole -= np.outer(c, c)
    return pack(whole)
