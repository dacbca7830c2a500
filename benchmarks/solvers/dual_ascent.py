"""SDCA (Shalev-Shwartz and Zhang 2013), proximal stochastic dual coordinate ascent, on rows, sparse rows and factors.

The primal coefficients x are the gradient of the regularizer's conjugate at -A^T beta / n; a record's dual variable is
made the best while the others stay, by the bound that x moves as if l1 were 0. Each pass takes the records in a new
random order.
"""

from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.solvers.task import Array, Task
from streamkernel.compute.gaussians import draw_row
from streamkernel.compute.jit import jit, jit_reduction
from streamkernel.compute.recursive import dot
from streamkernel.compute.tiles import prefetch_row
from streamkernel.compute.vectors import wide
from streamkernel.compute.window_losses import dual_update, soft_threshold

#: How many records ahead a row is fetched.
_AHEAD = 4


@jit
def shuffle(state: Array, order: Array) -> None:
    """Bring an array into another order, each as likely."""
    for i in range(order.shape[0] - 1, 0, -1):
        j = draw_row(state, i + 1)
        order[i], order[j] = order[j], order[i]


@jit_reduction
def update(kind: int, row: Array, i: int, y: Array, step: float, beta: Array, s: Array, x: Array, net: Array) -> None:
    """The best dual variable of a record, and what follows for s = -A^T beta / n and x."""
    wide()
    new = dual_update(kind, beta[i], dot(row, x), y[i], step)
    change = (beta[i] - new) * net[2]
    if change != 0.0:
        beta[i] = new
        l1, scale = net[0], net[1]
        for j in range(row.shape[0]):
            s[j] += change * row[j]
            # The soft threshold without a branch.
            x[j] = scale * (max(s[j] - l1, 0.0) + min(s[j] + l1, 0.0))


@jit_reduction
def ascend(
    kind: int, A: Array, y: Array, steps: Array, order: Array, beta: Array, s: Array, x: Array, net: Array
) -> None:
    """Records in an order, of rows; `net` is l1, 1 / l2 and 1 / n."""
    wide()
    for k in range(order.shape[0]):
        i = order[k]
        if k + _AHEAD < order.shape[0]:
            prefetch_row(A, order[k + _AHEAD])
        update(kind, A[i], i, y, steps[i], beta, s, x, net)


@jit_reduction
def ascend_factors(
    kind: int,
    U: Array,
    V: Array,
    y: Array,
    steps: Array,
    order: Array,
    beta: Array,
    s: Array,
    x: Array,
    net: Array,
    row: Array,
) -> None:
    """The same where a row is made of its factors, O(d p), each time that it is needed."""
    wide()
    for k in range(order.shape[0]):
        i = order[k]
        if k + _AHEAD < order.shape[0]:
            prefetch_row(U, order[k + _AHEAD])
        for j in range(row.shape[0]):
            row[j] = 0.0
        last = V.shape[0] - V.shape[0] % 4
        for c in range(0, last, 4):
            u0, u1, u2, u3 = U[i, c], U[i, c + 1], U[i, c + 2], U[i, c + 3]
            v0, v1, v2, v3 = V[c], V[c + 1], V[c + 2], V[c + 3]
            for j in range(row.shape[0]):
                row[j] += u0 * v0[j] + u1 * v1[j] + u2 * v2[j] + u3 * v3[j]
        for c in range(last, V.shape[0]):
            u0, v0 = U[i, c], V[c]
            for j in range(row.shape[0]):
                row[j] += u0 * v0[j]
        update(kind, row, i, y, steps[i], beta, s, x, net)


@jit
def ascend_sparse(
    kind: int,
    values: Array,
    columns: Array,
    starts: Array,
    y: Array,
    steps: Array,
    order: Array,
    beta: Array,
    s: Array,
    x: Array,
    net: Array,
) -> None:
    """The same on the rows of a CSR matrix, whose other columns stay as they are."""
    l1, scale, per_record = net[0], net[1], net[2]
    for k in range(order.shape[0]):
        i = order[k]
        z = 0.0
        for at in range(starts[i], starts[i + 1]):
            z += values[at] * x[columns[at]]
        new = dual_update(kind, beta[i], z, y[i], steps[i])
        change = (beta[i] - new) * per_record
        if change != 0.0:
            beta[i] = new
            for at in range(starts[i], starts[i + 1]):
                j = columns[at]
                s[j] += change * values[at]
                x[j] = scale * soft_threshold(s[j], l1)


class SDCA:
    """Proximal SDCA of a task without weights, on its rows, or on rows made of its factors where A is not stored."""

    def __init__(self, task: Task, factors: bool = False, seed: int = 1) -> None:
        self.x, self.records = np.zeros(task.p), 0
        self._kind, self._y = task.phi.kind, task.y
        self._beta, self._s = np.zeros(task.n), np.zeros(task.p)
        self._order, self._state, self._next = np.arange(task.n), np.array([seed], np.uint64), task.n
        self._steps = task.n * task.l2 / np.maximum(np.square(task.A).sum(axis=1), 1e-12)
        self._net = np.array([task.l1, 1.0 / task.l2, 1.0 / task.n])
        self._ascend: Any = ascend
        self._data: tuple[Array, ...] = (task.A,)
        self._buffer: tuple[Array, ...] = ()
        if factors:
            assert task.factors is not None
            self._ascend, self._data, self._buffer = ascend_factors, task.factors, (np.zeros(task.p),)
        elif sparse.issparse(task.rows):
            self._ascend, self._data = ascend_sparse, (task.rows.data, task.rows.indices, task.rows.indptr)

    @property
    def dual(self) -> Array:
        """The dual variables, shape (n,)."""
        return self._beta

    def advance(self, iterations: int) -> None:
        """So many records."""
        self.records += iterations
        while iterations:
            if self._next == len(self._order):
                shuffle(self._state, self._order)
                self._next = 0
            order = self._order[self._next : self._next + iterations]
            dual = self._beta, self._s, self.x, self._net
            self._ascend(self._kind, *self._data, self._y, self._steps, order, *dual, *self._buffer)
            self._next += len(order)
            iterations -= len(order)
