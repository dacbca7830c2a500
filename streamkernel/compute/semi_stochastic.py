"""Proximal stochastic gradient steps with corrected gradients: SVRG's, by the full gradient, S3GD's, by the anchors'.

A loss is given by its number (window_losses.py). With `beta` above 0 it is taken at beta (z - y) in place of the score
z, and divided by beta: of the logistic loss that makes log(1 + exp(-beta (y z - 1))) / beta, a smooth hinge.

Rows are float64 of shape (n, p), contiguous. `state`, uint64 of shape (1,), is the generator of random rows.

Anchors: the nearest ones of rows, k-means' centers, and the sums that S3GD's full gradient is made of.
"""

from typing import Any

import numpy as np

from streamkernel.compute.gaussians import draw_row
from streamkernel.compute.jit import Array, jit, jit_long
from streamkernel.compute.recursive import dot
from streamkernel.compute.vectors import prefetch, wide
from streamkernel.compute.window_losses import elastic_net_step, loss_derivative, loss_value


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


# Numbers in a cache line, and of a row that are fetched ahead.
_LINE = 8
_FETCHED = 256


@jit
def draw_batch(state: Array, X: Array, rows: Array) -> None:
    """Fill `rows` with the numbers of drawn rows, which are fetched: of a long one the beginning, the rest follows."""
    n, p = X.shape
    for k in range(rows.shape[0]):
        i = draw_row(state, n)
        rows[k] = i
        for q in range(0, min(p, _FETCHED), _LINE):
            prefetch(X, i * p + q)
        prefetch(X, i * p + p - 1)


@jit
def derivative(kind: int, beta: float, z: float, y: float) -> Any:
    """The loss's derivative at a score z."""
    if beta > 0.0:
        z = beta * (z - y)
    return loss_derivative(kind, z, y)


@jit_long
def mean_loss(kind: int, beta: float, X: Array, y: Array, weights: Array, w: Array) -> Any:
    """(1/n) sum of the rows' losses, each times its weight."""
    total = 0.0
    for i in range(X.shape[0]):
        z = dot(X[i], w)
        if beta > 0.0:
            total += weights[i] * loss_value(kind, beta * (z - y[i]), y[i]) / beta
        else:
            total += weights[i] * loss_value(kind, z, y[i])
    return total / X.shape[0]


@jit_long
def full_gradient(
    kind: int, beta: float, X: Array, y: Array, weights: Array, w: Array, derivatives: Array, gradient: Array
) -> None:
    """The gradient of the mean loss at w, and each row's share of it.

    - kind, beta: The loss.
    - X, y, weights: Rows (n, p), targets (n,), weights (n,).
    - w: Coefficients (p,).
    - derivatives: Filled: each row's derivative times its weight, shape (n,).
    - gradient: Filled, shape (p,).
    """
    wide()
    n, p = X.shape
    for k in range(p):
        gradient[k] = 0.0
    for i in range(n):
        row = X[i]
        d = weights[i] * derivative(kind, beta, dot(row, w), y[i])
        derivatives[i] = d
        d /= n
        for k in range(p):
            gradient[k] += d * row[k]


@jit
def take_step(g: Array, w: Array, step: float, l2: float, l1: float) -> None:
    """Replace w by the elastic net's proximal step from w - step g."""
    for k in range(w.shape[0]):
        w[k] = elastic_net_step(w[k] - step * g[k], step, l2, l1)


