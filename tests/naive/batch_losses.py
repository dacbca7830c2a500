"""Plain twins of what a batch step asks of losses: derivatives of one number, and what is learned beside scores."""

import math

import numpy as np

from tests.naive.softmax import softmax_into


def squared(y, f):
    return [2 * (f[0] - y)]


def huber(y, f, epsilon=1.0):
    return [min(max(f[0] - y, -epsilon), epsilon)]


def quantile(y, f, alpha=0.9):
    return [-alpha if f[0] < y else 1 - alpha]


def hinge(y, f):
    sign = 1 if y else -1
    return [-sign if sign * f[0] <= 1 else 0]


def softmax(y, f):
    return softmax_into(f, 1.0) - np.eye(len(f))[int(y)]


class Plain:
    """A loss with nothing to learn beside the scores."""

    def __init__(self, derivative):
        self.derivative = derivative

    def observe(self, ys, F, w):
        pass

    def take_slope(self, step, F, w):
        pass


class Threshold:
    """The threshold of novelty detection: max(0, tau - f) - nu tau."""

    def __init__(self, nu):
        self.nu, self.tau, self.flagged = nu, 0.0, 0

    def derivative(self, _y, f):
        return [-1.0 if f[0] < self.tau else 0.0]

    def observe(self, _ys, F, _w):
        self.flagged += sum(f[0] < self.tau for f in F)

    def take_slope(self, step, F, w):
        slopes = [w_i * ((f[0] < self.tau) - self.nu) for f, w_i in zip(F, w, strict=True)]
        self.tau -= step * sum(slopes) / len(slopes)


class Ratio:
    """Two samples, each record by 1 over the share of its own, and the means of exp f over q and of f over p."""

    def __init__(self, clip, window):
        self.clip, self.memory = clip, 1 - 1 / window
        self.counts, self.sizes, self.means = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]

    def derivative(self, y, f):
        slope = (-1.0 if f[0] < self.clip else 0.0) if y else math.exp(min(f[0], self.clip))
        return [slope / ((self.counts[int(y)] + 1) / (sum(self.counts) + 2))]

    def observe(self, ys, F, w):
        self.counts = [count * self.memory ** len(ys) for count in self.counts]
        for side in (0, 1):
            own = [
                (min(max(f[0], -self.clip), self.clip), w_i) for y, f, w_i in zip(ys, F, w, strict=True) if y == side
            ]
            total = sum(w_i for _, w_i in own)
            self.counts[side] += total
            if total:
                before = self.sizes[side] * self.memory ** len(own)
                values = [(f if side else math.exp(f)) * w_i for f, w_i in own]
                self.means[side] = (before * self.means[side] + sum(values)) / (before + total)
                self.sizes[side] = before + total

    def take_slope(self, step, F, w):
        pass
