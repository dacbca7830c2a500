"""SDCA (Shalev-Shwartz and Zhang 2013), stochastic dual coordinate ascent: with the kernel, and on stored features."""

from collections.abc import Callable

import numpy as np

from benchmarks.paper.baselines.gaussian import KernelMap, gaussian, kernel_sums
from benchmarks.paper.baselines.learner import Array

#: The row's best dual variables: of scores, targets and dual variables, each (K,), and q = k(x, x) / (nu n).
DualStep = Callable[[Array, Array, Array, float], Array]


def hinge_step(f: Array, t: Array, alpha: Array, q: float) -> Array:
    """t min(1, max(0, t alpha + (1 - t f) / q))."""
    return np.asarray(t * np.clip(t * alpha + (1 - t * f) / q, 0, 1))


def square_step(f: Array, t: Array, alpha: Array, q: float) -> Array:
    """alpha + (t - f - alpha) / (1 + q), of half the squared error."""
    return np.asarray(alpha + (t - f - alpha) / (1 + q))


class KernelSDCA:
    """k-SDCA: f = sum_i alpha_i k(x_i, .) / (nu n), one row's dual variables made the best after the other.

    The scores of a mini-batch are computed together, and inside it each row sees what those before it changed: the
    same as row by row.

    Parameters
    ----------
    n, bandwidth, regularization
        Rows of the training set, s of the kernel, and nu.
    step
        The best dual variables of a row. Defaults to the hinge's.

    """

    def __init__(self, n: int, bandwidth: float, regularization: float, step: DualStep = hinge_step) -> None:
        self._per_alpha = 1 / (regularization * n)
        self._bandwidth = bandwidth
        self._step = step
        self._n = n
        self._Z = self._alpha = np.zeros((0, 0), np.float32)

    @property
    def nbytes(self) -> int:
        kept = int(self._alpha.any(axis=1).sum()) if len(self._Z) else 0
        return kept * 4 * (self._Z.shape[1] + self._alpha.shape[1])

    def learn(self, X: Array, T: Array, rows: Array) -> None:
        if not len(self._Z):
            self._Z = np.zeros((self._n, X.shape[1]), np.float32)
            self._alpha = np.zeros((self._n, T.shape[1]), np.float32)
        f = self.scores(X)
        among = gaussian(X, X, self._bandwidth) * self._per_alpha
        self._Z[rows] = X
        for i, row in enumerate(rows):
            old = self._alpha[row].copy()
            self._alpha[row] = self._step(f[i], T[i], old, self._per_alpha)
            change = self._alpha[row] - old
            if change.any():
                f += among[i][:, None] * change

    def scores(self, X: Array) -> Array:
        support = self._alpha.any(axis=1)
        if not support.any():
            return np.zeros((len(X), self._alpha.shape[1]))
        return self._per_alpha * kernel_sums(X, self._Z[support], self._alpha[support], self._bandwidth)


class FeatureSDCA:
    """r- and n-SDCA: the same on stored features, w = sum_i alpha_i phi_i / (nu n).

    Parameters
    ----------
    n, features, regularization
        Rows of the training set, the feature map, and nu.
    step
        The best dual variables of a row. Defaults to the hinge's.

    """

    def __init__(self, n: int, features: KernelMap, regularization: float, step: DualStep = hinge_step) -> None:
        self._per_alpha = 1 / (regularization * n)
        self._features = features
        self._step = step
        self._n = n
        self._w = self._alpha = np.zeros((0, 0))

    @property
    def nbytes(self) -> int:
        return int(self._features.nbytes + (self._w.nbytes + self._alpha.nbytes) // 2)  # as float32

    def learn(self, X: Array, T: Array, rows: Array) -> None:
        phi = self._features(X).astype(np.float64)
        if not len(self._w):
            self._w, self._alpha = np.zeros((phi.shape[1], T.shape[1])), np.zeros((self._n, T.shape[1]))
        q = np.maximum(np.einsum("ij,ij->i", phi, phi) * self._per_alpha, 1e-12)
        for i, row in enumerate(rows):
            old = self._alpha[row]
            new = self._step(phi[i] @ self._w, T[i], old, float(q[i]))
            change = self._per_alpha * (new - old)
            if change.any():
                self._w += phi[i][:, None] * change
            self._alpha[row] = new

    def scores(self, X: Array) -> Array:
        return np.asarray(self._features(X) @ self._w)
