"""The linear expert of a mixture: adaptive gradient steps (AdaGrad), one for each record."""

from typing import Any

import numpy as np

from streamkernel.compute.features import LINEAR_LIMIT
from streamkernel.compute.jit import jit
from streamkernel.compute.mixture_parts import LINEAR_STEP

Array = np.ndarray[Any, np.dtype[Any]]


@jit
def learn_linear(linear: Array, squares: Array, x: Array, slopes: Array, weight: float) -> None:
    """One adaptive gradient step of the linear expert, which moves no score by more than its slope.

    A weight lengthens the step; a heavy record does not shorten those to come.
    """
    L = linear.shape[1] - 1
    step, inputs = np.empty(1 + L), np.empty(1 + L)
    inputs[0] = 1.0
    for j in range(L):
        inputs[1 + j] = min(max(np.float64(x[j]), -LINEAR_LIMIT), LINEAR_LIMIT)
    for c in range(linear.shape[0]):
        move = 0.0
        for j in range(1 + L):
            gradient = slopes[c] * inputs[j]
            squares[c, j] += gradient * gradient
            # Of a gradient too small the square is 0.
            step[j] = LINEAR_STEP * weight * gradient / np.sqrt(squares[c, j]) if squares[c, j] > 0.0 else 0.0
            move += step[j] * inputs[j]
        factor = min(1.0, slopes[c] / move) if move != 0.0 else 0.0
        for j in range(1 + L):
            linear[c, j] -= factor * step[j]


@jit
def predict_linear(weights: Array, x: Array) -> Any:
    """The score of the linear expert's weights (1 + L,)."""
    total = weights[0]
    for j in range(weights.shape[0] - 1):
        total += weights[1 + j] * min(max(np.float64(x[j]), -LINEAR_LIMIT), LINEAR_LIMIT)
    return total
