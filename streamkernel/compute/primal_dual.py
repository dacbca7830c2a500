"""Iterations of the doubly stochastic primal-dual coordinate method, on factorized data.

Which coordinates an iteration updates is drawn before (draws.py): three arrays say it, (order, starts, chosen).
Iteration t updates the coordinates order[starts[k]:starts[k + 1]], where k = chosen[t]: k is one of the blocks of a
partition, or `order` holds new subsets for every iteration.

The dual variable of a record is an element of its loss's conjugate's domain; a record's weight multiplies it where it
meets the data, as if rows and dual variables were both scaled by the root of the weight: gamma stays the loss's.
"""

from typing import Any

import numpy as np

from streamkernel.compute.intrinsics import prefetch, wide
from streamkernel.compute.jit import jit, jit_long
from streamkernel.compute.tiles import add_row, prefetch_row, row_product, step_tile
from streamkernel.compute.window_losses import dual_update

Array = np.ndarray[Any, np.dtype[Any]]
#: Iterations before the one that reads a row, its memory is begun to be fetched.
AHEAD = 2
Choices = tuple[Array, Array, Array]


@jit_long
def advance_factorized(
    kind: int,
    records: tuple[Array, Array],
    elastic_net: tuple[float, float],
    steps: tuple[float, float, float, float],
    factors: tuple[Array, Array, Array],
    choices: tuple[Choices, Choices],
    dual: tuple[Array, Array],
    primal: tuple[Array, Array, Array],
) -> None:
    """Run one iteration for each choice, O(d (m + q)) each, on data A = U V (Algorithm 2).

    Parameters
    ----------
    kind
        The loss.
    records
        y and weights, shape (n,) each.
    elastic_net
        l2 and l1.
    steps
        tau, sigma / n, n / m and theta + 1.
    factors
        U, V and the tiles of V. U has the shape (n, depth) and tiles (blocks, depth, width): each holds the columns of
        one block. depth is d, and width the size of the largest block, rounded up to whole vectors; zeros fill them. V
        has the shape (d, p) where columns are drawn again for every iteration, and gathered into the only tile; else
        (d, 0).
    choices
        Of dual, then of primal coordinates.
    dual
        Updated: beta (n,), and u = U^T (weights beta) of as many numbers as a tile has rows.
    primal
        Updated: x, of shape (blocks, width of a tile), or (1, p) where columns are gathered; v = V x, and V xbar.
    """
    wide()
    y, weights = records
    U, V, tiles = factors
    (row_order, row_starts, chosen_rows), (column_order, column_starts, chosen_columns) = choices
    beta, u = dual
    x, v, vbar = primal
    tau, dual_step, dual_ratio, extrapolation = steps
    numbers = (-tau / y.shape[0], tau * elastic_net[1], 1.0 / (1.0 + tau * elastic_net[0]), extrapolation)
    own_x = np.zeros((1, tiles.shape[2]))
    ubar = np.zeros(tiles.shape[1])
    for t in range(chosen_rows.shape[0]):
        block = chosen_rows[t]
        if t + AHEAD < chosen_rows.shape[0]:
            following = chosen_rows[t + AHEAD]
            for r in range(row_starts[following], row_starts[following + 1]):
                i = row_order[r]
                prefetch_row(U, i)
                prefetch_record(i, beta, y, weights)
        start = u
        for r in range(row_starts[block], row_starts[block + 1]):
            i = row_order[r]
            before = beta[i]
            after = dual_update(kind, before, row_product(U, i, vbar), y[i], dual_step)
            beta[i] = after
            add_row(U, i, weights[i] * (after - before), dual_ratio, start, u, ubar)
            start = ubar
        block = chosen_columns[t]
        if V.shape[1]:
            columns = column_order[column_starts[block] : column_starts[block + 1]]
            _gather(V, x, columns, tiles, own_x)
            step_tile(tiles, 0, ubar, V.shape[0], numbers, own_x, v, vbar)
            for j in range(columns.shape[0]):
                x[0, columns[j]] = own_x[0, j]
        else:
            step_tile(tiles, block, ubar, V.shape[0], numbers, x, v, vbar)


@jit
def prefetch_record(i: int, beta: Array, y: Array, weights: Array) -> None:
    """Have a record's numbers fetched into the cache."""
    prefetch(beta, i)
    prefetch(y, i)
    prefetch(weights, i)


@jit
def _gather(V: Array, x: Array, columns: Array, tiles: Array, own_x: Array) -> None:
    """Fill the first tile with columns of V, and own_x with their coefficients; past them are zeros."""
    for k in range(V.shape[0]):
        for j in range(columns.shape[0]):
            tiles[0, k, j] = V[k, columns[j]]
    for j in range(columns.shape[0]):
        own_x[0, j] = x[0, columns[j]]
