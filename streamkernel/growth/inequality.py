"""The check of CDSG, inequality (9): how far an old block may step and still be as good as a new one.

For a step s > 0 of a block with gradient coefficient beta, at step size gamma:

    2 |beta - s gbar|^2 + 2 s^2 v  <=  |beta|^2 + gamma^2 |gbar|^2

It holds for s- <= s <= s+, the roots (2 b -+ sqrt(4 b^2 - A c)) / A, with A = 2 (|gbar|^2 + v), b = <beta, gbar> and
c = |beta|^2 - gamma^2 |gbar|^2. A step of gamma itself needs no roots, only the margin there.
"""

from typing import Any, NamedTuple

import numpy as np

from streamkernel.compute.check import margin_of
from streamkernel.state import Array

__all__ = ["BlockTerms", "admissible_steps", "in_order"]


def in_order(values: Array) -> Any:
    """The sums over the last axis, one number after the other: numpy's own sums depend on how many there are."""
    return values[..., 0] if values.shape[-1] == 1 else np.add.accumulate(values, axis=-1)[..., -1]


class BlockTerms(NamedTuple):
    """The terms of (9) for several blocks, or for each of their classes as if it were alone."""

    beta2: Array  #: |beta|^2, <beta, gbar> and |gbar|^2, float64; the last one fits the shape of the others
    b: Array
    gbar2: Any
    gamma: float  #: The step size, and v
    variance: float

    @classmethod
    def of_blocks(cls, beta: Array, gbar: Array, gamma: float, variance: float) -> "BlockTerms":
        """The terms of blocks, of beta (blocks, K) and gbar (K,)."""
        return cls(in_order(beta * beta), in_order(beta * gbar), in_order(gbar * gbar), gamma, variance)

    @classmethod
    def of_classes(cls, beta: Array, gbar: Array, gamma: float, variance: float) -> "BlockTerms":
        """The terms of all classes of blocks, each (blocks, K)."""
        return cls(beta * beta, beta * gbar, gbar * gbar, gamma, variance)

    def roots(self) -> tuple[Array, Array]:
        """The intervals of steps that (9) allows; from inf to -inf where there are none.

        Examples
        --------
        >>> BlockTerms.of_blocks(np.array([[1.0], [4.0]]), np.ones(1), 1.0, 3.0).roots()
        (array([ 0., inf]), array([ 0.5, -inf]))

        """
        with np.errstate(divide="ignore", invalid="ignore"):
            A = 2 * (self.gbar2 + self.variance)
            c = self.beta2 - self.gamma**2 * self.gbar2
            discriminant = 4 * self.b * self.b - A * c
            holds = (discriminant >= 0) & (A > 0)
            root = np.sqrt(discriminant)
            return np.where(holds, (2 * self.b - root) / A, np.inf), np.where(holds, (2 * self.b + root) / A, -np.inf)

    def margins(self, steps: Any) -> Array:
        """By how much (9) holds at steps; -inf where it does not.

        Examples
        --------
        >>> BlockTerms.of_blocks(np.array([[1.0], [4.0]]), np.ones(1), 1.0, 0.0).margins(1.0)
        array([  2., -inf])

        """
        held = margin_of(*self, steps)
        return np.where(held >= 0, held, -np.inf)


def admissible_steps(lower: Any, upper: Any, gamma: float, limit: float) -> Array:
    """The longest steps within roots and a limit that exceed gamma; 0 where there are none.

    Examples
    --------
    >>> admissible_steps(np.array([0.0, 0.0, 3.0]), np.array([2.0, 0.5, 4.0]), 1.0, 1.5)
    array([1.5, 0. , 0. ])

    """
    steps = np.minimum(upper, limit)
    return np.where((steps > gamma) & (lower <= limit), steps, 0.0)
