"""Multi-task metric learning (section 5.3 of the DSPDC paper) on MNIST cut into tasks, and errors of neighbors."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.solvers.matrix_problem import MatrixProblem
from benchmarks.solvers.metric_learning import MetricLearner, nearest

Array = np.ndarray[Any, np.dtype[Any]]

#: Neighbors that vote, and that a record is pulled to.
NEIGHBORS = 3


@dataclass(frozen=True)
class Tasks:
    """Records of tasks, each of which knows some of the classes, to learn from and for the test."""

    X: Array
    y: Array
    tasks: Array
    test_X: Array
    test_y: Array
    test_tasks: Array

    def problem(self) -> MatrixProblem:
        """MT-LMNN with the paper's l2: .01 of the shared matrix and .1 of the others."""
        return MetricLearner(NEIGHBORS).problem(self.X, self.y, self.tasks, np.random.default_rng(1))

    def error(self, metrics: dict[Any, Array] | None = None, shared: Array | None = None) -> float:
        """The share of test records that the vote of the nearest records of their task has wrong, in per cent.

        Without `metrics` by task, all tasks have the metric `shared`, which is Euclidean by default.
        """
        wrong = 0
        for task in np.unique(self.tasks):
            M = metrics[task] if metrics else np.eye(self.X.shape[1]) if shared is None else shared
            w, V = np.linalg.eigh(M)
            L = V * np.sqrt(np.maximum(w, 0.0))
            train, test = self.tasks == task, self.test_tasks == task
            both = np.concatenate([self.X[train] @ L, self.test_X[test] @ L])
            n = int(train.sum())
            found = nearest(both, np.arange(n, len(both)), np.arange(n), NEIGHBORS)
            votes = self.y[train][found]
            # The label of most votes; of a tie, that of the nearest.
            counts = (votes[:, :, None] == votes[:, None, :]).sum(axis=2)
            said = votes[np.arange(len(votes)), counts.argmax(axis=1)]
            wrong += int(np.sum(said != self.test_y[test]))
        return 100 * wrong / len(self.test_y)


def digits(folder: Path | None, n_tasks: int, per_task: int, d: int, seed: int = 0) -> Tasks:
    """Tasks of five digits each, of records that no other task has, by their first principal components.

    The digits are those of mnist.npz in a folder; without a folder they are drawn clusters. Each task has `per_task`
    records to learn from and as many for the test. The variances of the d principal components add up to 1.
    """
    rng = np.random.default_rng(seed)
    X, y = _images(folder, rng)
    order = rng.permutation(len(X))
    rows, tasks = [], []
    for task in range(n_tasks):
        known = rng.permutation(10)[:5]
        own = rng.permutation(order[np.isin(y[order], known)])[: 2 * per_task]
        order = order[~np.isin(order, own)]
        rows.append(own)
        tasks.append(np.full(len(own), task))
    chosen, numbers = np.concatenate(rows), np.concatenate(tasks)
    first = np.concatenate([np.arange(len(own)) < per_task for own in rows])
    center = X[chosen[first]].mean(axis=0)
    _, s, V = np.linalg.svd(X[chosen[first]] - center, full_matrices=False)
    Z = (X[chosen] - center) @ V[:d].T / np.sqrt(np.sum(s[:d] ** 2) / first.sum())
    return Tasks(Z[first], y[chosen[first]], numbers[first], Z[~first], y[chosen[~first]], numbers[~first])


def _images(folder: Path | None, rng: np.random.Generator) -> tuple[Array, Array]:
    if folder is None:
        y = rng.integers(0, 10, 4000)
        centers = rng.normal(size=(10, 12))
        return centers[y] + 1.5 * rng.normal(size=(4000, 12)), y
    with np.load(folder / "mnist.npz") as data:
        return data["X_train"].astype(np.float64) / 255, data["y_train"].astype(np.int64)
