"""The check of CDSG, inequality (9): how far an old block may step and still be as good as a new one.

For a step s > 0 of a block with gradient coefficient beta, at step size gamma:

    2 |beta - s gbar|^2 + 2 s^2 v  <=  |beta|^2 + gamma^2 |gbar|^2

which holds for s- <= s <= s+, the roots (2 b -+ sqrt(4 b^2 - A c)) / A, with A = 2 (|gbar|^2 + v), b = <beta, gbar> and
c = |beta|^2 - gamma^2 |gbar|^2. A step of gamma itself needs no roots, only the margin there.
"""

from typing import Any

import numpy as np

from streamkernel.compute.jit import jit

Array = np.ndarray[Any, np.dtype[Any]]


@jit
def roots(beta2: float, b: float, gbar2: float, gamma: float, variance: float) -> tuple[float, float]:
    """The interval of steps that (9) allows, of |beta|^2, <beta, gbar>, |gbar|^2; (inf, -inf) where it is empty."""
    A = 2 * (gbar2 + variance)
    c = beta2 - gamma**2 * gbar2
    discriminant = 4 * b * b - A * c
    if discriminant >= 0 and A > 0:
        root = np.sqrt(discriminant)
        return (2 * b - root) / A, (2 * b + root) / A
    return np.inf, -np.inf


@jit
def admissible_step(lower: float, upper: float, gamma: float, limit: float) -> float:
    """The longest step within the roots and the limit that exceeds gamma; 0 where there is none."""
    step = min(upper, limit)
    return step if step > gamma and lower <= limit else 0.0


@jit
def margin(beta2: float, b: float, gbar2: float, gamma: float, variance: float, step: float) -> float:
    """By how much (9) holds at a step: its right side minus its left."""
    left = 2 * (beta2 - 2 * step * b + step**2 * gbar2) + 2 * step**2 * variance
    return beta2 + gamma**2 * gbar2 - left


@jit
def check_blocks(
    beta: Array, gbar: Array, gamma: float, variance: float, limit: float, products: Array, steps: Array
) -> Any:
    """The longest admissible step of every block; returns |gbar|^2.

    Parameters
    ----------
    beta
        Gradient coefficients, float64 of shape (blocks, K).
    gbar
        The mean gradient, float64 of shape (K,).
    gamma, variance, limit
        The step size, v, and the longest step allowed.
    products
        Filled; |beta|^2, <beta, gbar>, s- and s+, float64 of shape (4, blocks).
    steps
        Filled; 0 where (9) allows none, float64 of shape (blocks,).
    """
    gbar2 = 0.0
    for o in range(gbar.shape[0]):
        gbar2 += gbar[o] * gbar[o]
    for k in range(beta.shape[0]):
        beta2 = 0.0
        b = 0.0
        for o in range(gbar.shape[0]):
            beta2 += beta[k, o] * beta[k, o]
            b += beta[k, o] * gbar[o]
        lower, upper = roots(beta2, b, gbar2, gamma, variance)
        products[0, k] = beta2
        products[1, k] = b
        products[2, k] = lower
        products[3, k] = upper
        steps[k] = admissible_step(lower, upper, gamma, limit)
    return gbar2


@jit
def check_classes(beta: Array, gbar: Array, gamma: float, variance: float, limit: float, steps: Array) -> None:
    """The same class by class: `steps`, filled, is (blocks, K), as if every class were alone."""
    for k in range(beta.shape[0]):
        for o in range(gbar.shape[0]):
            lower, upper = roots(beta[k, o] ** 2, beta[k, o] * gbar[o], gbar[o] ** 2, gamma, variance)
            steps[k, o] = admissible_step(lower, upper, gamma, limit)


@jit
def check_margins(beta: Array, gbar: Array, gamma: float, variance: float, margins: Array) -> None:
    """The margin of (9) of every block at s = gamma: `margins`, filled, is (blocks,), and -inf where (9) fails."""
    gbar2 = 0.0
    for o in range(gbar.shape[0]):
        gbar2 += gbar[o] * gbar[o]
    for k in range(beta.shape[0]):
        beta2 = 0.0
        b = 0.0
        for o in range(gbar.shape[0]):
            beta2 += beta[k, o] * beta[k, o]
            b += beta[k, o] * gbar[o]
        held = margin(beta2, b, gbar2, gamma, variance, gamma)
        margins[k] = held if held >= 0 else -np.inf


@jit
def check_class_margins(
    beta: Array, gbar: Array, gamma: float, variance: float, margins: Array, shares: Array
) -> float:
    """The same class by class, as if every class were alone; returns sum |gbar_c|.

    Parameters
    ----------
    beta, gbar, gamma, variance
        As for `check_blocks`.
    margins
        Filled; -inf where (9) fails, float64 of shape (blocks, K).
    shares
        Filled; the sum of |gbar_c| over the classes that pass, float64 of shape (blocks,).
    """
    total = 0.0
    for o in range(gbar.shape[0]):
        total += abs(gbar[o])
    for k in range(beta.shape[0]):
        shares[k] = 0.0
        for o in range(gbar.shape[0]):
            held = margin(beta[k, o] ** 2, beta[k, o] * gbar[o], gbar[o] ** 2, gamma, variance, gamma)
            margins[k, o] = held if held >= 0 else -np.inf
            if held >= 0:
                shares[k] += abs(gbar[o])
    return total
