"""Twins of inequality (9): its margin and its admissible steps in fractions, without a rounding."""

import math
from fractions import Fraction


def margin(beta2, b, gbar2, gamma, variance, step):
    """The right side of (9) less its left, without a rounding: |beta - s gbar|^2 is |beta|^2 - 2 s b + s^2 |gbar|^2."""
    beta2, b, gbar2, gamma, variance, step = map(Fraction, (beta2, b, gbar2, gamma, variance, step))
    return beta2 + gamma**2 * gbar2 - 2 * (beta2 - 2 * step * b + step**2 * gbar2) - 2 * step**2 * variance


def roots(beta2, b, gbar2, gamma, variance):
    """The steps between which (9) holds: sought by halves from where it holds by most, in either direction."""
    if gbar2 + variance == 0:
        return math.inf, -math.inf  # nothing pulls: there is no step to make

    def holds(step):
        return margin(beta2, b, gbar2, gamma, variance, step) >= 0

    peak = Fraction(b) / (Fraction(gbar2) + Fraction(variance))  # there the margin, a parabola in s, is level
    if not holds(peak):
        return math.inf, -math.inf
    found = []
    for direction in (-1, 1):
        inside, outside = Fraction(0), Fraction(1)
        while holds(peak + direction * outside):
            inside, outside = outside, 2 * outside
        for _ in range(70):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if holds(peak + direction * middle) else (inside, middle)
        found.append(float(peak + direction * inside))
    return tuple(found)


def admissible_step(lower, upper, gamma, limit):
    """Of an interval's steps up to the limit, the longest is one of these two."""
    return max((step for step in (upper, limit) if lower <= step <= upper and gamma < step <= limit), default=0.0)
