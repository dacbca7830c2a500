"""Plain twins of `streamkernel.compute.number_pass`."""

import math

import numpy as np

from tests.naive.moments import TARGETS, Moments, take_target


class Asinh:
    """Targets since heads began, their moments on the scale of asinh, and the first magnitudes, at most 128."""

    def __init__(self):
        self.moments, self.magnitudes, self.targets = Moments(TARGETS), [], []

    @property
    def c(self):
        return magnitude_of(self.magnitudes)

    @property
    def bounds(self):
        return [min(self.targets), max(self.targets)] if self.targets else [0.0, 0.0]

    @property
    def numbers(self):
        """As the kernels hold them: moments, magnitudes, bounds."""
        kept = sorted(self.magnitudes)
        return self.moments.numbers, [len(kept), *kept, *[0.0] * (128 - len(kept))], self.bounds


def magnitude_of(magnitudes):
    """The upper median."""
    return max(sorted(magnitudes)[len(magnitudes) // 2], 1e-200) if magnitudes else 1.0


def keep_magnitude(asinh, y):
    if y and len(asinh.magnitudes) < 128:
        asinh.magnitudes.append(abs(y))


def from_asinh(asinh, score, margin):
    scaled = asinh.moments.mean + asinh.moments.deviation * score
    y = asinh.c * math.sinh(scaled) if abs(scaled) < 700 else math.copysign(math.inf, scaled)
    low, high = asinh.bounds
    return float(np.clip(y, low - margin, high + margin))


def take_asinh(asinh, y):
    asinh.targets.append(y)
    return take_target(asinh.moments, math.asinh(y / asinh.c))[0]


def forget_asinh(asinh):
    asinh.__init__()


def take_all_asinh(targets, sample_weights, asinh):
    return [take_asinh(asinh, y) if weight > 0 else 0.0 for y, weight in zip(targets, sample_weights, strict=True)]


def at_median(median, prediction):
    shift, _, plain, shifted = median
    return prediction + shift / (1 + math.exp(2 * (shifted - plain)))


def follow_median(median, error, unit, worst):
    shift, spread, plain, shifted = median
    losses = [min(abs(e) / unit, worst) for e in (error, error - shift)]
    plain, shifted = (
        0.998 * sum_ + 0.4 * e / (np.mean(losses) + 0.05) for sum_, e in zip((plain, shifted), losses, strict=True)
    )
    spread = 0.99 * spread + 0.01 * abs(error)
    return [shift + 0.01 * spread * np.sign(error - shift), spread, plain, shifted]


def keep_residual(errors, error):
    errors.append(error)


def ring(errors):
    """As the kernel holds them."""
    numbers = [len(errors)] + [0.0] * 500
    for i, error in enumerate(errors):
        numbers[1 + i % 500] = error
    return numbers
