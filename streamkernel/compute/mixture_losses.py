"""The losses of a mixture's heads: of numbers, of labels, and of classes."""

from typing import Any

import numpy as np

from streamkernel.compute.jit import jit
from streamkernel.compute.mixture_parts import CLASSES, FARTHEST, LEAST, NUMBERS

Array = np.ndarray[Any, np.dtype[Any]]


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
