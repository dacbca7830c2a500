"""Iterations of the doubly stochastic primal-dual coordinate method: on factorized data, and on dense or CSR data.

Which coordinates an iteration updates is drawn before (draws.py): three arrays say it, (order, starts, chosen).
Iteration t updates the coordinates order[starts[k]:starts[k + 1]], where k = chosen[t]: k is one of the blocks of a
partition, or `order` holds new subsets for every iteration.

The dual variable of a record is an element of its loss's conjugate's domain; a record's weight multiplies it where it
meets the data, as if rows and dual variables were both scaled by the root of the weight: gamma stays the loss's.
"""

import numpy as np

from streamkernel.compute.jit import Array, jit, jit_long
from streamkernel.compute.recursive import dot
from streamkernel.compute.tiles import add_row, prefetch_part, prefetch_row, row_product, step_tile
from streamkernel.compute.vectors import multiply_add, prefetch, wide
from streamkernel.compute.window_losses import dual_update, soft_threshold

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

    - kind: The loss.
    - records: y and weights, shape (n,) each.
    - elastic_net: l2 and l1.
    - steps: tau, sigma / n, n / m and theta + 1.
    - factors: U, V and the tiles of V. U has the shape (n, depth) and tiles (blocks, depth, width): each holds the
      columns of one block. depth is d, and width the size of the largest block, rounded up to whole vectors; zeros fill
      them. V has the shape (d, p) where columns are drawn again for every iteration, and gathered into the only tile;
      else (d, 0).
    - choices: Of dual, then of primal coordinates.
    - dual: Updated: beta (n,), and u = U^T (weights beta) of as many numbers as a tile has rows.
    - primal: Updated: x, of shape (blocks, width of a tile), or (1, p) where columns are gathered; v = V x, and V xbar.
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


@jit
def _step_columns(
    elastic_net: tuple[float, float],
    steps: tuple[float, float, float, float],
    n: int,
    columns: Array,
    ubar: Array,
    primal: tuple[Array, Array],
) -> None:
    """Update x and xbar of some columns, given ubar = A^T (weights betabar)."""
    tau, _, _, extrapolation = steps
    x, xbar = primal
    shrink = 1.0 / (1.0 + tau * elastic_net[0])
    for k in range(columns.shape[0]):
        j = columns[k]
        before = x[j]
        after = soft_threshold(before - tau / n * ubar[j], tau * elastic_net[1]) * shrink
        x[j] = after
        xbar[j] = before + extrapolation * (after - before)


@jit
def _stop(choices: Choices, t: int, x: Array, xbar: Array) -> None:
    """Let xbar be x after iteration t stepped; before the first all may differ."""
    order, starts, chosen = choices
    if t < 0:
        for j in range(x.shape[0]):
            xbar[j] = x[j]
    else:
        for k in range(starts[chosen[t]], starts[chosen[t] + 1]):
            xbar[order[k]] = x[order[k]]


@jit_long
def advance_rows(
    kind: int,
    records: tuple[Array, Array],
    elastic_net: tuple[float, float],
    steps: tuple[float, float, float, float],
    A: Array,
    choices: tuple[Choices, Choices],
    dual: tuple[Array, Array],
    primal: tuple[Array, Array],
) -> None:
    """Run one iteration for each choice, O(m p) each: Algorithm 1 with A^T ybar maintained.

    - kind, records, elastic_net, steps, choices: As of `advance_factorized`.
    - A: Shape (n, p).
    - dual: Updated: beta (n,) and u = A^T (weights beta), shape (p,).
    - primal: Updated: x and xbar, shape (p,).
    """
    wide()
    y, weights = records
    (row_order, row_starts, chosen_rows), (column_order, column_starts, chosen_columns) = choices
    beta, u = dual
    x, xbar = primal
    n, p = A.shape
    ubar = np.empty(p)
    for t in range(chosen_rows.shape[0]):
        if t + AHEAD < chosen_rows.shape[0]:
            block = chosen_rows[t + AHEAD]
            for r in range(row_starts[block], row_starts[block + 1]):
                i = row_order[r]
                prefetch_row(A, i)
                prefetch_record(i, beta, y, weights)
        block = chosen_rows[t]
        first = row_starts[block]
        for r in range(first, row_starts[block + 1]):
            i = row_order[r]
            row = A[i]
            before = beta[i]
            beta[i] = dual_update(kind, before, dot(row, xbar), y[i], steps[1])
            moved = weights[i] * (beta[i] - before)
            if r == first:
                for j in range(p):
                    added = moved * row[j]
                    ubar[j] = multiply_add(steps[2], added, u[j])
                    u[j] += added
            else:
                for j in range(p):
                    added = moved * row[j]
                    ubar[j] = multiply_add(steps[2], added, ubar[j])
                    u[j] += added
        _stop(choices[1], t - 1, x, xbar)
        block = chosen_columns[t]
        columns = column_order[column_starts[block] : column_starts[block + 1]]
        _step_columns(elastic_net, steps, n, columns, ubar, (x, xbar))


