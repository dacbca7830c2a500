"""Target neighbors and impostors of large-margin metric learning."""

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Triplets", "find_triplets", "nearest"]

Array = np.ndarray[Any, np.dtype[Any]]

#: Distances that are at hand at a time.
_DISTANCES = 4_000_000


class Triplets(NamedTuple):
    """Pairs (u, v) of neighbors of one label, and triplets (u, v, w) with w near u and of another label.

    Attributes
    ----------
    pairs
        Rows u, v; shape (n_pairs, 2).
    triplets
        Rows u, v, w; shape (n_triplets, 3).

    """

    pairs: Array
    triplets: Array


def nearest(X: Array, rows: Array, others: Array, k: int) -> Array:
    """The k rows among `others` nearest to each of `rows`, without itself, nearest first; fewer where there are fewer.

    Parameters
    ----------
    X
        Shape (n, d).
    rows, others
        Numbers of rows, shapes (a,) and (b,).
    k
        Neighbors, at least 1.

    Returns
    -------
    Numbers of rows, shape (a, at most k).

    Examples
    --------
    >>> import numpy as np
    >>> nearest(np.array([[0.0], [1.0], [3.0], [7.0]]), np.array([1, 3]), np.arange(4), 2)
    array([[0, 2],
           [2, 1]])

    """
    own = np.isin(rows, others)
    k = min(k, len(others) - int(own.any()))
    found = np.empty((len(rows), max(k, 0)), np.int64)
    if k < 1:
        return found
    squares = np.einsum("ij,ij->i", X[others], X[others])
    at_once = max(_DISTANCES // len(others), 1)
    for first in range(0, len(rows), at_once):
        some = rows[first : first + at_once]
        D = squares - 2 * (X[some] @ X[others].T)  # less |x|^2 of the row, which is the same for all others
        D[some[:, None] == others] = np.inf
        few = np.sort(np.argpartition(D, k - 1, axis=1)[:, :k], axis=1)
        order = np.argsort(np.take_along_axis(D, few, axis=1), axis=1, kind="stable")
        found[first : first + at_once] = others[np.take_along_axis(few, order, axis=1)]
    return found


def find_triplets(X: Array, y: Array, k: int, impostors: int) -> Triplets:
    """The k nearest rows of its label of each row, each with the nearest rows of other labels.

    Parameters
    ----------
    X, y
        Rows of one task, shape (n, d), and their labels.
    k, impostors
        Target neighbors of a row, and rows of other labels that each is compared with.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [1.5], [3.0]])
    >>> find_triplets(X, np.array([0, 0, 1, 1]), k=1, impostors=1).triplets
    array([[0, 1, 2],
           [1, 0, 2],
           [2, 3, 1],
           [3, 2, 1]])

    """
    pairs, triplets = [np.empty((0, 2), np.int64)], [np.empty((0, 3), np.int64)]
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        targets = nearest(X, rows, rows, k)
        enemies = nearest(X, rows, np.flatnonzero(y != label), impostors)
        u, v = np.repeat(rows, targets.shape[1]), targets.ravel()
        pairs.append(np.column_stack([u, v]))
        w = np.repeat(enemies, targets.shape[1], axis=0)
        many = w.shape[1]
        triplets.append(np.column_stack([np.repeat(u, many), np.repeat(v, many), w.ravel()]))
    return Triplets(np.concatenate(pairs), np.concatenate(triplets))
