"""How a head's scores change along the inputs: the gradient of its columns."""

import math
from typing import Any

import numpy as np

from streamkernel.compute.jit import jit
from streamkernel.compute.recursive import dot

Array = np.ndarray[Any, np.dtype[Any]]


@jit
def slopes(
    phi: Array, coefficients: Array, W: Array, scales: Array, root: float, n_linear: int, along: Array, out: Array
) -> None:
    """df / dx_j of f(x) = coefficients . columns(x), at one record.

    Parameters
    ----------
    phi
        The record's columns, float64 of shape (D,).
    coefficients
        Shape (D,).
    W, scales, root, n_linear
        As `adaptive_columns` has them; W float64 of shape (d, F).
    along
        Room, shape (F,).
    out
        Filled, shape (d,).

    """
    d, F = W.shape
    for i in range(F):
        along[i] = coefficients[F + i] * phi[i] - coefficients[i] * phi[F + i]
    for j in range(d):
        out[j] = 2.0 * math.pi * scales[j] * dot(along, W[j])
    for j in range(n_linear):
        out[j] += coefficients[2 * F + 1 + j] / root


@jit
def squared_slopes(
    Phi: Array, coefficients: Array, W: Array, scales: Array, root: float, n_linear: int, out: Array
) -> None:
    """Squared slopes, (d,), summed over records with columns (n, D) and outputs with coefficients (K, D)."""
    d, F = W.shape
    along, slope = np.empty(F), np.empty(d)
    out[:] = 0.0
    for r in range(Phi.shape[0]):
        for k in range(coefficients.shape[0]):
            slopes(Phi[r], coefficients[k], W, scales, root, n_linear, along, slope)
            for j in range(d):
                out[j] += slope[j] ** 2
