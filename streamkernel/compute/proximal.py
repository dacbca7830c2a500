"""The elastic net l2/2 x^2 + l1 |x| of one coefficient: its proximal step and its conjugate."""

from typing import Any

from streamkernel.compute.jit import jit


@jit
def soft_threshold(v: float, by: float) -> Any:
    """The number moved towards 0 by `by`, and no farther than 0."""
    if v > by:
        return v - by
    if v < -by:
        return v + by
    return 0.0


@jit
def elastic_net_step(v: float, step: float, l2: float, l1: float) -> Any:
    """The minimizer over x of l2/2 x^2 + l1 |x| + (x - v)^2 / (2 step)."""
    return soft_threshold(v, step * l1) / (1.0 + step * l2)


@jit
def elastic_net_conjugate(s: float, l2: float, l1: float) -> Any:
    """sup_x (s x - l2/2 x^2 - l1 |x|), of l2 > 0."""
    excess = soft_threshold(s, l1)
    return 0.5 * excess * excess / l2
