"""From a mixture of experts that predict means to a median: a shift that follows the sign of the errors."""

from typing import Any

import numpy as np

from streamkernel.compute.jit import jit

Array = np.ndarray[Any, np.dtype[Any]]

#: The numbers kept: the shift, the mean absolute error, and the discounted losses without the shift and with it.
SHIFT, SPREAD, PLAIN, SHIFTED = range(4)
SIZE = 4
#: A step of the shift, in mean absolute errors, and how fast these are forgotten.
STEP = 0.01
FORGET = 0.01
#: Discount and learning rate of the losses: whether errors are skewed shows slowly.
DISCOUNT = 0.998
ETA = 2.0


@jit
def at_median(median: Array, prediction: float) -> Any:
    """A prediction moved by the shift, the more the better that did."""
    return prediction + median[SHIFT] / (1.0 + np.exp(ETA * (median[SHIFTED] - median[PLAIN])))


@jit
def follow_median(median: Array, error: float, unit: float, worst: float) -> None:
    """Learn the error of a prediction without the shift; no loss, in units, counts as more than `worst`."""
    shifted = error - median[SHIFT]
    plain, other = min(abs(error) / unit, worst), min(abs(shifted) / unit, worst)
    mean = (plain + other) / 2.0 + 0.05
    median[PLAIN] = DISCOUNT * median[PLAIN] + 0.4 * plain / mean
    median[SHIFTED] = DISCOUNT * median[SHIFTED] + 0.4 * other / mean
    median[SPREAD] += FORGET * (abs(error) - median[SPREAD])
    median[SHIFT] += STEP * median[SPREAD] * np.sign(shifted)
