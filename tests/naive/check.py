"""Twins of inequality (9): its margin and its admissible steps in fractions, without a rounding."""

import math
from fractions import Fraction

import numpy as np

from tests.naive.features import _dot


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


def check_blocks(beta, gbar, gamma, variance, limit):
    """|gbar|^2, and of every block |beta|^2, <beta, gbar> and the longest step."""
    gbar2, blocks = _dot(gbar, gbar), []
    for own in beta:
        beta2, b = _dot(own, own), _dot(own, gbar)
        blocks.append((beta2, b, admissible_step(*roots(beta2, b, gbar2, gamma, variance), gamma, limit)))
    return gbar2, blocks


def check_classes(beta, gbar, gamma, variance, limit):
    """Every class is all there is."""
    steps = np.zeros(beta.shape)
    for o in range(len(gbar)):
        _, blocks = check_blocks(beta[:, o : o + 1], gbar[o : o + 1], gamma, variance, limit)
        steps[:, o] = [step for _, _, step in blocks]
    return steps


def check_margins(beta, gbar, gamma, variance):
    """The margin of every block at s = gamma, -inf where (9) fails."""
    gbar2 = _dot(gbar, gbar)
    held = [margin(_dot(own, own), _dot(own, gbar), gbar2, gamma, variance, gamma) for own in beta]
    return [float(one) if one >= 0 else -math.inf for one in held]


def check_class_margins(beta, gbar, gamma, variance):
    """Every class is all there is: margins, the passing classes' |gbar_c| of every block, and those of all classes."""
    margins = np.zeros(beta.shape)
    for o in range(len(gbar)):
        margins[:, o] = check_margins(beta[:, o : o + 1], gbar[o : o + 1], gamma, variance)
    pulls = [abs(float(one)) for one in gbar]
    shares = [math.fsum(pull for pull, held in zip(pulls, own, strict=True) if held >= 0) for own in margins]
    return margins, shares, math.fsum(pulls)