@jit_long
def advance_sparse(
    kind: int,
    records: tuple[Array, Array],
    elastic_net: tuple[float, float],
    steps: tuple[float, float, float, float],
    A: tuple[Array, Array, Array],
    choices: tuple[Choices, Choices],
    dual: tuple[Array, Array],
    primal: tuple[Array, Array],
) -> None:
    """Run one iteration for each choice, O(q and the entries of m rows) each: `advance_rows` of a CSR matrix.

    - kind, records, elastic_net, steps, choices, dual, primal: As of `advance_rows`.
    - A: data, indices and indptr.
    """
    y, weights = records
    data, indices, indptr = A
    (row_order, row_starts, chosen_rows), (column_order, column_starts, chosen_columns) = choices
    beta, u = dual
    x, xbar = primal
    ubar = u.copy()
    for t in range(chosen_rows.shape[0]):
        if t + AHEAD < chosen_rows.shape[0]:
            block = chosen_rows[t + AHEAD]
            for r in range(row_starts[block], row_starts[block + 1]):
                i = row_order[r]
                prefetch_record(i, beta, y, weights)
                prefetch_part(data, indptr[i], indptr[i + 1])
                prefetch_part(indices, indptr[i], indptr[i + 1])
        block = chosen_rows[t]
        for r in range(row_starts[block], row_starts[block + 1]):
            i = row_order[r]
            z = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                z += data[e] * xbar[indices[e]]
            before = beta[i]
            beta[i] = dual_update(kind, before, z, y[i], steps[1])
            moved = weights[i] * (beta[i] - before)
            for e in range(indptr[i], indptr[i + 1]):
                u[indices[e]] += moved * data[e]
                ubar[indices[e]] += steps[2] * moved * data[e]
        _stop(choices[1], t - 1, x, xbar)
        own = chosen_columns[t]
        columns = column_order[column_starts[own] : column_starts[own + 1]]
        _step_columns(elastic_net, steps, beta.shape[0], columns, ubar, (x, xbar))
        for r in range(row_starts[block], row_starts[block + 1]):
            i = row_order[r]
            for e in range(indptr[i], indptr[i + 1]):
                ubar[indices[e]] = u[indices[e]]


@jit_long
def advance_columns(
    kind: int,
    records: tuple[Array, Array],
    elastic_net: tuple[float, float],
    steps: tuple[float, float, float, float],
    A: Array,
    choices: tuple[Choices, Choices],
    dual: tuple[Array, Array],
    primal: tuple[Array, Array, Array],
) -> None:
    """Run one iteration for each choice, O(n q) each: Algorithm 1 with A xbar maintained.

    - kind, records, elastic_net, steps, choices: As of `advance_factorized`.
    - A: A's transpose, shape (p, n).
    - dual: Updated: beta and weights beta, shape (n,).
    - primal: Updated: x (p,), h = A x and A xbar, shape (n,).
    """
    wide()
    y, weights = records
    (row_order, row_starts, chosen_rows), (column_order, column_starts, chosen_columns) = choices
    beta, weighted = dual
    x, h, hbar = primal
    tau, dual_step, dual_ratio, extrapolation = steps
    shrink = 1.0 / (1.0 + tau * elastic_net[0])
    n = h.shape[0]
    added = np.zeros(n)
    for t in range(chosen_rows.shape[0]):
        block = chosen_rows[t]
        first, last = row_starts[block], row_starts[block + 1]
        for r in range(first, last):
            i = row_order[r]
            before = beta[i]
            beta[i] = dual_update(kind, before, hbar[i], y[i], dual_step)
            weighted[i] = weights[i] * (before + dual_ratio * (beta[i] - before))
        for i in range(n):
            added[i] = 0.0
        block = chosen_columns[t]
        for c in range(column_starts[block], column_starts[block + 1]):
            j = column_order[c]
            column = A[j]
            before = x[j]
            x[j] = soft_threshold(before - tau / n * dot(column, weighted), tau * elastic_net[1]) * shrink
            change = x[j] - before
            for i in range(n):
                added[i] = multiply_add(change, column[i], added[i])
        for i in range(n):
            hbar[i] = multiply_add(extrapolation, added[i], h[i])
            h[i] += added[i]
        for r in range(first, last):
            weighted[row_order[r]] = weights[row_order[r]] * beta[row_order[r]]
