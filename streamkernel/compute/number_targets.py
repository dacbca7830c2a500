"""What is known of targets that are numbers: their scale of asinh, the shift to a median, and the last errors.

The scale asinh(y / c), c the usual magnitude, is linear about 0 and logarithmic far from it. Heads that learn targets
on it minimize large targets' relative errors, so that a few very large ones do not decide.
"""

from typing import Any, NamedTuple

import numpy as np

from streamkernel.compute.jit import Array, jit
from streamkernel.compute.moments import MEAN, deviation, take_target

#: This many targets other than 0 fix the magnitude; from then on it does not change.
MAGNITUDES = 128
#: Smaller magnitudes count as this: quotients of targets by them would overflow.
LEAST_MAGNITUDE = 1e-200
#: The least and the greatest target, first and second of a range.
LOW, HIGH = range(2)


class AsinhStatistics(NamedTuple):
    """What is known of targets on the scale of asinh, since heads began to learn them.

    Attributes
    ----------
    moments
        Moments of the targets on that scale, float64 of shape (8,).
    magnitudes
        How many of the first targets other than 0 are kept, at most `MAGNITUDES`, then their absolute values, sorted,
        and zeros; float64 of shape (1 + `MAGNITUDES`,).
    bounds
        `LOW` and `HIGH`; both 0 at first.

    """

    moments: Array
    magnitudes: Array
    bounds: Array


@jit
def magnitude_of(magnitudes: Array) -> Any:
    """c: the median of the magnitudes, of an even number the upper one; 1 before there are any."""
    n = np.int64(magnitudes[0])
    return max(magnitudes[1 + n // 2], LEAST_MAGNITUDE) if n else 1.0


@jit
def keep_magnitude(magnitudes: Array, y: float) -> None:
    """Keep one more target's magnitude, if it is not 0 and there is room."""
    n, size = np.int64(magnitudes[0]), abs(y)
    if size == 0 or n == MAGNITUDES:
        return
    place = n + 1
    while place > 1 and magnitudes[place - 1] > size:
        magnitudes[place] = magnitudes[place - 1]
        place -= 1
    magnitudes[place] = size
    magnitudes[0] = n + 1.0


@jit
def from_asinh(asinh: AsinhStatistics, score: float, margin: float) -> Any:
    """The target that a head's score means; no farther than `margin` from all that were learned."""
    c = magnitude_of(asinh.magnitudes)
    # Where sinh overflows, it is infinite, and bounded as well.
    y = c * np.sinh(asinh.moments[MEAN] + deviation(asinh.moments) * score)
    return min(max(y, asinh.bounds[LOW] - margin), asinh.bounds[HIGH] + margin)


@jit
def take_asinh(asinh: AsinhStatistics, y: float) -> Any:
    """Take a target; returns it on the scale of asinh, as the moments that include it standardize it."""
    if asinh.moments[0] == 0:
        asinh.bounds[LOW] = asinh.bounds[HIGH] = y
    asinh.bounds[LOW], asinh.bounds[HIGH] = min(asinh.bounds[LOW], y), max(asinh.bounds[HIGH], y)
    return take_target(asinh.moments, np.arcsinh(y / magnitude_of(asinh.magnitudes)))[0]


@jit
def forget_asinh(asinh: AsinhStatistics) -> None:
    """Reset the statistics."""
    asinh.moments[:] = 0.0
    asinh.magnitudes[:] = 0.0
    asinh.bounds[:] = 0.0


@jit
def take_all_asinh(targets: Array, sample_weights: Array, asinh: AsinhStatistics, out: Array) -> None:
    """Take targets one after the other, (n,), as `take_asinh` gives them into (n,); none of a weight of 0."""
    for r in range(targets.shape[0]):
        out[r] = take_asinh(asinh, targets[r]) if sample_weights[r] > 0 else 0.0


#: The numbers kept: the shift, the mean absolute error, and the discounted losses without the shift and with it.
SHIFT, SPREAD, PLAIN, SHIFTED = range(4)
MEDIAN_SIZE = 4
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


#: How many are kept.
RESIDUALS = 500


@jit
def keep_residual(residuals: Array, error: float) -> None:
    """Keep one more, the oldest making room: how many there have been, then a ring of `RESIDUALS`."""
    n = np.int64(residuals[0])
    residuals[1 + n % RESIDUALS] = error
    residuals[0] = n + 1.0
