"""The arguments of kernels: which are allowed, and the sentences that refuse others."""

import math
from typing import TypeGuard

import numpy as np

#: Frequencies in float32 times inputs of any allowed size are finite for bandwidths between these.
SMALLEST_BANDWIDTH = 1e-15
LARGEST_BANDWIDTH = 1e18


def is_number(value: object) -> TypeGuard[float]:
    """Whether an argument is a number, and no boolean."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def require_bandwidth(bandwidth: object) -> None:
    """Refuse a length scale that is neither a positive finite number nor None, by a ValueError."""
    if bandwidth is not None and not (is_number(bandwidth) and 0 < bandwidth < math.inf):
        raise ValueError(f"bandwidth must be a positive number or None, got {bandwidth!r}")


def require_positive(name: str, value: object, most: float = LARGEST_BANDWIDTH) -> None:
    """Refuse an argument that is not a positive number of at most `most`, by a ValueError."""
    if not (is_number(value) and 0 < value <= most):
        raise ValueError(f"{name} must be a number above 0 and at most {most:g}, got {value!r}")


def usable(bandwidth: float) -> float:
    """The bandwidth, clipped to the range in which frequencies and kernel are finite in float32."""
    return min(max(bandwidth, SMALLEST_BANDWIDTH), LARGEST_BANDWIDTH)
