"""Nearest anchors of rows, k-means' centers, and the anchors' sums that a full gradient is made of.

Rows are float64, contiguous. Zeros among their values cost nothing where distances are computed.
"""

import numpy as np

from streamkernel.compute.jit import Array, jit, jit_long
from streamkernel.compute.vectors import wide


@jit
def relative_distances(x: Array, columns: Array, halves: Array, out: Array) -> None:
    """Half the squared distances of a row to m points, less half the row's squared norm, which is the same for all.

    - x: Shape (p,).
    - columns: The points, transposed: shape (p, m).
    - halves: Half their squared norms, shape (m,).
    - out: Filled, shape (m,).
    """
    wide()
    for j in range(out.shape[0]):
        out[j] = halves[j]
    for k in range(x.shape[0]):
        value = x[k]
        if value != 0.0:
            own = columns[k]
            for j in range(out.shape[0]):
                out[j] -= value * own[j]


@jit
def smallest(values: Array, places: Array) -> None:
    """Fill `places`, no more than there are values, with those of the smallest, ascending; of equals the first."""
    k = places.shape[0]
    n = 0
    for j in range(values.shape[0]):
        value = values[j]
        if n == k and value >= values[places[k - 1]]:
            continue
        if n < k:
            n += 1
        at = n - 1
        while at > 0 and values[places[at - 1]] > value:
            places[at] = places[at - 1]
            at -= 1
        places[at] = j


@jit_long
def nearest(X: Array, points: Array, places: Array, distances: Array) -> None:
    """The nearest points of each row, ascending, and their squared distances.

    - X: Shape (n, p).
    - points: Shape (m, p).
    - places: Filled: int64 of shape (n, k), k at most m.
    - distances: Filled: float64 of shape (n, k).
    """
    m, p = points.shape
    columns = np.empty((p, m))
    halves = np.zeros(m)
    for j in range(m):
        for k in range(p):
            columns[k, j] = points[j, k]
            halves[j] += 0.5 * points[j, k] ** 2
    relative = np.empty(m)
    for i in range(X.shape[0]):
        relative_distances(X[i], columns, halves, relative)
        smallest(relative, places[i])
        for c in range(places.shape[1]):
            point = points[places[i, c]]
            total = 0.0
            for k in range(p):
                total += (X[i, k] - point[k]) ** 2
            distances[i, c] = total


@jit_long
def move_centers(X: Array, places: Array, centers: Array) -> None:
    """Replace each center by the mean of its rows: one step of Lloyd's algorithm. A center without rows stays.

    - X: Shape (n, p).
    - places: Each row's center, shape (n, 1).
    - centers: Shape (m, p), updated.
    """
    counts = np.zeros(centers.shape[0])
    for i in range(X.shape[0]):
        counts[places[i, 0]] += 1.0
    for c in range(centers.shape[0]):
        if counts[c] > 0.0:
            centers[c] = 0.0
    for i in range(X.shape[0]):
        c = places[i, 0]
        center, share, row = centers[c], 1.0 / counts[c], X[i]
        for k in range(X.shape[1]):
            center[k] += share * row[k]


@jit_long
def claim_rows(X: Array, points: Array, places: Array) -> None:
    """Each point's nearest row that is not an earlier point's.

    - X: Shape (n, p).
    - points: Shape (m, p), m at most n.
    - places: Filled: int64 of shape (m,).
    """
    n, p = X.shape
    free = np.ones(n, np.bool_)
    for j in range(points.shape[0]):
        least, best = np.inf, 0
        for i in range(n):
            if free[i]:
                total = 0.0
                for k in range(p):
                    total += (X[i, k] - points[j, k]) ** 2
                if total < least:
                    least, best = total, i
        free[best] = False
        places[j] = best


@jit
def anchor_weights(distances: Array, scale: float, weights: Array) -> None:
    """The weights of each row's nearest anchors: exp(-d^2 / s^2) with s^2 = max(1e-8, smallest d), to a sum of 1.

    The nearest anchor's exponent is subtracted, so that the largest weight is exp(0) before the division.

    - distances: Squared distances, ascending, shape (n, k).
    - scale: What rows are multiplied by before: of the distances d here, d scale count.
    - weights: Filled, shape (n, k).
    """
    for i in range(distances.shape[0]):
        own = weights[i]
        closest = distances[i, 0]
        width = max(1e-8, np.sqrt(closest) * scale)
        total = 0.0
        for c in range(own.shape[0]):
            own[c] = np.exp((closest - distances[i, c]) * scale * scale / width)
            total += own[c]
        for c in range(own.shape[0]):
            own[c] /= total


@jit_long
def add_to_anchors(X: Array, factors: Array, places: Array, weights: Array, sums: Array) -> None:
    """Add each row times its factor to the sums of its anchors, shape (m, p), each with the anchor's weight.

    - X: Shape (n, p).
    - factors: Shape (n,).
    - places, weights: Each row's anchors and their weights, shape (n, k).
    - sums: Updated, shape (m, p).
    """
    wide()
    for i in range(X.shape[0]):
        row = X[i]
        for c in range(places.shape[1]):
            own, factor = sums[places[i, c]], factors[i] * weights[i, c]
            if factor != 0.0:
                for k in range(row.shape[0]):
                    own[k] += factor * row[k]
