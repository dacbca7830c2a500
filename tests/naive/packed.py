"""Twins of packed symmetric matrices: tiles one after the other, and whole matrices."""

import numpy as np

from tests.naive.recursive import settle, symmetric

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


def _spans(block):
    """The rows of a row of tiles, and the columns before them."""
    return slice(SIDE * block, SIDE * block + SIDE), slice(0, SIDE * block)


def multiply_rows(P, block, X, V):
    """Of a whole matrix; and the tiles up to this one in which each row of X is not 0."""
    own, before = _spans(block)
    V = np.array(V)
    V[:, own] = X[:, : own.stop] @ P[own, : own.stop].T
    V[:, before] += X[:, own] @ P[own, before]
    return V, [[b for b in range(block + 1) if x[_spans(b)[0]].any()] for x in X]


def downdate_row(P, block, vectors):
    """Take a whole matrix. Only the row of tiles changes, and nothing past its last tile."""
    own, _ = _spans(block)
    P = np.array(P)
    P[own, : own.stop] -= vectors[:, own].T @ vectors[:, : own.stop]
    return P


def settled_products(P, is_due, late, diagonals, X):
    """The matrix and its products."""
    P = settle(P, late, diagonals) if is_due else symmetric(P)
    return P, X @ P
