"""Checks of the arguments of kernels, with their error messages."""

from typing import TypeGuard

from streamkernel.arguments import is_finite_number
from streamkernel.state import excerpt

#: Frequencies in float32 times inputs of any allowed size are finite for bandwidths between these.
SMALLEST_BANDWIDTH = 1e-15
LARGEST_BANDWIDTH = 1e18


def require_bandwidth(bandwidth: object) -> None:
    """Refuse a length scale that is neither a positive finite number nor None, by a ValueError."""
    if bandwidth is not None and not (is_finite_number(bandwidth) and bandwidth > 0):
        raise ValueError(f"bandwidth must be a positive number or None, got {excerpt(bandwidth)}")


def require_positive(
    name: str, value: object, least: float = SMALLEST_BANDWIDTH, most: float = LARGEST_BANDWIDTH
) -> None:
    """Refuse an argument that is not a number above 0, from `least` to `most`, by a ValueError."""
    if not (is_finite_number(value) and least <= value <= most):
        raise ValueError(
            f"{name} must be a number above 0 and at most {most:g}, {least:g} at least, got {excerpt(value)}"
        )


def is_coefficient(value: object) -> TypeGuard[float]:
    """Whether an argument is a number from 0 to `LARGEST_BANDWIDTH`."""
    return is_finite_number(value) and 0 <= value <= LARGEST_BANDWIDTH


def usable(bandwidth: float) -> float:
    """The bandwidth, clipped to the range in which frequencies and kernel are finite in float32."""
    return min(max(bandwidth, SMALLEST_BANDWIDTH), LARGEST_BANDWIDTH)
