"""A problem that every solver of the benchmark solves: its data, its objective, and its duality gap."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from streamkernel.window.losses import LOSSES, ElasticNet, WindowLoss

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Task:
    """min_x (1/n) sum_i w_i phi(a_i . x, y_i) + l2/2 |x|^2 + l1 |x|_1.

    Without weights they are 1 each.
    """

    name: str  #: in tables and plots
    A: Array  #: the rows, float64 of shape (n, p)
    y: Array  #: labels of -1 and 1, shape (n,)
    loss: str  #: the name of phi
    l2: float
    l1: float = 0.0
    factors: tuple[Array, Array] | None = None  #: U of shape (n, d) and V of shape (d, p) with A = U V
    weights: Array = field(default_factory=lambda: np.ones(0))  #: w_i, of mean 1
    test: tuple[Array, Array] | None = None  #: rows and labels of a test set

    @property
    def n(self) -> int:
        return len(self.A)

    @property
    def p(self) -> int:
        return int(self.A.shape[1])

    @cached_property
    def w(self) -> Array:
        """The weights, written out."""
        return self.weights if len(self.weights) else np.ones(self.n)

    @cached_property
    def rows(self) -> Any:
        """The rows as SciPy's CSR matrix where less than a quarter of them is not 0, else as they are."""
        if np.count_nonzero(self.A) < 0.25 * self.A.size:
            return sparse.csr_matrix(self.A)
        return self.A

    @property
    def phi(self) -> WindowLoss:
        """The loss' number in compiled code, and its smoothness."""
        return LOSSES[self.loss]

    @property
    def regularizer(self) -> ElasticNet:
        return ElasticNet(self.l2, self.l1)

    def first(self, n: int) -> "Task":
        """The same problem of the first rows alone."""
        return replace(self, A=self.A[:n], y=self.y[:n], weights=self.weights[:n])

    def objective(self, x: Array) -> float:
        return mean_loss(self.loss, self.A @ x, self.y, self.w) + self.regularizer.value(x)

    def test_objective(self, x: Array) -> float:
        """The objective on the test set, its classes weighted like those of the training set; NaN without one."""
        if self.test is None:
            return float("nan")
        X, y = self.test
        weight = {label: self.w[self.y == label][0] for label in (-1.0, 1.0)}
        w = np.where(y > 0, weight[1.0], weight[-1.0])
        return mean_loss(self.loss, X @ x, y, w / w.mean()) + self.regularizer.value(x)

    def slopes(self, x: Array) -> Array:
        """phi' of every record, shape (n,)."""
        return derivative(self.loss, self.A @ x, self.y)

    def gradient(self, x: Array) -> Array:
        """Of the mean loss, without the regularizer; shape (p,)."""
        return np.asarray(self.A.T @ (self.w * self.slopes(x)) / self.n)

    def gap(self, x: Array, beta: Array | None = None) -> float:
        """The duality gap of coefficients and dual variables, by default phi'(a_i . x): a bound of x's excess."""
        if beta is None:
            beta = self.slopes(x)
        conjugate = float(np.mean(self.w * conjugates(self.loss, beta, self.y)))
        dual = -conjugate - self.regularizer.conjugate(-self.A.T @ (self.w * beta) / self.n)
        return self.objective(x) - dual


def mean_loss(loss: str, z: Array, y: Array, w: Array) -> float:
    return float(np.mean(w * loss_values(loss, z, y)))


def loss_values(loss: str, z: Array, y: Array) -> Array:
    """phi of labels of -1 and 1; shape (n,)."""
    if loss == "log":
        return np.asarray(np.logaddexp(0.0, -y * z))
    missing = np.maximum(1.0 - y * z, 0.0)
    return np.asarray(np.where(missing > 1, missing - 0.5, 0.5 * missing**2))


def conjugates(loss: str, beta: Array, y: Array) -> Array:
    """phi* of labels of -1 and 1, within its domain; shape (n,)."""
    share = np.clip(-y * beta, 0.0, 1.0)
    if loss == "log":
        return np.asarray(xlogy(share, share) + xlogy(1.0 - share, 1.0 - share))
    return np.asarray(share * (0.5 * share - 1.0))


def derivative(loss: str, z: Array, y: Array) -> Array:
    """phi' of labels of -1 and 1; shape (n,)."""
    if loss == "log":
        return np.asarray(-y * 0.5 * (1.0 - np.tanh(0.5 * y * z)))
    return np.asarray(-y * np.clip(1.0 - y * z, 0.0, 1.0))


def curvature(loss: str, z: Array, y: Array) -> Array:
    """phi'' of labels of -1 and 1, where the smooth hinge has one; shape (n,)."""
    if loss == "log":
        share = 0.5 * (1.0 - np.tanh(0.5 * y * z))
        return np.asarray(share * (1.0 - share))
    missing = 1.0 - y * z
    return np.asarray(((missing > 0) & (missing < 1)).astype(float))
