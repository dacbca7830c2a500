"""SCV (Wang, Chen, Smola and Xing 2013): SGD with a control variate of each class' mean and covariance.

The derivative of a record's logistic loss is expanded to first order round the score of its class' mean. The mean of
that expansion over all records follows from means and covariances, O(p^2) a step, and the difference between it and the
mini-batch's, times a factor, is taken from the mini-batch's gradient. The factor is the running covariance of gradient
and expansion over the expansion's running variance, of the steps before.
"""

import numpy as np

from benchmarks.solvers.task import Array, Task
from streamkernel.compute.jit import jit
from streamkernel.compute.recursive import dot
from streamkernel.compute.semi_stochastic import draw_batch, take_step
from streamkernel.compute.vectors import prefetch, wide
from streamkernel.compute.window_losses import LOGISTIC, loss_derivative

#: How much of the moments behind the factor a step keeps.
_KEPT = 0.99


@jit
def expand(means: Array, covariances: Array, shares: Array, x: Array, centers: Array, expected: Array) -> None:
    """Fill the expansion round each class' mean (score, derivative, second derivative) and its mean over all records.

    Class 0 has label -1 and class 1 label 1.
    """
    wide()
    for j in range(x.shape[0]):
        expected[j] = 0.0
    for c in range(2):
        z = dot(means[c], x)
        slope = loss_derivative(LOGISTIC, z, 2.0 * c - 1.0)
        bend = abs(slope) * (1.0 - abs(slope))
        centers[c, 0], centers[c, 1], centers[c, 2] = z, slope, bend
        for j in range(x.shape[0]):
            expected[j] += shares[c] * (slope * means[c, j] + bend * dot(covariances[c, j], x))


@jit
def scv_steps(
    A: Array,
    y: Array,
    weights: Array,
    norms: Array,
    means: Array,
    covariances: Array,
    shares: Array,
    x: Array,
    steps: int,
    batch: int,
    penalty: tuple[float, float, float],
    state: Array,
    moments: Array,
    buffers: Array,
) -> None:
    """Steps on mini-batches drawn from all records; `moments` are covariance and variance of the factor."""
    wide()
    step, l2, l1 = penalty
    centers = np.zeros((2, 3))
    expected, gradient, control = buffers[0], buffers[1], buffers[2]
    # A batch is drawn while the one before it is used.
    drawn, rows = np.empty(batch, np.int64), np.empty(batch, np.int64)
    for t in range(steps + 1):
        drawn, rows = rows, drawn
        if t < steps:
            draw_batch(state, A, drawn)
            for i in drawn:
                prefetch(y, i)
                prefetch(weights, i)
                prefetch(norms, i)
        if t == 0:
            continue
        expand(means, covariances, shares, x, centers, expected)
        both = own = 0.0
        for j in range(x.shape[0]):
            gradient[j] = control[j] = 0.0
        for i in rows:
            row = A[i]
            c = 1 if y[i] > 0 else 0
            z = dot(row, x)
            slope = weights[i] * loss_derivative(LOGISTIC, z, y[i])
            expanded = weights[i] * (centers[c, 1] + centers[c, 2] * (z - centers[c, 0]))
            both += slope * expanded * norms[i] / batch
            own += expanded * expanded * norms[i] / batch
            slope /= batch
            expanded /= batch
            for j in range(row.shape[0]):
                gradient[j] += slope * row[j]
                control[j] += expanded * row[j]
        factor = min(max(moments[0] / moments[1], 0.0), 1.0) if moments[1] > 0.0 else 1.0
        moments[0] += (1.0 - _KEPT) * (both - dot(gradient, expected) - moments[0])
        moments[1] += (1.0 - _KEPT) * (own - dot(expected, expected) - moments[1])
        for j in range(x.shape[0]):
            gradient[j] -= factor * (control[j] - expected[j])
        take_step(gradient, x, step, l2, l1)


class SCV:
    """SGD with the control variate, for the logistic loss.

    Parameters
    ----------
    task, step, batch, seed
        As of `SGD`; the weights are the same within a class.

    """

    def __init__(self, task: Task, step: float, batch: int = 10, seed: int = 1) -> None:
        assert task.loss == "log"
        self.x = np.zeros(task.p)
        self.records = 0
        parts = [task.A[task.y == label] for label in (-1.0, 1.0)]
        means = np.array([part.mean(axis=0) for part in parts])
        covariances = np.array([np.cov(part, rowvar=False, bias=True) for part in parts])
        shares = np.array([task.w[task.y == label].sum() / task.n for label in (-1.0, 1.0)])
        norms = np.square(task.A).sum(axis=1)
        self._data = (task.A, task.y, task.w, norms, means, covariances, shares)
        self._batch, self._penalty = batch, (float(step), task.l2, task.l1)
        self._state, self._moments = np.array([seed], np.uint64), np.zeros(2)
        self._buffers = np.zeros((3, task.p))

    def advance(self, iterations: int) -> None:
        """So many steps."""
        self.records += iterations * self._batch
        scv_steps(
            *self._data, self.x, iterations, self._batch, self._penalty, self._state, self._moments, self._buffers
        )
