"""Large-margin metric learning, of one task or several, by block DSPDC (section 5.3 and Algorithm 3 of its paper).

min over positive semi-definite X_0, X_1, ... of shared_l2/2 |X_0 - I|^2 + sum_t l2/2 |X_t|^2
+ pull times the mean of d_t(u, v)^2 over pairs + the mean of phi(d_t(u, w)^2 - d_t(u, v)^2) over triplets

The metric of task t is X_0 + X_t. phi is the smooth hinge. A pair is a record u and one of its nearest records v of the
same label. A triplet adds the nearest record w of another label.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.solvers.block_solver import BlockSolver
from benchmarks.solvers.matrix_problem import BlockData, Indices, MatrixProblem
from streamkernel.state import Array
from streamkernel.window.losses import window_loss

_POWERS = 30


class TripletBlocks(BlockData):
    """Z_i = (z_u - z_w)(z_u - z_w)^T - (z_u - z_v)(z_u - z_v)^T, of the metrics X_0 of all tasks and X_t of its own.

    A score <Z_i, X_0 + X_t> is by how much the squared distance to w exceeds that to v: 1 is the margin.

    Parameters
    ----------
    away, near
        z_u - z_w with w of another label, and z_u - z_v with v of the label of u, shape (n, d).
    tasks
        Each triplet's task t, from 1 to n_tasks.
    n_tasks
        Tasks with a metric of their own; 0 if X_0 is the only one.

    """

    def __init__(self, away: Array, near: Array, tasks: Array, n_tasks: int) -> None:
        self.n, self.d = away.shape
        self.p = n_tasks + 1
        self.size = self.d**2
        self._away, self._near, self._tasks = away, near, tasks

    def pack(self, matrices: Array) -> Array:
        return matrices.reshape(-1, self.size)

    def unpack(self, blocks: Array) -> Array:
        return blocks.reshape(-1, self.d, self.d)

    def scores(self, records: Indices, X: Array) -> Array:
        matrices = self.unpack(X)
        out = np.empty(len(self._tasks[records]))
        for task, places, away, near in self._by_task(records):
            M = matrices[0] + matrices[task] if task else matrices[0]
            out[places] = np.einsum("ij,ij->i", away @ M, away) - np.einsum("ij,ij->i", near @ M, near)
        return out

    def combine(self, records: Indices, c: Array) -> Array:
        out = np.zeros((self.p, self.d, self.d))
        for task, places, away, near in self._by_task(records):
            out[task] += (away.T * c[places]) @ away - (near.T * c[places]) @ near
        if self.p > 1:
            out[0] = out[1:].sum(axis=0)
        return self.pack(out)

    def block_scores(self, blocks: Indices, X: Array) -> Array:
        whole = np.zeros((self.p, self.size))
        whole[blocks] = X
        return self.scores(slice(None), whole)

    def block_combine(self, blocks: Indices, c: Array) -> Array:
        return np.asarray(self.combine(slice(None), c)[blocks])

    def squared_norms(self) -> Array:
        squares = [np.einsum("ij,ij->i", one, one) for one in (self._away, self._near)]
        products = np.einsum("ij,ij->i", self._away, self._near)
        return np.asarray((squares[0] ** 2 - 2 * products**2 + squares[1] ** 2) * min(self.p, 2))

    def scale(self, records: Indices, blocks: Indices, factors: Array) -> float:
        """By the power method, from below: to a few parts in a hundred."""
        inside = np.zeros((self.p, 1))
        inside[blocks] = 1.0
        v, found = factors / max(float(np.linalg.norm(factors)), 1e-300), 0.0
        for _ in range(_POWERS):
            v = factors * self.scores(records, inside * self.combine(records, factors * v))
            found = float(np.linalg.norm(v))
            if not found:
                break
            v /= found
        return found

    def _by_task(self, records: Indices) -> Iterator[tuple[int, Array, Array, Array]]:
        """Some records by their tasks: the task, their places among the records, and both differences."""
        tasks = self._tasks[records]
        order = np.argsort(tasks, kind="stable")
        away, near = self._away[records][order], self._near[records][order]
        present, starts = np.unique(tasks[order], return_index=True)
        for task, first, last in zip(present, starts, [*starts[1:], len(order)], strict=True):
            yield int(task), order[first:last], away[first:last], near[first:last]


def nearest(X: Array, rows: Array, others: Array, k: int) -> Array:
    """The k rows among `others` nearest to each of `rows`, without itself, nearest first, as row numbers (a, <= k).

    Examples
    --------
    >>> import numpy as np
    >>> nearest(np.array([[0.0], [1.0], [3.0], [7.0]]), np.array([1, 3]), np.arange(4), 2)
    array([[0, 2],
           [2, 1]])

    """
    k = min(k, len(others) - int(np.isin(rows, others).any()))
    if k < 1:
        return np.empty((len(rows), 0), np.int64)
    # Less |x|^2 of the row, which is the same for all others.
    D = np.einsum("ij,ij->i", X[others], X[others]) - 2 * (X[rows] @ X[others].T)
    D[rows[:, None] == others] = np.inf
    return np.asarray(others[np.argsort(D, axis=1, kind="stable")[:, :k]])


def find_triplets(X: Array, y: Array, k: int) -> tuple[Array, Array]:
    """Pairs (u, v) of each row and its k nearest rows of its label, and triplets (u, v, w), as row numbers.

    Examples
    --------
    >>> import numpy as np
    >>> find_triplets(np.array([[0.0], [1.0], [1.5], [3.0]]), np.array([0, 0, 1, 1]), k=1)[1]
    array([[0, 1, 2],
           [1, 0, 2],
           [2, 3, 1],
           [3, 2, 1]])

    """
    pairs, triplets = [np.empty((0, 2), np.int64)], [np.empty((0, 3), np.int64)]
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        targets = nearest(X, rows, rows, k)
        enemies = nearest(X, rows, np.flatnonzero(y != label), 1)
        u, v = np.repeat(rows, targets.shape[1]), targets.ravel()
        pairs.append(np.column_stack([u, v]))
        if enemies.size:
            triplets.append(np.column_stack([u, v, np.repeat(enemies[:, 0], targets.shape[1])]))
    return np.concatenate(pairs), np.concatenate(triplets)


class LearnedMetrics(NamedTuple):
    """The metric that all tasks share, (d, d), and the metric of each task by its label; empty without tasks."""

    shared: Array
    by_task: dict[Any, Array]


class MetricLearner(NamedTuple):
    """Large-margin nearest neighbor metric learning (LMNN), for one task or several (MT-LMNN).

    References
    ----------
    [^1]: Yu, Lin and Yang, "Doubly stochastic primal-dual coordinate method for bilinear saddle-point problem", 2015.
    [^2]: Parameswaran and Weinberger, "Large margin multi-task metric learning", 2010.

    """

    neighbors: int = 3
    pull: float = 1.0
    shared_l2: float = 0.01
    l2: float = 0.1
    tol: float = 1e-4
    max_passes: int = 100
    seed: int = 1

    def fit(self, X: Array, y: Array, tasks: Array | None = None) -> LearnedMetrics:
        """Learn the metrics of records (n, d), by steps of a hundredth of the triplets and a fifth of the matrices."""
        problem = self.problem(X, y, tasks, np.random.default_rng(self.seed))
        data = problem.data
        solver = BlockSolver(max(data.n // 100, 1), max(data.p // 5, 1), "sampled", None, self.tol, self.max_passes)
        start = data.pack(np.concatenate([np.eye(data.d)[None], np.zeros((data.p - 1, data.d, data.d))]))
        matrices = data.unpack(solver.solve(problem, self.seed, start).X)
        names = [] if tasks is None else list(np.unique(tasks))
        own = {name: matrices[0] + matrices[t] for t, name in enumerate(names, 1)} if data.p > 1 else {}
        return LearnedMetrics(matrices[0], own)

    def problem(self, X: Array, y: Array, tasks: Array | None, rng: np.random.Generator) -> MatrixProblem:
        """The problem (33) of records, with X_0 and the tasks' matrices as blocks."""
        names = np.zeros(1) if tasks is None else np.unique(tasks)
        several, d = len(names) > 1, X.shape[1]
        found = []
        for name in names:
            rows = np.arange(len(X)) if tasks is None else np.flatnonzero(tasks == name)
            found.append([rows[part] for part in find_triplets(X[rows], y[rows], self.neighbors)])
        numbers = np.concatenate([np.full(len(own), t + several) for t, (_, own) in enumerate(found)])
        triplets = np.concatenate([own for _, own in found])
        order = rng.permutation(len(triplets))  # those of one iteration are neighbors
        u, v, w = triplets[order].T
        data = TripletBlocks(X[u] - X[w], X[u] - X[v], numbers[order], len(names) if several else 0)
        linear = np.zeros((data.p, d, d))
        n_pairs = sum(len(pairs) for pairs, _ in found)
        for t, (pairs, _) in enumerate(found):
            apart = X[pairs[:, 0]] - X[pairs[:, 1]]
            C = self.pull / n_pairs * (apart.T @ apart)
            linear[0] -= C
            if several:
                linear[t + 1] -= C
        linear[0] += self.shared_l2 * np.eye(d)
        ones, l2 = np.ones(data.n), np.full(data.p, float(self.l2))
        l2[0] = self.shared_l2
        constant = self.shared_l2 * d / 2
        return MatrixProblem(data, ones, ones, window_loss("smooth_hinge"), l2, data.pack(linear), constant)
