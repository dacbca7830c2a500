"""A cache of drawn frequencies within a budget of bytes: the first blocks, for the inputs seen so far."""

from collections.abc import Callable
from typing import Any

import numpy as np

from streamkernel.state import Array

#: Features drawn at a time.
_AT_ONCE = 2048


class BlockCache:
    """A cache of the frequencies of blocks 0, 1, ..., as many as fit into a budget.

    - block_size: F, the frequencies of a block.
    - budget: The most bytes it may take.
    - n_blocks: Blocks it holds.
    - W: Their frequencies in turns, shape (at least d, at least n_blocks F).
    """

    def __init__(self, block_size: int, dtype: np.dtype[Any], budget: int) -> None:
        self.block_size = block_size
        self.budget = budget
        self.n_blocks = 0
        self.W = np.zeros((0, 0), dtype)
        self._keys = np.zeros(0, np.uint64)

    def fill(self, keys: Array, n_blocks: int, draw: Callable[[int, int, Array], Array]) -> int:
        """Draw what is missing of the first `n_blocks` blocks, and return how many of them the cache holds.

        - keys: The inputs' keys, uint64 of shape (d,).
        - n_blocks: Blocks wanted; as many as fit are drawn.
        - draw: `draw(first, last, keys)` gives their frequencies, shape (d, (last - first) F).
        """
        if keys is self._keys and n_blocks <= self.n_blocks:
            return self.n_blocks
        known = len(self._keys)
        if not np.array_equal(keys[:known], self._keys):  # columns were taken back
            known = self.n_blocks = 0
        self._reserve(len(keys), n_blocks)
        wanted = min(n_blocks, self.W.shape[1] // self.block_size)
        kept = min(self.n_blocks, wanted)
        if len(keys) > known:
            self._draw(0, kept, slice(known, len(keys)), keys, draw)
        self._draw(kept, wanted, slice(len(keys)), keys, draw)
        self._keys = keys
        self.n_blocks = int(wanted)
        return self.n_blocks

    def _draw(self, first: int, last: int, rows: slice, keys: Array, draw: Callable[[int, int, Array], Array]) -> None:
        """Fill some blocks for some inputs, a part at a time: until it is copied, what is drawn takes memory twice."""
        F = self.block_size
        step = max(_AT_ONCE // F, 1)
        for start in range(first, last, step):
            stop = min(start + step, last)
            self.W[rows, start * F : stop * F] = draw(start, stop, keys[rows])

    def _reserve(self, n_inputs: int, n_blocks: int) -> None:
        """Make room, within the budget; rows grow by half and blocks double, so that new ones seldom copy."""
        rows, columns = self.W.shape
        if n_inputs > rows:
            rows = max(n_inputs, rows + rows // 2)
        width = self.block_size * self.W.itemsize * max(rows, 1)
        fitting = self.budget // width
        blocks = columns // self.block_size
        if min(n_blocks, fitting) > blocks:
            blocks = max(n_blocks, 2 * blocks)
        blocks = min(blocks, fitting)
        if (rows, blocks * self.block_size) != self.W.shape:
            larger = np.zeros((rows, blocks * self.block_size), self.W.dtype)
            self.n_blocks = min(self.n_blocks, blocks)
            both = (slice(min(rows, self.W.shape[0])), slice(self.n_blocks * self.block_size))
            larger[both] = self.W[both]
            self.W = larger
