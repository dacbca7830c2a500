"""The check of CDSG, inequality (9): how far an old block may step and still be as good as a new one.

For a step s > 0 of a block with gradient coefficient beta, at step size gamma:

    2 |beta - s gbar|^2 + 2 s^2 v  <=  |beta|^2 + gamma^2 |gbar|^2

which holds for s- <= s <= s+, the roots (2 b -+ sqrt(4 b^2 - A c)) / A, with A = 2 (|gbar|^2 + v), b = <beta, gbar> and
c = |beta|^2 - gamma^2 |gbar|^2.
"""

import numpy as np

from streamkernel.state import Array


def roots(beta2: Array, b: Array, gbar2: float | Array, gamma: float, variance: float) -> tuple[Array, Array]:
    """The interval of steps that (9) allows; (inf, -inf) where it is empty.

    Parameters
    ----------
    beta2
        |beta|^2 of every block.
    b
        <beta, gbar> of every block.
    gbar2
        |gbar|^2.
    gamma
        The step size.
    variance
        v.

    """
    A = 2 * (gbar2 + variance)
    c = beta2 - gamma**2 * gbar2
    discriminant = 4 * b * b - A * c
    some = (discriminant >= 0) & (A > 0)
    root = np.sqrt(np.where(some, discriminant, 0.0))
    denominator = np.where(A > 0, A, 1.0)
    lower = np.where(some, (2 * b - root) / denominator, np.inf)
    upper = np.where(some, (2 * b + root) / denominator, -np.inf)
    return lower, upper


def admissible_step(lower: Array, upper: Array, gamma: float, limit: float) -> Array:
    """The longest step within the roots and the limit that exceeds gamma; 0 where there is none."""
    step = np.minimum(upper, limit)
    return np.asarray(np.where((step > gamma) & (lower <= limit), step, 0.0))


def margin(beta2: Array, b: Array, gbar2: float | Array, gamma: float, variance: float, step: float | Array) -> Array:
    """By how much (9) holds at a step: its right side minus its left."""
    left = 2 * (beta2 - 2 * step * b + step**2 * gbar2) + 2 * step**2 * variance
    return np.asarray(beta2 + gamma**2 * gbar2 - left)
