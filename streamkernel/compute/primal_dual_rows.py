"""Iterations of the doubly stochastic primal-dual coordinate method on plain data: dense, by rows or columns, or CSR.

Choices are as in primal_dual.py, and so are the arguments of the same names.
"""

from typing import Any

import numpy as np

from streamkernel.compute.intrinsics import multiply_add, wide
from streamkernel.compute.jit import jit, jit_long
from streamkernel.compute.primal_dual import AHEAD, Choices, prefetch_record
from streamkernel.compute.recursive import dot
from streamkernel.compute.tiles import prefetch_part, prefetch_row
from streamkernel.compute.window_losses import dual_update, soft_threshold

Array = np.ndarray[Any, np.dtype[Any]]


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

    Parameters
    ----------
    kind, records, elastic_net, steps, choices
        As of `advance_factorized`.
    A
        Shape (n, p).
    dual
        Updated: beta (n,) and u = A^T (weights beta), shape (p,).
    primal
        Updated: x and xbar, shape (p,).
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

    Parameters
    ----------
    kind, records, elastic_net, steps, choices, dual, primal
        As of `advance_rows`.
    A
        data, indices and indptr.
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

    Parameters
    ----------
    kind, records, elastic_net, steps, choices
        As of `advance_factorized`.
    A
        A's transpose, shape (p, n).
    dual
        Updated: beta and weights beta, shape (n,).
    primal
        Updated: x (p,), h = A x and A xbar, shape (n,).
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
