"""The losses of a mixture's heads (of numbers, labels and classes), and its linear expert."""

from typing import Any

import numpy as np

from streamkernel.compute.features import LINEAR_LIMIT
from streamkernel.compute.jit import Array, jit
from streamkernel.compute.mixture_parts import CLASSES, FARTHEST, LEAST, LINEAR_STEP, NUMBERS


@jit
def loss_residuals(kind: int, scores: Array, targets: Array, out: Array, losses: Array) -> None:
    """The derivatives of the losses over their Lipschitz constants.

    Parameters
    ----------
    kind
        `NUMBERS`, `LABELS` or `CLASSES`.
    scores
        Shape (n, C).
    targets
        Of each, or one for all, shape (n, T) or (1, T); NaN is a target that is not known.
    out
        Filled, shape (n, C).
    losses
        Filled with the loss of each target, shape (n, T), NaN where it is not known; or of shape (0, T).
    """
    C, with_losses = scores.shape[1], losses.shape[0] > 0
    for i in range(scores.shape[0]):
        own = i if targets.shape[0] > 1 else 0
        if kind != CLASSES:
            for c in range(C):
                target, score = targets[own, c], scores[i, c]
                slope, loss = score - target, 0.0
                if np.isnan(target):
                    slope, loss = 0.0, np.nan
                elif kind == NUMBERS:
                    slope = min(max(slope, -FARTHEST), FARTHEST)
                    loss = slope * slope
                else:  # a true label has this score, and a false one its negative
                    p = 1.0 / (1.0 + np.exp(-2.0 * score))
                    slope = 2.0 * (p - target)
                    if with_losses:
                        loss = -np.log(max(p if target > 0 else 1.0 - p, LEAST))
                out[i, c] = slope
                if with_losses:
                    losses[i, c] = loss
            continue
        highest, total = scores[i, 0], 0.0
        for c in range(1, C):
            highest = max(highest, scores[i, c])
        for c in range(C):
            out[i, c] = np.exp(scores[i, c] - highest)
            total += out[i, c]
        label = int(targets[own, 0])
        p = out[i, label] / total
        for c in range(C):
            out[i, c] *= 2.0 / total
        out[i, label] -= 2.0
        if with_losses:
            losses[i, 0] = -np.log(max(p, LEAST))


@jit
def any_known(target: Array) -> Any:
    """Whether a number of a row is not NaN."""
    known = False
    for c in range(target.shape[0]):
        known |= not np.isnan(target[c])
    return known


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
