"""SGD and stratified SGD (Zhao and Zhang 2014) on mini-batches, with a constant step and the proximal regularizer."""

import numpy as np

from benchmarks.solvers.task import Array, Task
from streamkernel.compute.gaussians import draw_row
from streamkernel.compute.jit import jit
from streamkernel.compute.recursive import dot
from streamkernel.compute.semi_stochastic import draw_batch, move_centers, nearest, take_step
from streamkernel.compute.tiles import prefetch_row
from streamkernel.compute.vectors import prefetch, wide
from streamkernel.compute.window_losses import loss_derivative


@jit
def sgd_steps(
    kind: int,
    A: Array,
    y: Array,
    weights: Array,
    x: Array,
    steps: int,
    batch: int,
    penalty: tuple[float, float, float],
    state: Array,
    g: Array,
) -> None:
    """Steps on mini-batches of records drawn from all; `penalty` is the step's length, l2 and l1, `g` a buffer."""
    wide()
    step, l2, l1 = penalty
    # A batch is drawn while the one before it is used.
    drawn, rows = np.empty(batch, np.int64), np.empty(batch, np.int64)
    for t in range(steps + 1):
        drawn, rows = rows, drawn
        if t < steps:
            draw_batch(state, A, drawn)
            for i in drawn:
                prefetch(y, i)
                prefetch(weights, i)
        if t == 0:
            continue
        for k in range(g.shape[0]):
            g[k] = 0.0
        for i in rows:
            row = A[i]
            slope = weights[i] * loss_derivative(kind, dot(row, x), y[i]) / batch
            for k in range(g.shape[0]):
                g[k] += slope * row[k]
        take_step(g, x, step, l2, l1)


@jit
def stratified_steps(
    kind: int,
    A: Array,
    y: Array,
    weights: Array,
    x: Array,
    steps: int,
    members: Array,
    starts: Array,
    penalty: tuple[float, float, float],
    state: Array,
    g: Array,
) -> None:
    """Steps on mini-batches of a record of each stratum, which counts for the stratum's share of all records."""
    wide()
    step, l2, l1 = penalty
    n_strata = starts.shape[0] - 1
    drawn, rows = np.empty(n_strata, np.int64), np.empty(n_strata, np.int64)
    for t in range(steps + 1):
        drawn, rows = rows, drawn
        if t < steps:
            for s in range(n_strata):
                i = members[starts[s] + draw_row(state, starts[s + 1] - starts[s])]
                drawn[s] = i
                prefetch_row(A, i)
                prefetch(y, i)
                prefetch(weights, i)
        if t == 0:
            continue
        for k in range(g.shape[0]):
            g[k] = 0.0
        for s in range(n_strata):
            i, size = rows[s], starts[s + 1] - starts[s]
            row = A[i]
            slope = weights[i] * loss_derivative(kind, dot(row, x), y[i]) * size / A.shape[0]
            for k in range(g.shape[0]):
                g[k] += slope * row[k]
        take_step(g, x, step, l2, l1)


class SGD:
    """Mini-batch stochastic gradient descent with a constant step; records are drawn with replacement."""

    def __init__(self, task: Task, step: float, batch: int = 10, seed: int = 1) -> None:
        self.x = np.zeros(task.p)
        self.records, self._batch = 0, batch
        self._data = (task.phi.kind, task.A, task.y, task.w)
        self._penalty = (float(step), task.l2, task.l1)
        self._state, self._g = np.array([seed], np.uint64), np.zeros(task.p)

    def advance(self, iterations: int) -> None:
        """So many steps."""
        self.records += iterations * self._batch
        sgd_steps(*self._data, self.x, iterations, self._batch, self._penalty, self._state, self._g)


class StratifiedSGD:
    """SSGD: a mini-batch has one record of each stratum; `strata` are whole numbers from 0 up (see `clustered`)."""

    def __init__(self, task: Task, step: float, strata: Array, seed: int = 1) -> None:
        self.x = np.zeros(task.p)
        sizes = np.bincount(strata)
        sizes = sizes[sizes > 0]
        self.records, self._batch = 0, len(sizes)
        self._data = (task.phi.kind, task.A, task.y, task.w)
        self._strata = (np.argsort(strata, kind="stable"), np.concatenate([[0], np.cumsum(sizes)]))
        self._penalty = (float(step), task.l2, task.l1)
        self._state, self._g = np.array([seed], np.uint64), np.zeros(task.p)

    def advance(self, iterations: int) -> None:
        """So many steps."""
        self.records += iterations * self._batch
        stratified_steps(*self._data, self.x, iterations, *self._strata, self._penalty, self._state, self._g)


def clustered(A: Array, n_strata: int = 10, seed: int = 1) -> Array:
    """The k-means cluster of each record, shape (n,): ten steps of Lloyd's algorithm on 2,000 records, then all."""
    rng = np.random.default_rng(seed)
    sample = A[np.sort(rng.choice(len(A), min(2_000, len(A)), replace=False))]
    centers = sample[np.sort(rng.choice(len(sample), n_strata, replace=False))]
    places, distances = np.empty((len(sample), 1), np.int64), np.empty((len(sample), 1))
    for _ in range(10):
        nearest(sample, centers, places, distances)
        move_centers(sample, places, centers)
    places, distances = np.empty((len(A), 1), np.int64), np.empty((len(A), 1))
    nearest(A, centers, places, distances)
    return places[:, 0]
