"""Twins of the anchors: whole matrices of distances."""

import math

import numpy as np


def relative_distances(x, columns, halves):
    return np.array([half - x @ point for point, half in zip(columns.T, halves, strict=True)])


def smallest(values, k):
    return np.argsort(values, kind="stable")[:k]


def nearest(X, points, k):
    """Places and squared distances."""
    squares = np.square(X[:, None, :] - points[None, :, :]).sum(axis=2)
    places = np.array([smallest(row, k) for row in squares]).reshape(len(X), k)
    return places, np.take_along_axis(squares, places, axis=1)


def move_centers(X, places, centers):
    own = [X[places[:, 0] == c] for c in range(len(centers))]
    return np.array([rows.mean(axis=0) if len(rows) else center for rows, center in zip(own, centers, strict=True)])


def claim_rows(X, points):
    taken = []
    for point in points:
        free = [i for i in range(len(X)) if i not in taken]
        taken.append(min(free, key=lambda i: np.square(X[i] - point).sum()))
    return np.array(taken)


def anchor_weights(distances, scale):
    out = []
    for row in distances:
        far = [math.sqrt(d) * scale for d in row]
        width = max(1e-4, math.sqrt(far[0]))
        powers = [math.exp(-(d**2 - far[0] ** 2) / width**2) for d in far]
        out.append([power / sum(powers) for power in powers])
    return np.array(out)


def add_to_anchors(X, factors, places, weights, sums):
    """By the matrix M of the weights, a row of it for each row."""
    M = np.zeros((len(X), len(sums)))
    for i, (own, shares) in enumerate(zip(places, weights, strict=True)):
        for place, share in zip(own, shares, strict=True):
            M[i, place] += share
    return sums + (M * factors[:, None]).T @ X
