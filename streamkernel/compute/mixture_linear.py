"""The linear expert of a mixture: adaptive gradient steps (AdaGrad), one for each record."""

from typing import Any

import numpy as np

from streamkernel.compute.features import LINEAR_LIMIT
from streamkernel.compute.jit import jit
from streamkernel.compute.mixture_parts import LINEAR_STEP

Array = np.ndarray[Any, np.dtype[Any]]


@jit
def learn_linear(linear: Array, squares: Array, x: Array, slopes: Array, weight: float) -> None:
    """One adaptive gradient step of the linear expert."""
    for c in range(linear.shape[0]):
        for j in range(linear.shape[1]):
            number = 1.0 if j == 0 else min(max(np.float64(x[j - 1]), -LINEAR_LIMIT), LINEAR_LIMIT)
            slope = weight * slopes[c] * number
            if slope != 0.0:
                squares[c, j] += slope * slope
                linear[c, j] -= LINEAR_STEP * slope / np.sqrt(squares[c, j])


@jit
def predict_linear(weights: Array, x: Array) -> Any:
    """The score of the linear expert's weights (1 + L,)."""
    total = weights[0]
    for j in range(weights.shape[0] - 1):
        total += weights[1 + j] * min(max(np.float64(x[j]), -LINEAR_LIMIT), LINEAR_LIMIT)
    return total
