"""SVRG (Johnson and Zhang 2013), stochastic variance reduced gradients, on stored Fourier features."""

import numpy as np

from benchmarks.paper.baselines.gaussian import KernelMap
from benchmarks.paper.baselines.learner import Array, Derivative, softmax


class Svrg:
    """w <- w - eta (g_i(w) - g_i(w~) + mean g(w~) + nu w), with a snapshot w~ before each pass.

    The features of the whole training set are stored, as the CDSG paper does: that is its memory.

    Parameters
    ----------
    X, T
        The training set, (n, d) and (n, K).
    features
        The feature map.
    regularization
        nu.
    derivative
        Of the loss. Defaults to the softmax's.
    curvature
        L of the derivative. Defaults to 1/2, the softmax's.

    """

    def __init__(
        self,
        X: Array,
        T: Array,
        features: KernelMap,
        regularization: float,
        derivative: Derivative = softmax,
        curvature: float = 0.5,
    ) -> None:
        self._features = features
        self._nu = regularization
        self._derivative = derivative
        self._phi = features(X)
        self._T = T
        self._w = np.zeros((self._phi.shape[1], T.shape[1]), np.float32)
        sample = self._phi[:2_000].astype(np.float64)
        self._eta = 1 / (curvature * float(np.linalg.eigvalsh(sample.T @ sample / len(sample))[-1]))
        self._left = 0
        self._snapshot()

    @property
    def nbytes(self) -> int:
        return int(self._features.nbytes + self._phi.nbytes + 3 * self._w.nbytes)

    def learn(self, X: Array, T: Array, rows: Array) -> None:  # noqa: ARG002 - the features of X are stored
        if self._left <= 0:
            self._snapshot()
        phi = self._phi[rows]
        change = self._derivative(phi @ self._w, T) - self._derivative(phi @ self._anchor, T)
        G = phi.T @ change / len(rows) + self._mean + self._nu * self._w
        self._w -= (self._eta * G).astype(np.float32)
        self._left -= len(rows)

    def scores(self, X: Array) -> Array:
        return np.asarray(self._features(X) @ self._w)

    def _snapshot(self) -> None:
        self._anchor = self._w.copy()
        n = len(self._phi)
        self._mean = self._phi.T @ self._derivative(self._phi @ self._w, self._T).astype(np.float32) / n
        self._left = n
