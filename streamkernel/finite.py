"""Sums, means and losses that stay finite whatever the numbers of a stream are.

A label of 1e200 is a number, and its square is none: what is computed from it would stay infinite for ever, in sums, in
metrics and in every checkpoint from then on.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection

from streamkernel.compute.moments import LARGEST

__all__ = [
    "LARGEST",
    "NotFiniteError",
    "clamped",
    "clipped",
    "finite_mean",
    "finite_sum",
    "is_finite",
    "loss_of_number",
]

# A power of two: scaling by it rounds nothing, and no sum of so small numbers overflows.
_SCALE = 2.0**-64
_MOST = sys.float_info.max


class NotFiniteError(FloatingPointError):
    """A kernel, loss, step schedule or growth policy returned a number that is not finite. Nothing is learned."""


def is_finite(value: float) -> bool:
    """Whether a number of any type is finite as a float, which an integer of 400 digits is not.

    Examples
    --------
    >>> is_finite(2), is_finite(10**400), is_finite(math.nan)
    (True, False, False)

    """
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def clipped(value: float) -> float:
    """Give a number as metrics and models take it: at most 1e100 either way, so that its square does not overflow.

    Examples
    --------
    >>> clipped(-2.5), clipped(1e200)
    (-2.5, 1e+100)

    """
    return min(max(value, -LARGEST), LARGEST)


def clamped(value: float) -> float:
    """Give a result that overflowed as the largest float there is; any other as it is.

    Examples
    --------
    >>> clamped(2.5), clamped(-math.inf)
    (2.5, -1.7976931348623157e+308)

    """
    return min(max(value, -_MOST), _MOST)


def finite_sum(values: Collection[float]) -> float:
    """Sum finite numbers exactly, as `math.fsum` does where nothing overflows.

    Examples
    --------
    >>> finite_sum([1e308, 1e308, -1e308]), finite_sum([1.7e308, 1.7e308])
    (1e+308, 1.7976931348623157e+308)

    """
    try:
        return math.fsum(values)
    except OverflowError:
        return clamped(math.fsum(value * _SCALE for value in values) / _SCALE)


def finite_mean(values: Collection[float]) -> float:
    """Give the mean of finite numbers; NaN of none.

    Examples
    --------
    >>> finite_mean([1.0, 2.0]), finite_mean([1.7e308, 1.7e308])
    (1.5, 1.7e+308)

    """
    if not values:
        return math.nan
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        return math.fsum(value * _SCALE for value in values) / len(values) / _SCALE


def loss_of_number(loss: Callable[..., float], y: float, prediction: float, unit: float = 1.0) -> float:
    """Compute a loss of a target and its prediction, the largest float where it overflows.

    - loss: A function of two numbers.
    - y, prediction: The target and its prediction.
    - unit: What both are divided by; 0 counts as 1, the default.

    Examples
    --------
    >>> squared = lambda y, p: (y - p) ** 2
    >>> loss_of_number(squared, 3.0, 1.0), loss_of_number(squared, 3.0, 1.0, 2.0)
    (4.0, 1.0)
    >>> loss_of_number(squared, 1e200, 0.0, 1e-100)
    1.7976931348623157e+308

    """
    unit = unit or 1.0
    try:
        return clamped(float(loss(clamped(clipped(y) / unit), clamped(clipped(prediction) / unit))))
    except ArithmeticError:  # what Python's own floats raise where those of numpy give infinity
        return _MOST
