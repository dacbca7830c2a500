"""Affine projection: coefficients move to where the last records are fitted, by products of these records alone.

Of n records with features Phi (n, D) and residuals R (n, C), the solution of (Phi Gamma Phi^T + ridge / w) Z = R moves
the coefficients by -eta Gamma Phi^T Z. Gamma holds a gain for each feature. Nothing is of size D times D.

Rows are cut into tiles of columns, the last of which ends in zeros. A tile of the records' features stays in the
first-level cache, and is one array: a loop over more of them would not be vectorized.
"""

import numpy as np

from streamkernel.compute.jit import Array, jit
from streamkernel.compute.lanes import DOT, add_four_dots
from streamkernel.compute.vectors import multiply_add, subtract_four, wide

#: Records that arrive at once, and those that a step fits.
BATCH, WINDOW = 4, 16
#: Systems that are solved at once.
SYSTEMS = 4
#: Columns of a tile.
TILE = DOT
#: The least ridge, in parts of a record's product with itself: products are sums in single precision.
LEAST_RIDGE = 1e-4
#: Lighter records count as if they had this weight: a ridge is finite.
LEAST_WEIGHT = 1e-100


@jit
def whole_tiles(n: int) -> int:
    """Round a number of columns up to whole tiles."""
    return -(-n // TILE) * TILE


@jit
def products(rows: Array, n_tiles: int, other: Array, out: Array) -> None:
    """The products of four rows, float32 of shape (4, room), with another (room,), into `out` (4,), float64."""
    for i in range(BATCH):
        out[i] = 0.0
    for first in range(0, n_tiles * TILE, TILE):
        add_four_dots(rows, first, rows.shape[1], other, first, out, 0)


@jit
def row_products(row: Array, n_tiles: int, window: Array, begin: int, end: int, out: Array) -> None:
    """The products of one row with some records of a window, whole fours, into these of `out` (WINDOW,).

    They have the bits that `window_products` has, which takes four rows.
    """
    for i in range(begin, end):
        out[i] = 0.0
    for t in range(n_tiles):
        for i in range(begin, end, BATCH):
            add_four_dots(window, (t * WINDOW + i) * TILE, TILE, row, t * TILE, out, i)


@jit
def window_products(rows: Array, n_tiles: int, window: Array, begin: int, end: int, out: Array) -> None:
    """The products of four rows with some records of a window, with the bits that `products` has.

    - rows: Float32 of shape (BATCH, room).
    - n_tiles: The tiles in use.
    - window: Float32 of shape (at least n_tiles, WINDOW, TILE).
    - begin, end: The records.
    - out: Filled in these rows, float64 of shape (WINDOW, BATCH).
    """
    for i in range(begin, end):
        for k in range(BATCH):
            out[i, k] = 0.0
    for t in range(n_tiles):
        for i in range(begin, end):
            add_four_dots(rows, t * TILE, rows.shape[1], window, (t * WINDOW + i) * TILE, out, i * BATCH)


@jit
def subtract_window(window: Array, n_tiles: int, factors: Array, gains: Array, out: Array) -> None:
    """out_h -= gains sum_i factors_hi window_i, all rows of the window at once.

    - window: As `window_products` has it.
    - n_tiles: The tiles in use.
    - factors: Float32 of shape (H, WINDOW).
    - gains: Float32 of shape (room,).
    - out: Float32 of shape (H, room); updated.
    """
    wide()
    for t in range(n_tiles):
        tile, first = window[t].reshape(-1), t * TILE
        own_gains = gains[first : first + TILE]
        for h in range(factors.shape[0]):
            f, own = factors[h], out[h, first : first + TILE]
            f0, f1, f2, f3, f4, f5, f6, f7 = f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7]
            f8, f9, f10, f11, f12, f13, f14, f15 = f[8], f[9], f[10], f[11], f[12], f[13], f[14], f[15]
            for j in range(TILE):
                total = f0 * tile[j]
                total = multiply_add(f1, tile[j + TILE], total)
                total = multiply_add(f2, tile[j + 2 * TILE], total)
                total = multiply_add(f3, tile[j + 3 * TILE], total)
                total = multiply_add(f4, tile[j + 4 * TILE], total)
                total = multiply_add(f5, tile[j + 5 * TILE], total)
                total = multiply_add(f6, tile[j + 6 * TILE], total)
                total = multiply_add(f7, tile[j + 7 * TILE], total)
                total = multiply_add(f8, tile[j + 8 * TILE], total)
                total = multiply_add(f9, tile[j + 9 * TILE], total)
                total = multiply_add(f10, tile[j + 10 * TILE], total)
                total = multiply_add(f11, tile[j + 11 * TILE], total)
                total = multiply_add(f12, tile[j + 12 * TILE], total)
                total = multiply_add(f13, tile[j + 13 * TILE], total)
                total = multiply_add(f14, tile[j + 14 * TILE], total)
                total = multiply_add(f15, tile[j + 15 * TILE], total)
                own[j] = multiply_add(-own_gains[j], total, own[j])


