"""Distances and inner products of all pairs of rows."""

import numpy as np

from streamkernel.state import Array

#: Kernels without a bound are cut here either way, so that they are finite.
LARGEST_VALUE = 1e150


def median_of_pairs(D: Array) -> float:
    """The median of a symmetric matrix over all pairs of different rows; 0 where there are none."""
    pairs = D[np.triu_indices(len(D), 1)]
    return float(np.median(pairs)) if len(pairs) else 0.0


def distances(X: Array, Y: Array, metric: str = "euclidean") -> Array:
    """The distances of all pairs of rows of X and Y, float64 of shape (n, m), by one of scipy's metrics."""
    X, Y = np.asarray(X, np.float64), np.asarray(Y, np.float64)
    if not X.shape[1]:
        return np.zeros((len(X), len(Y)))
    from scipy.spatial import distance  # it takes a tenth of a second, which few processes need

    return np.asarray(distance.cdist(X, Y, metric))


def inner_products(X: Array, Y: Array) -> Array:
    """The inner products of all pairs of rows of X and Y, float64 of shape (n, m)."""
    return np.asarray(np.asarray(X, np.float64) @ np.asarray(Y, np.float64).T)


def squared_distances(X: Array, Y: Array) -> Array:
    """The squared Euclidean distances of all pairs of rows of X and Y, float64 of shape (n, m), at least 0."""
    X = np.asarray(X, np.float64)
    Y = np.asarray(Y, np.float64)
    squared = (X * X).sum(axis=1)[:, None] + (Y * Y).sum(axis=1)[None, :] - 2 * X @ Y.T
    return np.asarray(np.maximum(squared, 0.0))
