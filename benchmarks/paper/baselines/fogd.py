"""FOGD (Lu, Hoi, Wang, Zhao and Liu 2016): online gradient descent on stored Fourier features, record by record."""

import numpy as np

from benchmarks.paper.baselines.gaussian import KernelMap
from benchmarks.paper.baselines.learner import Array, Derivative, hinge


class Fogd:
    """w <- w - eta l'(w.phi, t) phi after every record, with a constant eta.

    Parameters
    ----------
    features
        The feature map; the paper's is of 4 times as many frequencies as its budget has support vectors.
    eta
        The step size.
    derivative
        Of the loss. Defaults to the hinge's.

    """

    def __init__(self, features: KernelMap, eta: float, derivative: Derivative = hinge) -> None:
        self._features = features
        self._eta = eta
        self._derivative = derivative
        self._w = np.zeros((0, 0))

    @property
    def nbytes(self) -> int:
        return int(self._features.nbytes + self._w.nbytes // 2)  # as float32

    def learn(self, X: Array, T: Array, rows: Array) -> None:  # noqa: ARG002 - it keeps nothing of a row
        phi = self._features(X).astype(np.float64)
        if not len(self._w):
            self._w = np.zeros((phi.shape[1], T.shape[1]))
        for i in range(len(X)):
            g = self._derivative(phi[i : i + 1] @ self._w, T[i : i + 1])
            if g.any():
                self._w -= self._eta * phi[i][:, None] * g

    def scores(self, X: Array) -> Array:
        return np.asarray(self._features(X) @ self._w)
