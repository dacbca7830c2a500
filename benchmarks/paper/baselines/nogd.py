"""NOGD (Lu, Hoi, Wang, Zhao and Liu 2016): online gradient descent on Nystrom features of the first support vectors."""

import numpy as np

from benchmarks.paper.baselines.gaussian import gaussian
from benchmarks.paper.baselines.learner import Array, Derivative, hinge


class Nogd:
    """Kernel gradient descent until a budget of support vectors is full, then on their leading Nystrom features.

    phi(x) = D^-1/2 V^T k(Z, x) with the k largest eigenvalues D and eigenvectors V of the support vectors' kernel
    matrix; w begins at what those vectors' coefficients were.

    Parameters
    ----------
    bandwidth, eta
        s of the kernel, and the constant step size.
    budget
        Support vectors. Defaults to 256.
    derivative
        Of the loss. Defaults to the hinge's.

    """

    def __init__(self, bandwidth: float, eta: float, budget: int = 256, derivative: Derivative = hinge) -> None:
        self._bandwidth = bandwidth
        self._eta = eta
        self._budget = budget
        self._derivative = derivative
        self._Z = self._C = np.zeros((0, 0), np.float32)
        self._A = self._w = np.zeros((0, 0))

    @property
    def nbytes(self) -> int:
        kept = self._w if len(self._w) else self._C
        return int(self._Z.nbytes + (self._A.nbytes + kept.nbytes) // 2)  # as float32

    def learn(self, X: Array, T: Array, rows: Array) -> None:  # noqa: ARG002 - the budget is of any rows
        start = 0
        while start < len(X) and not len(self._w):
            self._learn_support(X[start : start + 1], T[start : start + 1])
            start += 1
        if start == len(X):
            return
        phi = self._phi(X)
        for i in range(start, len(X)):
            g = self._derivative(phi[i : i + 1] @ self._w, T[i : i + 1])
            if g.any():
                self._w -= self._eta * phi[i][:, None] * g

    def scores(self, X: Array) -> Array:
        if len(self._w):
            return np.asarray(self._phi(X) @ self._w)
        return np.asarray(gaussian(X, self._Z, self._bandwidth) @ self._C)

    def _learn_support(self, x: Array, t: Array) -> None:
        """A record before the budget is full: a support vector where the loss has a slope."""
        if not len(self._Z):
            self._Z, self._C = np.zeros((0, x.shape[1]), np.float32), np.zeros((0, t.shape[1]))
        g = self._derivative(self.scores(x), t)
        if g.any():
            self._Z, self._C = np.concatenate([self._Z, x]), np.concatenate([self._C, -self._eta * g])
        if len(self._Z) == self._budget:
            self._begin_features()

    def _begin_features(self) -> None:
        rank = max(self._budget // 5, 1)  # the paper's share
        values, vectors = np.linalg.eigh(gaussian(self._Z, self._Z, self._bandwidth).astype(np.float64))
        D, V = np.maximum(values[-rank:], 1e-10), vectors[:, -rank:]
        self._A = V / np.sqrt(D)
        self._w = (V * np.sqrt(D)).T @ self._C

    def _phi(self, X: Array) -> Array:
        return np.asarray(gaussian(X, self._Z, self._bandwidth) @ self._A)
