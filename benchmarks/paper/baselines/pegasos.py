"""Pegasos (Shalev-Shwartz, Singer and Srebro 2007) on stored features: r-Pegasos and n-Pegasos."""

import numpy as np

from benchmarks.paper.baselines.gaussian import KernelMap
from benchmarks.paper.baselines.learner import Array, Derivative, hinge


class Pegasos:
    """w <- (1 - gamma_t nu) w - gamma_t / B sum_i l'(w.phi_i, t_i) phi_i, gamma_t = 1 / (nu t), then onto the ball.

    The ball |w| <= 1 / sqrt(nu), of each output alone, is the paper's for the hinge; other losses have none.

    Parameters
    ----------
    features
        The feature map.
    regularization
        nu, the paper's lambda.
    derivative
        Of the loss. Defaults to the hinge's.
    longest
        The longest step. The hinge needs none, for its gradients are bounded; with the square loss 1 / (nu t) diverges,
        and it is 1 / lambda_1 of the features' covariance.

    """

    def __init__(
        self, features: KernelMap, regularization: float, derivative: Derivative = hinge, longest: float = np.inf
    ) -> None:
        self._features = features
        self._nu = regularization
        self._derivative = derivative
        self._longest = longest
        self._t = 0
        self._w = np.zeros((0, 0))

    @property
    def nbytes(self) -> int:
        return int(self._features.nbytes + self._w.nbytes // 2)  # as float32

    def learn(self, X: Array, T: Array, rows: Array) -> None:  # noqa: ARG002 - it keeps nothing of a row
        phi = self._features(X)
        if not self._t:
            self._w = np.zeros((phi.shape[1], T.shape[1]))
        self._t += 1
        gamma = min(1 / (self._nu * self._t), self._longest)
        G = phi.T @ self._derivative(phi @ self._w, T) / len(X)
        self._w = (1 - gamma * self._nu) * self._w - gamma * G
        if self._derivative is hinge:
            norms = np.sqrt(np.einsum("ik,ik->k", self._w, self._w))
            self._w *= np.minimum(1, 1 / (np.sqrt(self._nu) * np.maximum(norms, 1e-300)))

    def scores(self, X: Array) -> Array:
        return np.asarray(self._features(X) @ self._w)
