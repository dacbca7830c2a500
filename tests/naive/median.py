"""Twins of the shift that makes a median of a mean."""

import math

import numpy as np


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