@jit
def subtract_batch(window: Array, n_tiles: int, base: int, factors: Array, gains: Array, out: Array) -> None:
    """The same with the four records from `base` on only; factors are (H, BATCH)."""
    wide()
    for t in range(n_tiles):
        tile, first = window[t].reshape(-1)[base * TILE : (base + BATCH) * TILE], t * TILE
        own_gains = gains[first : first + TILE]
        for h in range(factors.shape[0]):
            own = out[h, first : first + TILE]
            f0, f1, f2, f3 = factors[h, 0], factors[h, 1], factors[h, 2], factors[h, 3]
            for j in range(TILE):
                total = f0 * tile[j]
                total = multiply_add(f1, tile[j + TILE], total)
                total = multiply_add(f2, tile[j + 2 * TILE], total)
                total = multiply_add(f3, tile[j + 3 * TILE], total)
                own[j] = multiply_add(-own_gains[j], total, own[j])


@jit
def ridge_of(own: float, ridge: float, weight: float) -> float:
    """The ridge of a record with this product with itself."""
    return max(ridge / max(weight, LEAST_WEIGHT), LEAST_RIDGE * own)


@jit
def solve_records(gram: Array, ridges: tuple[float, ...], weights: Array, n: int, residuals: Array) -> None:
    """Replace the first n residuals of some heads by the solutions: four systems, side by side.

    - gram: The products of records, float64 of shape (P, P).
    - ridges: lambda of each system; there may be more.
    - weights: Above 0, shape (P,).
    - n: The records that there are.
    - residuals: Float64 of shape (C, P, SYSTEMS).
    """
    U, scales = np.empty((n, n, SYSTEMS)), np.empty((n, SYSTEMS))
    for i in range(n):
        for j in range(i, n):
            for s in range(SYSTEMS):
                U[i, j, s] = gram[i, j]
        for s in range(SYSTEMS):
            U[i, i, s] += ridge_of(gram[i, i], ridges[s], weights[i])
    # Cholesky's factor. `scales` has the reciprocals of its diagonal.
    for r in range(n):
        for q in range(r):
            for j in range(r, n):
                subtract_four(U, (r * n + j) * SYSTEMS, U, (q * n + r) * SYSTEMS, U, (q * n + j) * SYSTEMS)
        for s in range(SYSTEMS):
            scales[r, s] = 1.0 / np.sqrt(U[r, r, s])
        for j in range(r, n):
            for s in range(SYSTEMS):
                U[r, j, s] *= scales[r, s]
    for c in range(residuals.shape[0]):
        own = residuals[c]
        for q in range(n):
            for s in range(SYSTEMS):
                own[q, s] *= scales[q, s]
            for j in range(q + 1, n):
                subtract_four(own, j * SYSTEMS, own, q * SYSTEMS, U, (q * n + j) * SYSTEMS)
        for q in range(n - 1, -1, -1):
            for s in range(SYSTEMS):
                own[q, s] *= scales[q, s]
            for j in range(q):
                subtract_four(own, j * SYSTEMS, own, q * SYSTEMS, U, (j * n + q) * SYSTEMS)
