"""The Gaussian kernel and the two ways to approximate it by features that are stored: Fourier and Nystrom."""

from typing import Protocol

import numpy as np

from benchmarks.paper.baselines.learner import Array

#: Rows that are compared with all others at once: a matrix of 1,000 x 26,000 numbers is 104 MB.
_CHUNK = 1_000


def gaussian(X: Array, Z: Array, bandwidth: float) -> Array:
    """exp(-|x - z|^2 / 2 s^2) of every pair, shape (n, m), in the inputs' type."""
    D = X @ Z.T
    D *= 2
    D -= np.einsum("ij,ij->i", X, X)[:, None]
    D -= np.einsum("ij,ij->i", Z, Z)[None, :]
    np.minimum(D, 0, out=D)
    D *= 0.5 / bandwidth**2
    return np.asarray(np.exp(D, out=D))


def kernel_sums(X: Array, Z: Array, coefficients: Array, bandwidth: float) -> Array:
    """sum_j k(x, z_j) c_j of each row of X, shape (n, K), some rows at a time."""
    out = np.zeros((len(X), coefficients.shape[1]))
    for i in range(0, len(X) if len(Z) else 0, _CHUNK):
        out[i : i + _CHUNK] = gaussian(X[i : i + _CHUNK], Z, bandwidth) @ coefficients
    return out


class KernelMap(Protocol):
    """Features whose products approximate the kernel."""

    @property
    def nbytes(self) -> int:
        """Bytes that are kept to compute them."""

    def __call__(self, X: Array) -> Array:
        """Features of each row, shape (n, D)."""


class FourierMap:
    """Random Fourier features (Rahimi and Recht 2007): cosines and sines of r stored frequencies, D = 2 r."""

    def __init__(self, d: int, r: int, bandwidth: float, seed: int) -> None:
        self._W = (np.random.default_rng(seed).normal(size=(d, r)) / bandwidth).astype(np.float32)
        self.nbytes = self._W.nbytes

    def __call__(self, X: Array) -> Array:
        U = X @ self._W
        return np.concatenate([np.cos(U), np.sin(U)], axis=1) / np.float32(np.sqrt(U.shape[1]))


class NystromMap:
    """Nystrom features (Williams and Seeger 2000): K_ZZ^-1/2 k(Z, x) of r landmarks, uniformly drawn; D = r."""

    def __init__(self, X: Array, r: int, bandwidth: float, seed: int) -> None:
        self._Z = X[np.random.default_rng(seed).choice(len(X), min(r, len(X)), replace=False)]
        values, vectors = np.linalg.eigh(gaussian(self._Z, self._Z, bandwidth).astype(np.float64))
        roots = np.where(values > 1e-10, values, np.inf) ** -0.5
        self._A = ((vectors * roots) @ vectors.T).astype(np.float32)
        self._bandwidth = bandwidth
        self.nbytes = self._Z.nbytes + self._A.nbytes

    def __call__(self, X: Array) -> Array:
        return np.asarray(gaussian(X, self._Z, self._bandwidth) @ self._A)
