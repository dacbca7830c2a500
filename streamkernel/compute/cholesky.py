"""Cholesky factors of the matrix of a preconditioned step, without a library, whose threads may change last bits.

Matrices are float64, contiguous, and symmetric: only their upper triangle is read and written.
"""

from typing import Any

import numpy as np

from streamkernel.compute.features import mean_outer
from streamkernel.compute.jit import Array, jit
from streamkernel.compute.recursive import dot
from streamkernel.compute.vectors import multiply_add, wide

# A tile with these numbers of rows and columns stays in the first-level cache.
_ROWS = 32
_COLUMNS = 128


@jit
def _copy_tile(P: Array, rows: tuple[int, int], columns: tuple[int, int], sign: float, tile: Array) -> None:
    """Fill the tile with sign times a part of P, and zeros up to the next four rows: rows of P lie far apart."""
    n, m = rows[1] - rows[0], columns[1] - columns[0]
    for k in range(n):
        row = P[rows[0] + k]
        for j in range(m):
            tile[k, j] = sign * row[columns[0] + j]
    for k in range(n, n + -n % 4):
        for j in range(m):
            tile[k, j] = 0.0


@jit
def _add_one(left: Array, right: Array, i: int, n: int, first: int, own: Array) -> None:
    """Add column i of a tile times another tile, of n rows each, to a row from `first` on."""
    wide()
    for k in range(0, n, 4):
        a, b, c, d = left[k, i], left[k + 1, i], left[k + 2, i], left[k + 3, i]
        r0, r1, r2, r3 = right[k], right[k + 1], right[k + 2], right[k + 3]
        for j in range(first, own.shape[0]):
            own[j] = multiply_add(
                d, r3[j], multiply_add(c, r2[j], multiply_add(b, r1[j], multiply_add(a, r0[j], own[j])))
            )


@jit
def _add_two(left: Array, right: Array, i: int, n: int, own: Array, next_own: Array) -> None:
    """Add columns i and i + 1 of a tile times another tile, of n rows each, to two rows."""
    wide()
    for k in range(0, n, 4):
        a, b, c, d = left[k, i], left[k + 1, i], left[k + 2, i], left[k + 3, i]
        e, f, g, h = left[k, i + 1], left[k + 1, i + 1], left[k + 2, i + 1], left[k + 3, i + 1]
        r0, r1, r2, r3 = right[k], right[k + 1], right[k + 2], right[k + 3]
        for j in range(own.shape[0]):
            p, q, s, t = r0[j], r1[j], r2[j], r3[j]
            own[j] = multiply_add(d, t, multiply_add(c, s, multiply_add(b, q, multiply_add(a, p, own[j]))))
            next_own[j] = multiply_add(h, t, multiply_add(g, s, multiply_add(f, q, multiply_add(e, p, next_own[j]))))


@jit
def add_gram(P: Array, first: int, last: int, column: int, sign: float, C: Array) -> None:
    """C += sign P^T P, of the rows of P from `first` to before `last` and the columns from `column` on.

    - P: Shape (n, m); it may be C itself, where those rows are above `column`.
    - first, last, column: The part of P; the same columns of C, and as many rows, are written.
    - sign: 1 or -1.
    - C: Shape (m, m), upper triangle.
    """
    wide()
    m = C.shape[0]
    left = np.empty((_ROWS, _COLUMNS))
    right = np.empty((_ROWS, _COLUMNS))
    for start in range(column, m, _COLUMNS):
        stop = min(start + _COLUMNS, m)
        for above in range(first, last, _ROWS):
            below = min(above + _ROWS, last)
            _copy_tile(P, (above, below), (start, stop), 1.0, right)
            for begin in range(column, stop, _COLUMNS):
                end = min(begin + _COLUMNS, stop)
                _copy_tile(P, (above, below), (begin, end), sign, left)
                # Two rows of C at a time, so that those of P are read half as often; the diagonal's own are done alone.
                paired = end - (end - begin) % 2 if end <= start else begin
                for i in range(begin, paired, 2):
                    _add_two(left, right, i - begin, below - above, C[i, start:stop], C[i + 1, start:stop])
                for i in range(paired, end):
                    _add_one(left, right, i - begin, below - above, max(i - start, 0), C[i, start:stop])


@jit
def factorize(C: Array) -> None:
    """Replace C, symmetric positive definite of shape (m, m), by its factor U, upper triangular, with C = U^T U."""
    wide()
    m = C.shape[0]
    for first in range(0, m, _ROWS):
        last = min(first + _ROWS, m)
        for r in range(first, last):
            own = C[r]
            for q in range(first, r):
                other = C[q]
                factor = -other[r]
                for j in range(r, m):
                    own[j] = multiply_add(factor, other[j], own[j])
            pivot = 1 / np.sqrt(own[r])
            for j in range(r, m):
                own[j] *= pivot
        add_gram(C, first, last, last, -1.0, C)


@jit
def solve(U: Array, b: Array) -> None:
    """Replace each row of b, shape (K, m), by the x of U^T U x = b."""
    wide()
    m = U.shape[0]
    for q in range(m):
        row = U[q]
        for o in range(b.shape[0]):
            own = b[o]
            own[q] /= row[q]
            factor = -own[q]
            for j in range(q + 1, m):
                own[j] = multiply_add(factor, row[j], own[j])
    for q in range(m - 1, -1, -1):
        row = U[q]
        for o in range(b.shape[0]):
            own = b[o]
            own[q] = (own[q] - dot(row[q + 1 :], own[q + 1 :])) / row[q]


@jit
def add_products(phi: Array, delta: Array, scores: Array) -> None:
    """scores (n, K) += phi (n, D) delta^T of delta (K, D), float64."""
    for i in range(phi.shape[0]):
        for o in range(delta.shape[0]):
            scores[i, o] += dot(phi[i], delta[o])


@jit
def ridge_solution(phi: Array, P: Array, g: Array, weights: Array, ridge: float, curvature: float, out: Array) -> Any:
    """Fill `out` (K, D) with (P^T P + ridge I)^-1 P^T g over a curvature; whether that is finite.

    - phi, P: Features, (B, D), and these times the roots of the records' weights, float64.
    - g, weights: Gradients, (B, K), and weights, (B,).
    """
    B, D, K = P.shape[0], P.shape[1], g.shape[1]
    out[:] = 0
    if ridge == 0.0 or not np.isfinite(ridge):
        return ridge == 0.0
    C = np.zeros((min(B, D), min(B, D)))
    for i in range(C.shape[0]):
        C[i, i] = ridge
    residuals, dual = np.empty((B, K)), np.empty((K, B))
    for i in range(B):
        root = np.sqrt(weights[i])
        for o in range(K):
            dual[o, i] = g[i, o] * root
            residuals[i, o] = dual[o, i] * root * B
    if D <= B:
        mean_outer(phi, residuals, out)
        add_gram(P, 0, B, 0, 1.0, C)
        factorize(C)
        solve(C, out)
    else:
        # P^T (P P^T + r I)^-1 is the same, and of a matrix of records.
        add_gram(np.ascontiguousarray(P.T), 0, D, 0, 1.0, C)
        factorize(C)
        solve(C, dual)
        for i in range(B):
            root = np.sqrt(weights[i])
            for o in range(K):
                residuals[i, o] = dual[o, i] * root * B
        mean_outer(phi, residuals, out)
    is_finite = True
    for o in range(K):
        for j in range(D):
            is_finite = is_finite and np.isfinite(out[o, j])
            out[o, j] /= curvature
    return is_finite
