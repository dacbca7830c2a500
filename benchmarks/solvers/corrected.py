"""S3GD and SVRG with the constant step of the papers, advanced bit by bit: the loops of `streamkernel.window`."""

import time

import numpy as np

from benchmarks.solvers.task import Array, Task
from streamkernel.compute.semi_stochastic import (
    full_gradient,
    semi_stochastic_rounds,
    variance_reduced_steps,
)
from streamkernel.window.linear_model import LinearProblem
from streamkernel.window.losses import ElasticNet
from streamkernel.window.s3gd import AnchorGraph, AnchorModel


class VarianceReducedSteps:
    """SVRG: a full gradient after every `inner` steps, the paper's 50 by default; the rest is as of `SGD`."""

    def __init__(self, task: Task, step: float, inner: int = 50, batch: int = 10, seed: int = 1) -> None:
        self.x, self.records = np.zeros(task.p), 0
        self._loss, self._data = (task.phi.kind, 0.0), (task.A, task.y, task.w)
        self._inner, self._batch, self._left = inner, batch, 0
        self._penalty = (float(step), task.l2, task.l1)
        self._derivatives, self._gradient = np.zeros(task.n), np.zeros(task.p)
        self._state = np.array([seed], np.uint64)

    def advance(self, iterations: int) -> None:
        """So many steps."""
        while iterations:
            if not self._left:
                full_gradient(*self._loss, *self._data, self.x, self._derivatives, self._gradient)
                self.records += len(self._derivatives)
                self._left = self._inner
            steps = min(iterations, self._left)
            variance_reduced_steps(
                *self._loss,
                self._data,
                self._derivatives,
                None,
                self._gradient,
                self.x,
                steps,
                self._batch,
                self._penalty,
                self._state,
            )
            self.records += steps * self._batch
            self._left -= steps
            iterations -= steps


class AnchoredSteps:
    """S3GD: the anchors' gradient after every `inner` steps, the paper's 20 by default; the rest is as of `SGD`.

    Each row is connected with `neighbors` of the anchors. `preparation` are the seconds of anchors and their sums.
    """

    def __init__(
        self,
        task: Task,
        step: float,
        anchors: int = 100,
        neighbors: int = 5,
        inner: int = 20,
        batch: int = 10,
        seed: int = 1,
    ) -> None:
        before = time.process_time()
        self._graph = AnchorGraph(task.A, anchors, min(neighbors, anchors), 1.0, seed)
        self._model = AnchorModel(
            self._graph, LinearProblem(task.A, task.y, task.w, task.phi, ElasticNet(task.l2, task.l1))
        )
        self.preparation = time.process_time() - before
        self.x, self.records = np.zeros(task.p), 0
        self._loss, self._data = (task.phi.kind, 0.0), (task.A, task.y, task.w)
        self._inner, self._batch = inner, batch
        self._total = np.zeros(task.p)  # of the coefficients after each round, which the papers' S3GD has no use for
        self._penalty = (float(step), task.l2, task.l1)
        self._state = np.array([seed], np.uint64)

    def advance(self, iterations: int) -> None:
        """So many steps, a multiple of `inner`."""
        rounds = iterations // self._inner
        semi_stochastic_rounds(
            *self._loss,
            *self._data,
            self._model.rows,
            self._model.sums,
            self.x,
            self._total,
            rounds,
            self._inner,
            self._batch,
            self._penalty,
            self._state,
        )
        self.records += rounds * (self._inner * self._batch + len(self._graph.anchors))

    def estimates(self, x: Array) -> tuple[Array, Array]:
        """The approximation of each record's derivative at x, shape (n,), and of the full gradient, shape (p,)."""
        return self._model.gradient(x)
