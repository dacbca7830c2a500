"""The data of large-margin metric learning: differences of distances, as an operator on metrics."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamkernel.window.block_data import BlockData, Indices

__all__ = ["TripletBlocks"]

Array = np.ndarray[Any, np.dtype[Any]]

_POWERS = 30


class TripletBlocks(BlockData):
    """Z_i = (z_u - z_w)(z_u - z_w)^T - (z_u - z_v)(z_u - z_v)^T, of the metrics X_0 of all tasks and X_t of its own.

    A score <Z_i, X_0 + X_t> is by how much the squared distance to w exceeds that to v: 1 is the margin.

    Parameters
    ----------
    away
        z_u - z_w, shape (n, d), w of another label.
    near
        z_u - z_v, likewise, v of the label of u.
    tasks
        Each triplet's task t, from 1 to n_tasks.
    n_tasks
        Tasks with a metric of their own; 0 where X_0 is the only one.

    Examples
    --------
    >>> import numpy as np
    >>> data = TripletBlocks(np.array([[3.0, 0.0]]), np.array([[0.0, 1.0]]), np.array([0]), 0)
    >>> data.scores(slice(0, 1), data.pack(np.eye(2)[None]))
    array([8.])

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
            out[places] = _differences(away, near, M)
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


def _differences(away: Array, near: Array, M: Array) -> Array:
    """Squared distances by a metric, of one kind less those of the other."""
    return np.asarray(np.einsum("ij,ij->i", away @ M, away) - np.einsum("ij,ij->i", near @ M, near))
