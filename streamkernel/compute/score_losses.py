"""Losses of many scores, and their derivatives, of a window solver's loss."""

from typing import Any

import numpy as np

from streamkernel.compute.jit import jit
from streamkernel.compute.window_losses import loss_derivative, loss_value

Array = np.ndarray[Any, np.dtype[Any]]


@jit
def score_losses(kind: int, z: Array, y: Array, out: Array) -> None:
    """Fill `out` with phi_i(z_i), all float64 of shape (n,)."""
    for i in range(z.shape[0]):
        out[i] = loss_value(kind, z[i], y[i])


@jit
def score_derivatives(kind: int, z: Array, y: Array, out: Array) -> None:
    """Fill `out` with phi_i'(z_i), all float64 of shape (n,)."""
    for i in range(z.shape[0]):
        out[i] = loss_derivative(kind, z[i], y[i])
