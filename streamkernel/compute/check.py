"""The margin of inequality (9); the rest of the inequality is in `growth.inequality`."""

from typing import Any

from streamkernel.compute.jit import jit


def margin_of(beta2: Any, b: Any, gbar2: Any, gamma: float, variance: float, step: Any) -> Any:
    """By how much (9) holds at a step: its right side minus its left, of |beta|^2, <beta, gbar>, |gbar|^2."""
    left = 2 * (beta2 - 2 * step * b + step**2 * gbar2) + 2 * step**2 * variance
    return beta2 + gamma**2 * gbar2 - left


#: The same, compiled.
margin = jit(margin_of)
