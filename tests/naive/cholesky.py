"""Twins of the Cholesky factorization, on whole matrices."""

import numpy as np

from tests.naive.features import _dot


def _copy_tile(P, rows, columns, sign):
    """With the zeros below, up to a multiple of four rows."""
    part = sign * P[slice(*rows), slice(*columns)]
    return np.concatenate([part, np.zeros((-len(part) % 4, part.shape[1]))])


def _add_one(left, right, i, n, first, own):
    """The row, from `first` on."""
    return [a + _dot(left[:n, i], right[:n, j]) for j, a in enumerate(own[first:], start=first)]


def _add_two(left, right, i, n, own, next_own):
    return _add_one(left, right, i, n, 0, own), _add_one(left, right, i + 1, n, 0, next_own)


def add_gram(P, first, last, column, sign, C):
    """Its upper triangle counts."""
    part = P[first:last, column:]
    out = np.array(C)
    out[column:, column:] += sign * np.einsum("ki,kj->ij", part, part)
    return out


def factorize(C):
    U = np.zeros_like(C)
    for i in range(len(C)):
        for j in range(i, len(C)):
            rest = C[i, j] - _dot(U[:i, i], U[:i, j])
            U[i, j] = np.sqrt(rest) if i == j else rest / U[i, i]
    return U


def solve(U, b):
    U = np.triu(U)
    return np.linalg.solve(U.T @ U, b.T).T


def add_products(phi, delta, scores):
    return np.array(
        [[s + _dot(row, d) for s, d in zip(own, delta, strict=True)] for row, own in zip(phi, scores, strict=True)]
    )


def ridge_solution(phi, g, weights, ridge, curvature):
    """Nothing without a ridge; None where that is not finite."""
    if not np.isfinite(ridge):
        return None
    if ridge == 0:
        return np.zeros((g.shape[1], phi.shape[1]))
    Phi, W = phi.astype(float), np.diag(weights)
    return np.linalg.solve(Phi.T @ W @ Phi + ridge * np.eye(phi.shape[1]), Phi.T @ W @ g).T / curvature
