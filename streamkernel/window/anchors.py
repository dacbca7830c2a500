"""Anchors: some rows of the data that represent all, and which of them are near each row."""

import numpy as np

from streamkernel.compute.anchors import add_to_anchors, anchor_weights, claim_rows, move_centers, nearest
from streamkernel.compute.semi_stochastic import anchor_gradient
from streamkernel.compute.window_losses import LOGISTIC, SQUARED
from streamkernel.state import Array
from streamkernel.window.linear_model import LinearProblem

__all__ = ["AnchorGraph", "AnchorModel", "choose_anchors"]

# Centers are those of a sample, which costs less than the graph does.
_ROWS_AN_ANCHOR = 20
_LLOYD_STEPS = 5


def choose_anchors(X: Array, m: int, seed: int) -> Array:
    """Rows of X, as m different row numbers: those nearest to the centers of k-means on a sample.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat(np.eye(3), 5, axis=0)
    >>> len(set(choose_anchors(X, 3, seed=1)))
    3

    """
    n = len(X)
    if m == n:
        return np.arange(n)
    rng = np.random.default_rng(seed)
    among = np.sort(rng.choice(n, min(n, _ROWS_AN_ANCHOR * m), replace=False))
    sample = X[among]
    centers = sample[np.sort(rng.choice(len(among), m, replace=False))]
    places, distances = np.empty((len(among), 1), np.int64), np.empty((len(among), 1))
    for _ in range(_LLOYD_STEPS):
        nearest(sample, centers, places, distances)
        move_centers(sample, places, centers)
    own = np.empty(m, np.int64)
    claim_rows(sample, centers, own)
    return np.sort(among[own])


class AnchorGraph:
    """Which anchors are near each row, and with what shares: the same for all targets.

    - X: Rows of shape (n, p).
    - m: How many rows become anchors.
    - k: With how many anchors a row is connected.
    - scale: What the rows are to be multiplied by where distances are measured.
    - seed: Of the sample in which anchors are looked for.
    - anchors: Shape (m, p).
    - places, shares: Each row's nearest anchors, and their shares, of sum 1: shape (n, k).
    """

    def __init__(self, X: Array, m: int, k: int, scale: float, seed: int) -> None:
        self.anchors = X[choose_anchors(X, m, seed)]
        self.places = np.empty((len(X), k), np.int64)
        distances = np.empty((len(X), k))
        nearest(X, self.anchors, self.places, distances)
        self.shares = np.empty((len(X), k))
        anchor_weights(distances, scale, self.shares)


class AnchorModel:
    """What S3GD approximates gradients by: the anchors' derivatives, propagated to the rows.

    A derivative that depends on the label by a constant only, psi'(z, y) = psi'(z, y0) + c(y), is taken once an anchor:
    squared loss, y0 = 0 and c = -y; logistic loss, y0 = 1 and c(-1) = 1. Of the other losses each anchor has one
    derivative for each label.

    - graph: The anchors of the rows.
    - problem: The rows, their targets and weights, and the loss.
    - rows: Places, shares and offsets of the rows, as compiled code takes them.
    - sums: Anchors, labels, sums and offset, as compiled code takes them.
    """

    def __init__(self, graph: AnchorGraph, problem: LinearProblem) -> None:
        X, y, loss = problem.X, problem.y, problem.loss
        self.loss, weights = (loss.kind, loss.beta), problem.weights
        n, m = len(X), len(graph.anchors)
        offsets, places = np.zeros(n), graph.places
        if loss.kind == SQUARED:
            labels, offsets = np.zeros(1), -y
        elif loss.kind == LOGISTIC and not loss.beta:
            labels, offsets = np.ones(1), np.where(y < 0, 1.0, 0.0)
        else:
            labels = np.array([1.0, -1.0])
            places = np.where(y[:, None] < 0, places + m, places)
        sums = np.zeros((len(labels) * m, X.shape[1]))
        add_to_anchors(X, weights / n, places, graph.shares, sums)
        constant = np.zeros((1, X.shape[1]))
        add_to_anchors(X, weights * offsets / n, np.zeros((n, 1), np.int64), np.ones((n, 1)), constant)
        self.rows = places, graph.shares, offsets
        self.sums = graph.anchors, labels, sums, constant[0]

    def gradient(self, w: Array, rows: slice = slice(None)) -> tuple[Array, Array]:
        """What the anchors tell at w: the derivatives of some rows' losses, and the full gradient.

        - w: Coefficients of shape (p,).
        - rows: Which rows.
        """
        anchors, labels, sums, offset = self.sums
        d, H = np.empty(len(sums)), np.empty_like(w)
        anchor_gradient(*self.loss, anchors, labels, sums, offset, w, d, H)
        places, shares, offsets = (part[rows] for part in self.rows)
        return offsets + (shares * d[places]).sum(axis=1), H
