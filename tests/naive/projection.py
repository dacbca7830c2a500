"""Twin of streamkernel/compute/projection.py: rows are whole, none is cut into tiles."""

import math

import numpy as np


def whole_tiles(n):
    return math.ceil(n / 256) * 256


def products(rows, other):
    return rows.astype(float) @ other.astype(float)


def row_products(row, window, begin, end):
    return products(window[begin:end], row)


def window_products(rows, window, begin, end):
    return {i: products(rows, window[i]) for i in range(begin, end)}


def subtract_window(window, factors, gains, out):
    return out - gains * (factors.astype(float) @ window)


def subtract_batch(window, base, factors, gains, out):
    return subtract_window(window[base : base + factors.shape[1]], factors, gains, out)


def ridge_of(own, ridge, weight):
    return np.maximum(ridge / max(weight, 1e-100), 1e-4 * own)


def solve_records(gram, ridges, weights, n, residuals):
    """Residuals (C, P, systems) with the solutions in place of the first n."""
    solved = residuals.copy()
    for s in range(residuals.shape[2]):
        own = [ridge_of(gram[i, i], ridges[s], weights[i]) for i in range(n)]
        solved[:, :n, s] = np.linalg.solve(gram[:n, :n] + np.diag(own), residuals[:, :n, s].T).T
    return solved
