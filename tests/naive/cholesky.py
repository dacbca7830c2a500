"""Twins of the Cholesky factorisation, on whole matrices."""

import numpy as np

from tests.naive.features import _dot


def _copy_tile(P, rows, columns, sign):
    """With the zeros below, up to a multiple of four rows."""
    part = sign * P[slice(*rows), slice(*columns)]
    return np.concatenate([part, np.zeros((-len(part) % 4, part.shape[1]))])


def add_gram(P, first, last, column, sign, C):
    """Its upper triangle counts."""
    part = P[first:last, column:]
    out = np.array(C)
    out[column:, column:] += sign * np.einsum("ki,kj->ij", part, part)
    return out


def factorise(C):
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
