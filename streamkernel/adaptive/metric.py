"""The metric: inputs weighed by how much the prediction changes along them (AGOP, average gradient outer product)."""

import math

import numpy as np

from streamkernel.state import Array

#: No input is forgotten altogether: the least importance, in means.
LEAST = 1e-3
#: Records whose median distance sets the bandwidth.
NEAREST = 200


def fit_ridge(Phi: Array, targets: Array, weights: Array, ridge: float) -> Array:
    """Coefficients (K, D) of the ridge regression of targets (n, K), weighted by (n,), on columns (n, D)."""
    weighted = Phi * weights[:, None]
    gram = weighted.T @ Phi
    gram[np.diag_indices_from(gram)] += ridge
    return np.asarray(np.linalg.solve(gram, weighted.T @ targets).T)


def gradients(Phi: Array, coefficients: Array, W: Array, scales: Array, d0: int, n_linear: int) -> Array:
    """df_c / dx_j of f_c(x) = coefficients_c . columns(x).

    Parameters
    ----------
    Phi
        Columns, shape (n, D).
    coefficients
        Shape (K, D).
    W
        Frequencies in turns, shape (d, F).
    scales, d0, n_linear
        As the columns were made.

    Returns
    -------
    float64 of shape (n, K, d).

    """
    F = W.shape[1]
    cosines, sines = Phi[:, None, :F], Phi[:, None, F : 2 * F]
    along = coefficients[None, :, F : 2 * F] * cosines - coefficients[None, :, :F] * sines
    slopes = 2 * math.pi * (along @ W.T.astype(np.float64)) * scales
    slopes[:, :, :n_linear] += coefficients[None, :, 2 * F + 1 :] / math.sqrt(max(d0, 1))
    return np.asarray(slopes)


def importance(slopes: Array) -> Array:
    """Mean squared slope of each input over records and outputs, in units of their mean; at least `LEAST`."""
    energy = np.mean(slopes**2, axis=(0, 1))
    mean = energy.mean() if len(energy) else 0.0
    if not mean > 0 or not math.isfinite(mean):
        return np.ones(len(energy))
    return np.asarray(np.maximum(energy / mean, LEAST))


def scales_of(important: Array) -> Array:
    """What each input is multiplied by: the root of its importance in units of their mean."""
    return np.asarray(np.sqrt(important / important.mean())) if len(important) else important
