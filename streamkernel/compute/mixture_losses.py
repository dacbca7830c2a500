"""The losses of a mixture's heads: of numbers, of labels, and of classes."""

from typing import Any

import numpy as np

from streamkernel.compute.jit import jit
from streamkernel.compute.mixture_parts import CLASSES, LEAST, NUMBERS, WORST

Array = np.ndarray[Any, np.dtype[Any]]


@jit
def residual(kind: int, score: Array, target: Array, out: Array, losses: Array) -> None:
    """The derivatives of the losses over their Lipschitz constants.

    Parameters
    ----------
    kind
        `NUMBERS`, `LABELS` or `CLASSES`.
    score, target
        Of a record, shape (C,) and (T,); NaN is a target that is not known.
    out
        Filled, shape (C,).
    losses
        Filled with the loss of each target, shape (T,); NaN where it is not known.
    """
    C = score.shape[0]
    if kind != CLASSES:
        for c in range(C):
            if np.isnan(target[c]):
                out[c] = 0.0
                losses[c] = np.nan
            elif kind == NUMBERS:
                out[c] = score[c] - target[c]
                losses[c] = min(out[c] * out[c], WORST)
            else:  # a true label has this score, and a false one its negative
                p = 1.0 / (1.0 + np.exp(-2.0 * score[c]))
                out[c] = 2.0 * (p - target[c])
                losses[c] = -np.log(max(p if target[c] > 0 else 1.0 - p, LEAST))
        return
    highest = score[0]
    for c in range(1, C):
        highest = max(highest, score[c])
    total = 0.0
    for c in range(C):
        out[c] = np.exp(score[c] - highest)
        total += out[c]
    label = int(target[0])
    p = out[label] / total
    for c in range(C):
        out[c] *= 2.0 / total
    out[label] -= 2.0
    losses[0] = -np.log(max(p, LEAST))


@jit
def any_known(target: Array) -> Any:
    """Whether a number of a row is not NaN."""
    known = False
    for c in range(target.shape[0]):
        known |= not np.isnan(target[c])
    return known
