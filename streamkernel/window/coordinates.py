"""Which coordinates an iteration of a coordinate method updates: a random block of a partition, or a random subset."""

import abc

import numpy as np

from streamkernel.compute.draws import draw_blocks, draw_subsets
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
