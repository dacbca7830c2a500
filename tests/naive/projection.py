"""Twin of streamkernel/compute/projection.py: rows are whole, none is cut into tiles."""

import math

import numpy as np


def whole_tiles(n):
    return math.ceil(n / 256) * 256


def products(rows, other):
    return rows.astype(float) @ other.astype(float)


def window_products(rows, window, begin, end):
    return {i: products(rows, window[i]) for i in range(begin, end)}


def subtract_window(window, factors, gains, out):
    return out - gains * (factors.astype(float) @ window)


def subtract_batch(window, base, factors, gains, out):
    return subtract_window(window[base : base + factors.shape[1]], factors, gains, out)


def ridge_of(own, ridge, weight):
    return max(ridge / weight, 1e-4 * own)


def solve_records(gram, ridge, weights, n, residuals):
    """Residuals (C, P) with the solution in place of the first n."""
    own = [ridge_of(gram[i, i], ridge, weights[i]) for i in range(n)]
    solution = np.linalg.solve(gram[:n, :n] + np.diag(own), residuals[:, :n].T).T
    return np.concatenate([solution, residuals[:, n:]], axis=1)
