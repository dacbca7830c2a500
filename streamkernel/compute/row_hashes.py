"""Hashes of rows of numbers by what they hold, whatever the order of their columns."""

import numpy as np

from streamkernel.compute.gaussians import mix64
from streamkernel.compute.jit import Array, jit


@jit
def add_row_hashes(values: Array, words: Array, keys: Array, hashes: Array) -> None:
    """Add the hash of each number and its key to its row's; what is NaN adds nothing.

    Parameters
    ----------
    values
        float64 of shape (n, d).
    words
        The same as uint64, bit by bit.
    keys
        The keys of the columns, uint64 of shape (d,).
    hashes
        Added to, uint64 of shape (n,).
    """
    for r in range(values.shape[0]):
        total = hashes[r]
        for j in range(values.shape[1]):
            if not np.isnan(values[r, j]):
                total += mix64(mix64(words[r, j]) ^ keys[j])
        hashes[r] = total


def row_hashes(values: Array, keys: Array) -> Array:
    """The hash of each row, uint64 of shape (n,): equal of rows with equal numbers under equal keys.

    Parameters
    ----------
    values
        float64 of shape (n, d); NaN where there is no number.
    keys
        uint64 of shape (d,).

    Examples
    --------
    >>> values, keys = np.array([[1.0, 2.0], [1.0, np.nan]]), np.array([5, 7], np.uint64)
    >>> bool((row_hashes(values, keys) == row_hashes(values[:, ::-1], keys[::-1])).all())
    True

    """
    values = np.ascontiguousarray(values + 0.0)  # -0 is 0
    hashes = np.zeros(len(values), np.uint64)
    add_row_hashes(values, values.view(np.uint64), np.ascontiguousarray(keys), hashes)
    return hashes
