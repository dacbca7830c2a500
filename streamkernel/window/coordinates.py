"""Which coordinates an iteration of DSPDC updates, a random block or a random subset, and its step sizes.

The step sizes follow from the scale constant Lambda of the data.
"""

import abc
import math
from typing import NamedTuple

import numpy as np

from streamkernel.compute.gaussians import draw_blocks, draw_subsets
from streamkernel.compute.primal_dual import Choices
from streamkernel.state import Array


class Coordinates(abc.ABC):
    """A random choice of some of n coordinates, each as likely as any other.

    - n: Coordinates.
    - size: Coordinates in a choice, at most.
    - ratio: One over the probability with which a coordinate is chosen.
    """

    n: int
    size: int
    ratio: float

    @abc.abstractmethod
    def draw(self, count: int) -> Choices:
        """Choices of `count` iterations, as compiled iterations take them."""

    @abc.abstractmethod
    def sums(self, values: Array) -> Array:
        """The sum of each choice, or the largest of all, of values of shape (..., n); shape (..., number of sums)."""


class Blocks(Coordinates):
    """Blocks of a random partition, drawn at the start; sizes differ by one at most.

    - n: Coordinates.
    - size: Of the largest block.
    - word: Of the random numbers.

    Examples
    --------
    >>> import numpy as np
    >>> blocks = Blocks(n=6, size=3, word=1)
    >>> order, starts, chosen = blocks.draw(4)
    >>> order, starts
    (array([3, 4, 5, 0, 1, 2]), array([0, 3, 6]))
    >>> chosen
    array([1, 1, 0, 1])

    """

    def __init__(self, n: int, size: int, word: int) -> None:
        self.n, self.size = n, size
        self._state = np.array([word], np.uint64)
        count = -(-n // size)
        self.ratio = float(count)
        self.starts = np.arange(count + 1) * n // count
        self.order = np.arange(n)
        if 1 < count < n:
            permuted = np.empty((1, n), np.int64)
            draw_subsets(self._state, self.order, permuted)
            # Ascending within a block, as memory is read.
            self.order = np.concatenate([np.sort(block) for block in np.split(permuted[0], self.starts[1:-1])])

    def draw(self, count: int) -> Choices:
        chosen = np.empty(count, np.int64)
        draw_blocks(self._state, len(self.starts) - 1, chosen)
        return self.order, self.starts, chosen

    def sums(self, values: Array) -> Array:
        return np.asarray(np.add.reduceat(values[..., self.order], self.starts[:-1], axis=-1))


class Subsets(Coordinates):
    """Random subsets, each drawn again.

    - n: Coordinates.
    - size: Of each subset.
    - word: Of the random numbers.
    """

    def __init__(self, n: int, size: int, word: int) -> None:
        self.n, self.size = n, size
        self.ratio = n / size
        self._state = np.array([word], np.uint64)
        self._pool = np.arange(n)

    def draw(self, count: int) -> Choices:
        order = np.empty((count, self.size), np.int64)
        draw_subsets(self._state, self._pool, order)
        return order.ravel(), np.arange(count + 1) * self.size, np.arange(count)

    def sums(self, values: Array) -> Array:
        largest = np.partition(values, self.n - self.size, axis=-1)[..., self.n - self.size :]
        return np.asarray(largest.sum(axis=-1, keepdims=True))


class StepSizes(NamedTuple):
    """tau, sigma and theta of one solve, and the factor by which an iteration shrinks what the theorem bounds."""

    tau: float  #: primal step size
    sigma: float  #: dual step size; a record's own problem has the step sigma / n
    theta: float  #: extrapolation: xbar = x_old + (theta + 1) (x - x_old)
    factor: float  #: of an iteration, in expectation, where Lambda is at least the data's


def rule_of_thumb(n: int, dual_ratio: float, primal_ratio: float, largest_row: float) -> float:
    """Lambda = m q max_i |a_i|^2 / p, as large as the part of a row that an iteration works on is on average.

    - n: Records.
    - dual_ratio, primal_ratio: n / m and p / q, at least 1.
    - largest_row: The largest squared norm of a row of A.

    Examples
    --------
    >>> rule_of_thumb(n=1000, dual_ratio=500, primal_ratio=4, largest_row=2.0)
    1.0

    """
    return n / dual_ratio / primal_ratio * largest_row


def step_sizes(
    n: int,
    dual_ratio: float,
    primal_ratio: float,
    scale: float,
    strong_convexity: float,
    gamma: float,
    bounds_gap: bool = False,
) -> StepSizes:
    """Return tau, sigma and theta of the paper's Theorem 1, or of its Theorem 2.

    They satisfy tau sigma = n m q / (4 p Lambda).

    - n: Records, or dual blocks.
    - dual_ratio: n / m: one over the probability with which an iteration updates a dual coordinate, at least 1.
    - primal_ratio: p / q, likewise.
    - scale: Lambda > 0, which is to be no less than the largest squared spectral norm of the part of A that an
      iteration works on.
    - strong_convexity: lambda > 0 of every g_j: l2, of l2 x^2 / 2 + l1 abs(x).
    - gamma: > 0: the losses are (1 / gamma)-smooth.
    - bounds_gap: Whether theta is that of Theorem 2 (18), which bounds the primal-dual gap; Theorem 1 bounds the
      distance to the optimum. Defaults to False.

    Examples
    --------
    >>> n, m, p, q, Lambda = 100, 2, 30, 5, 3.0
    >>> steps = step_sizes(n, n / m, p / q, Lambda, strong_convexity=0.01, gamma=1.0)
    >>> round(steps.tau * steps.sigma / (n * m * q / (4 * p * Lambda)), 12)
    1.0
    >>> round(steps.factor, 4)
    0.9982

    """
    root = dual_ratio * primal_ratio * math.sqrt(scale / (strong_convexity * gamma * n))
    difference = dual_ratio - primal_ratio
    spread = math.hypot(difference, 2 * root)
    # What both ratios' difference is subtracted from is computed without that subtraction, which would cancel digits.
    larger = spread + abs(difference)
    smaller = 4 * root * root / larger
    iterations = max(dual_ratio, primal_ratio) + root
    if bounds_gap:
        iterations *= 2
    return StepSizes(
        tau=primal_ratio / strong_convexity / (larger if difference >= 0 else smaller),
        sigma=n * dual_ratio / gamma / (smaller if difference >= 0 else larger),
        theta=primal_ratio - primal_ratio / iterations,
        factor=1 - 1 / iterations,
    )