@jit_long
def variance_reduced_steps(
    kind: int,
    beta: float,
    data: tuple[Array, Array, Array],
    own: Array,
    graph: tuple[Array, Array, Array] | None,
    gradient: Array,
    w: Array,
    steps: int,
    batch: int,
    penalty: tuple[float, float, float],
    state: Array,
) -> None:
    """SVRG's inner loop: steps along a mini-batch's gradient, corrected by the full gradient of an earlier w.

    Or S3GD's, corrected by the anchors' gradient.

    - kind, beta: The loss.
    - data: The rows, targets and weights, as in `full_gradient`.
    - own, graph: Each row's part of that gradient: its derivative, as `full_gradient` fills it, and None; or its offset
      and what `propagated` takes first.
    - gradient: That gradient, shape (p,).
    - w: Coefficients (p,), updated.
    - steps, batch: How many steps; how many rows each draws, with replacement.
    - penalty: The step's length, l2 and l1.
    - state: The generator, updated.
    """
    wide()
    X, y, weights = data
    step, l2, l1 = penalty
    g = np.empty(X.shape[1])
    # A batch is drawn while the one before it is used.
    drawn, rows = np.empty(batch, np.int64), np.empty(batch, np.int64)
    for t in range(steps + 1):
        drawn, rows = rows, drawn
        if t < steps:
            draw_batch(state, X, drawn)
            for i in drawn:
                prefetch(y, i)
                prefetch(weights, i)
                prefetch(own, i)
                if graph is not None:
                    k = graph[1].shape[1]
                    for c in (0, k - 1):
                        prefetch(graph[1], i * k + c)
                        prefetch(graph[2], i * k + c)
        if t == 0:
            continue
        for j in range(g.shape[0]):
            g[j] = gradient[j]
        for i in rows:
            row = X[i]
            slope = derivative(kind, beta, dot(row, w), y[i])
            if graph is None:
                change = (weights[i] * slope - own[i]) / batch
            else:
                change = weights[i] * (slope - propagated(graph[0], graph[1][i], graph[2][i], own[i])) / batch
            for j in range(g.shape[0]):
                g[j] += change * row[j]
        take_step(g, w, step, l2, l1)


@jit
def anchor_gradient(
    kind: int, beta: float, anchors: Array, labels: Array, sums: Array, offset: Array, w: Array, d: Array, H: Array
) -> None:
    """S3GD's approximation of the full gradient, in as many operations as the anchors have values.

    - kind, beta: The loss.
    - anchors: Shape (m, p).
    - labels: The targets for which the anchors' derivatives are taken, shape (L,).
    - sums: (1/n) times the rows propagated to the anchors, label after label: shape (L m, p).
    - offset: What of the gradient does not depend on w, shape (p,).
    - w: Coefficients (p,).
    - d: Filled: the anchors' derivatives, shape (L m,).
    - H: Filled: the gradient, shape (p,).
    """
    wide()
    m, p = anchors.shape
    for k in range(p):
        H[k] = offset[k]
    for a in range(m):
        z = dot(anchors[a], w)
        for s in range(labels.shape[0]):
            q = s * m + a
            d[q] = derivative(kind, beta, z, labels[s])
            own = sums[q]
            for k in range(p):
                H[k] += d[q] * own[k]


@jit
def propagated(d: Array, places: Array, shares: Array, offset: float) -> Any:
    """The derivative of a row that its anchors' derivatives `d` tell: their mean by its shares, and its offset."""
    total = offset
    for c in range(places.shape[0]):
        total += shares[c] * d[places[c]]
    return total


@jit_long
def semi_stochastic_rounds(
    kind: int,
    beta: float,
    X: Array,
    y: Array,
    weights: Array,
    graph: tuple[Array, Array, Array],
    model: tuple[Array, Array, Array, Array],
    w: Array,
    total: Array,
    rounds: int,
    inner: int,
    batch: int,
    penalty: tuple[float, float, float],
    state: Array,
) -> None:
    """S3GD's outer loop: the anchors' gradient, then `inner` steps along a mini-batch's gradient corrected by it.

    - kind, beta, X, y, weights: The problem, as in `full_gradient`.
    - graph: Of each row its anchors and their shares, shape (n, k), and its offset, shape (n,), as in `propagated`.
    - model: Of the anchors `anchors`, `labels`, `sums` and `offset`, as in `anchor_gradient`.
    - w: Coefficients (p,), updated.
    - total: Sum of the coefficients at the ends of rounds, shape (p,), updated.
    - rounds, inner, batch: How often the anchors' gradient is taken; how many steps follow; how many rows each draws,
      with replacement.
    - penalty: The step's length, l2 and l1.
    - state: The generator, updated.
    """
    places, shares, offsets = graph
    d, H = np.empty(model[2].shape[0]), np.empty(X.shape[1])
    for _ in range(rounds):
        anchor_gradient(kind, beta, *model, w, d, H)
        own = offsets, (d, places, shares)
        variance_reduced_steps(kind, beta, (X, y, weights), *own, H, w, inner, batch, penalty, state)
        for j in range(total.shape[0]):
            total[j] += w[j]
