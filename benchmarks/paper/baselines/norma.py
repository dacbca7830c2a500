"""NORMA (Kivinen, Smola and Williamson 2004): stochastic functional gradients, every support vector stored."""

import numpy as np

from benchmarks.paper.baselines.gaussian import gaussian, kernel_sums
from benchmarks.paper.baselines.learner import Array, Derivative

#: Steps after which the step size has halved, as that of our machines.
_HALVING = 200


class Norma:
    """f <- (1 - gamma_t nu) f - gamma_t / B sum_i l'(f(x_i), t_i) k(x_i, .).

    Its step is the rule of our machines without their features: gamma_t = gamma_0 / (1 + t / 200), gamma_0 =
    1 / (L (lambda_1 + 1 / B)) with lambda_1 of the first mini-batch's kernel matrix over B.

    Parameters
    ----------
    bandwidth, regularization
        s of the kernel, and nu.
    derivative
        Of the loss.
    curvature
        L, the Lipschitz constant of the derivative; 1 of the hinge.

    """

    def __init__(self, bandwidth: float, regularization: float, derivative: Derivative, curvature: float = 1.0) -> None:
        self._bandwidth = bandwidth
        self._nu = regularization
        self._derivative = derivative
        self._curvature = curvature
        self._t = 0
        self._gamma_0 = 0.0
        self._n = 0
        self._scale = 1.0
        self._Z = self._C = np.zeros((0, 0), np.float32)

    @property
    def nbytes(self) -> int:
        return int(self._Z[: self._n].nbytes + self._C[: self._n].nbytes)

    def learn(self, X: Array, T: Array, rows: Array) -> None:  # noqa: ARG002 - every row is a new support vector
        g = self._derivative(self.scores(X) if self._n else np.zeros(T.shape), T)
        if not self._gamma_0:
            top = float(np.linalg.eigvalsh(gaussian(X, X, self._bandwidth).astype(np.float64))[-1]) / len(X)
            self._gamma_0 = 1 / (self._curvature * (top + 1 / len(X)))
        gamma = self._gamma_0 / (1 + self._t / _HALVING)
        self._t += 1
        self._scale *= 1 - gamma * self._nu
        support = g.any(axis=1)
        self._append(X[support], -gamma / len(X) / self._scale * g[support])

    def scores(self, X: Array) -> Array:
        return self._scale * kernel_sums(X, self._Z[: self._n], self._C[: self._n], self._bandwidth)

    def _append(self, Z: Array, C: Array) -> None:
        """Store support vectors, in arrays that double when they are full."""
        stop = self._n + len(Z)
        if stop > len(self._Z) or not self._n:
            room = max(2 * stop, 1024)
            old = self._Z[: self._n], self._C[: self._n]
            self._Z = np.zeros((room, Z.shape[1]), np.float32)
            self._C = np.zeros((room, C.shape[1]), np.float32)
            if self._n:
                self._Z[: self._n], self._C[: self._n] = old
        self._Z[self._n : stop], self._C[self._n : stop] = Z, C
        self._n = stop
