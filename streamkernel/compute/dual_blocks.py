"""The dual steps of many records at once, for solvers whose other work is a library's."""

from typing import Any

import numpy as np

from streamkernel.compute.jit import jit
from streamkernel.compute.window_losses import dual_update

Array = np.ndarray[Any, np.dtype[Any]]


@jit
def dual_steps(kind: int, beta: Array, z: Array, y: Array, step: float, out: Array) -> None:
    """Fill `out` with the proximal step of each dual variable, `dual_update`; arrays are float64 of shape (m,)."""
    for i in range(beta.shape[0]):
        out[i] = dual_update(kind, beta[i], z[i], y[i], step)
