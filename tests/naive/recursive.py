"""Twins of recursive least squares and of Newton steps: whole matrices and their inverses."""

import numpy as np

from tests.naive.features import _dot


def _subtract(row, factor, v):
    return [row[j] - factor * v[j] for j in range(len(row))]


def dot(a, b):
    return _dot(a, b)


def symmetric(P):
    """The whole of a matrix of which the lower triangle counts."""
    return np.tril(P) + np.tril(P, -1).T


def symmetric_product(P, deferred, largest, x):
    """Two steps of what the kernel does in one pass."""
    P = symmetric(P) if deferred is None else apply_deferred(P, deferred, largest)
    return P, P @ x


def apply_deferred(P, deferred, largest):
    *u, gain, drift = deferred
    P = downdate(P, u, gain, 1)
    P[np.diag_indices_from(P)] = np.minimum(np.diag(P) + drift, largest)
    return P


def downdate(P, v, factor, scale):
    return scale * (symmetric(P) - factor * np.outer(v, v))


def _absorb(W, phi, errors, weight, v):
    gain = 1 / (1 / weight + _dot(phi, v))
    return W + gain * np.outer(errors, v), gain


def learn_least_squares(P, W, phi, errors, weight, drift, largest):
    """By the matrix whose inverse P is, to which a record adds its outer product."""
    P = np.linalg.inv(np.linalg.inv(symmetric(P)) + weight * np.outer(phi, phi))
    W = W + weight * np.outer(errors, P @ phi)
    P[np.diag_indices_from(P)] = np.minimum(np.diag(P) + drift, largest)
    return P, W


def learn_soundly(P, W, phi, errors, weight, drift, largest):
    """Of a positive P."""
    return learn_least_squares(P, W, phi, errors, weight, drift, largest)


def late_product(P, late, n_late, diagonals, x):
    """Of a whole matrix that takes what is due first."""
    return settle(P, late[:n_late], diagonals) @ x


def move_diagonal(c, drift, largest, diagonals):
    settled, alone = diagonals
    c = np.array(c)
    return np.array([np.minimum(settled - c**2 + drift, largest), alone - c**2])


def settle(P, late, diagonals):
    P = symmetric(P) - sum((np.outer(c, c) for c in late), np.zeros_like(P))
    P[np.diag_indices_from(P)] = diagonals[0]
    return P


def sound_gain(spread, weight, diagonal, largest, v):
    """That of a positive P is as it is, whatever v may be of it."""
    if spread <= 0:
        return 0
    least = 1e-14 * largest
    v, diagonal = np.array(v)[: len(diagonal)], np.array(diagonal)
    if (v**2 > (diagonal + least) * spread).any():
        spread = max(spread, *(v**2 / np.maximum(diagonal, least)))
    return 1 / (1 / weight + spread)


def learn_least_squares_late(P, W, phi, errors, weight, drift, largest):
    """Nothing is late."""
    return learn_least_squares(P, W, phi, errors, weight, drift, largest)


def learn_newton(P, W, phi, p, label, weight, forgetting, rho):
    """By the curvature, the inverse of P, which forgets before a record adds its own."""
    p = np.array(p)
    h = max(np.mean(p * (1 - p)), 0.02) * weight
    P = np.linalg.inv(forgetting * np.linalg.inv(symmetric(P)) + h * np.outer(phi, phi))
    W = W - weight * np.outer(p - np.eye(len(p))[label], P @ phi)
    if forgetting < 1:
        P = P * min(1, len(phi) / rho / np.trace(P))
    return P, W
