"""Affine projection: coefficients move to where the last records are fitted, by products of these records alone.

Of n records with features Phi (n, D) and residuals R (n, C), the solution of (Phi Gamma Phi^T + ridge / w) Z = R moves
the coefficients by -eta Gamma Phi^T Z. Gamma holds a gain for each feature. Nothing is of size D times D.

Rows are cut into tiles of columns, the last of which ends in zeros. A tile of the records' features stays in the
first-level cache, and is one array: a loop over more of them would not be vectorized.
"""

from typing import Any

import numpy as np

from streamkernel.compute.cholesky import factorize, solve
from streamkernel.compute.intrinsics import multiply_add, wide
from streamkernel.compute.jit import jit
from streamkernel.compute.lanes import DOT, add_four_dots

Array = np.ndarray[Any, np.dtype[Any]]

#: Records that arrive at once, and those that a step fits.
BATCH, WINDOW = 4, 16
#: Columns of a tile.
TILE = DOT
#: The least ridge, in parts of a record's product with itself: products are sums in single precision.
LEAST_RIDGE = 1e-4


@jit
def whole_tiles(n: int) -> int:
    """So many columns, and as many more as make the last tile whole."""
    return -(-n // TILE) * TILE


@jit
def products(rows: Array, n_tiles: int, other: Array, out: Array) -> None:
    """The products of four rows, float32 of shape (BATCH, room), with another (room,), into `out` (BATCH,), float64."""
    for i in range(BATCH):
        out[i] = 0.0
    for first in range(0, n_tiles * TILE, TILE):
        add_four_dots(rows, first, rows.shape[1], other, first, out, 0)


@jit
def window_products(rows: Array, n_tiles: int, window: Array, begin: int, end: int, out: Array) -> None:
    """The products of four rows with some records of a window, with the bits that `products` has.

    Parameters
    ----------
    rows
        Float32 of shape (BATCH, room).
    n_tiles
        The tiles in use.
    window
        Float32 of shape (at least n_tiles, WINDOW, TILE).
    begin, end
        The records.
    out
        Filled in these rows, float64 of shape (WINDOW, BATCH).
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

    Parameters
    ----------
    window
        As `window_products` has it.
    n_tiles
        The tiles in use.
    factors
        Float32 of shape (H, WINDOW).
    gains
        Float32 of shape (room,).
    out
        Float32 of shape (H, room); updated.
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
    return max(ridge / weight, LEAST_RIDGE * own)


@jit
def solve_records(gram: Array, ridge: float, weights: Array, n: int, residuals: Array) -> None:
    """Replace the first n residuals by the solution.

    Parameters
    ----------
    gram
        The products of records, float64 of shape (P, P).
    ridge
        lambda.
    weights
        Above 0, shape (P,).
    n
        The records that there are.
    residuals
        Float64 of shape (C, P).
    """
    system = np.empty((n, n))
    for i in range(n):
        for j in range(i, n):
            system[i, j] = gram[i, j]
        system[i, i] += ridge_of(gram[i, i], ridge, weights[i])
    factorize(system)
    own = residuals[:, :n].copy()
    solve(system, own)
    for c in range(own.shape[0]):
        for i in range(n):
            residuals[c, i] = own[c, i]
