"""Random Fourier features: with independent frequencies, or with stacks of orthogonal ones.

Independent frequencies are a function of (seed, feature, input's name); stacks of Walsh-Hadamard transforms one of
groups of inputs in their order.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkernel.compute.features import SINE, TILE, add_projected, add_scores, paired_features
from streamkernel.compute.gaussians import feature_words
from streamkernel.compute.lanes import LANES
from streamkernel.compute.structured import PART, Groups, draw_norms, structured_features, structured_scores
from streamkernel.fields import state_mismatch, whole
from streamkernel.kernels import FourierKernel
from streamkernel.kernels.base import usable
from streamkernel.kernels.drawing import draw_frequencies
from streamkernel.state import Array, State

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


#: Rows from which on a library's matrix product is worth its call.
MANY = 16
#: Rows that are projected at a time: the turns of a tile stay in the second-level cache.
AT_ONCE = 256


@dataclass(eq=False)
class Drawn:
    """Independent random frequencies, drawn again or from a cache: any number of features of any inputs."""

    kernel: FourierKernel  #: The kernel, which draws the frequencies
    block_size: int  #: F, the frequencies of a block
    dtype: np.dtype[Any]
    cache_bytes: int  #: The most bytes of frequencies cached; others are drawn at each use, a tile for all rows
    seed: int  #: The seed of the frequencies, an unsigned 64-bit number

    def __post_init__(self) -> None:
        self.cache = BlockCache(self.block_size, self.dtype, self.cache_bytes)

    @property
    def nbytes(self) -> int:
        """Bytes of the cached frequencies."""
        return int(self.cache.W.nbytes)

    def add_scores(
        self, X: Array, keys: Array, extra_keys: Array, bandwidth: float, alpha: Array, n_features: int, total: Array
    ) -> None:
        """Add the sum of the first `n_features` times their coefficients to `total`, each row as if it were alone.

        - X: Scaled rows, shape (n, d + e), of the dtype.
        - keys, extra_keys: The keys of the d inputs that stay and of the e met in these rows only, uint64.
        - bandwidth: The length scale in use, in units of the scaled inputs.
        - alpha: Coefficients of the cosines and of the sines, shape (K, 2, at least n_features).
        - n_features: Frequencies to be added.
        - total: float64 of shape (n, K).
        """
        sine = SINE[self.dtype]
        n_cached = 0
        X = self.kernel.transform(X)
        if len(extra_keys):
            keys = np.concatenate([keys, extra_keys])
        else:
            n_cached = self._cached(keys, bandwidth, n_features)
            if n_cached:
                add_scores(X, self.cache.W, alpha, 0, n_cached, sine, total)
        for first in range(n_cached, n_features, TILE):
            n = min(TILE, n_features - first)
            add_scores(X, self._draw(first, first + n, keys, bandwidth), alpha, first, n, sine, total)

    def add_many(
        self, X: Array, keys: Array, extra_keys: Array, bandwidth: float, alpha: Array, n_features: int, total: Array
    ) -> None:
        """Add the same as `add_scores`, to rounding and faster for many rows: BLAS projects them at once."""
        if len(X) < MANY:
            self.add_scores(X, keys, extra_keys, bandwidth, alpha, n_features, total)
            return
        X = self.kernel.transform(X)
        keys = np.concatenate([keys, extra_keys])
        n_cached = 0 if len(extra_keys) else self._cached(keys, bandwidth, n_features)
        for first in range(0, n_features, TILE):
            last = min(first + TILE, n_features)
            cached = first < n_cached
            W = self.cache.W[: len(keys), first:last] if cached else self._draw(first, last, keys, bandwidth)
            for start in range(0, len(X), AT_ONCE):
                rows = slice(start, start + AT_ONCE)
                add_projected(X[rows] @ W, alpha, first, SINE[self.dtype], total[rows])

    def features(self, block: int, X: Array, keys: Array, bandwidth: float, out: Array) -> None:
        """Fill `out`, shape (n, 2 F), with the features phi of a block: cosines, then sines, times F^-1/2."""
        first = block * self.block_size
        X = self.kernel.transform(X)
        if block < self._fill(keys, bandwidth, block + 1):
            paired_features(X, self.cache.W, first, SINE[self.dtype], out)
        else:
            paired_features(X, self._draw(first, first + self.block_size, keys, bandwidth), 0, SINE[self.dtype], out)

    def cached(self, keys: Array, bandwidth: float, n_blocks: int) -> Array | None:
        """Frequencies of at least the first blocks, shape (d or more, n_blocks F or more); None if not all fit."""
        return self.cache.W if self._fill(keys, bandwidth, n_blocks) >= n_blocks else None

    def _cached(self, keys: Array, bandwidth: float, n_features: int) -> int:
        """The number of features in the cache, a multiple of tiles: so the sums are the same whatever is cached."""
        n = self._fill(keys, bandwidth, n_features // self.block_size + 1) * self.block_size
        return n_features if n >= n_features else n - n % TILE

    def _fill(self, keys: Array, bandwidth: float, n_blocks: int) -> int:
        F = self.block_size
        return self.cache.fill(
            keys, n_blocks, lambda first, last, keys: self._draw(first * F, last * F, keys, bandwidth)
        )

    def _draw(self, first: int, last: int, keys: Array, bandwidth: float) -> Array:
        """Frequencies in turns of the features from `first` to before `last`, shape (d, last - first)."""
        words = np.empty(last - first, np.uint64)
        feature_words(np.uint64(self.seed), first, words)
        out = np.empty((len(keys), len(words)), self.dtype)
        draw_frequencies(self.kernel, words, keys, bandwidth, out)
        return out


#: Sizes of groups of inputs.
SMALLEST, LARGEST = 32, 4096

_SINE = SINE[np.dtype("float32")]
# Groups grow to 4,096 inputs, so that there are never as many.
_NO_NORMS = np.zeros((4096, 0), np.float32)


class Stacks:
    """Structured orthogonal random frequencies in float32, drawn whenever they are used.

    The first group holds the inputs of the first rows, and some more up to a power of two; those that come later begin
    another group, as large as all before, up to 4,096. Earlier features never change by it.

    - block_size: F, the frequencies of a block.
    - cache_bytes: The most bytes of norms cached; those of other features are drawn whenever they are used.
    - seed: The seed of the frequencies, an unsigned 64-bit number.
    - first_size: Inputs of the first group; 0 before it is chosen.
    """

    def __init__(self, block_size: int, cache_bytes: int, seed: int) -> None:
        self.block_size = block_size
        self.cache_bytes = cache_bytes
        self.seed = np.uint64(seed)
        self.first_size = 0
        self._norms = np.zeros((0, 0), np.float32)

    @property
    def nbytes(self) -> int:
        """Bytes of the cached norms."""
        return int(self._norms.nbytes)

    def begin(self, X: Array) -> None:
        """Fix the size of the first group by the last column of X, shape (n, d), that is not 0 in all rows."""
        if not self.first_size:
            occupied = np.flatnonzero(X.any(axis=0))
            n = int(occupied[-1]) + 1 if len(occupied) else 1
            self.first_size = min(max(1 << (n - 1).bit_length(), SMALLEST), LARGEST)

    def groups(self, n_inputs: int) -> Groups:
        """The first columns and sizes of the groups of the first `n_inputs` inputs."""
        starts, sizes = [0], [self.first_size]
        while starts[-1] + sizes[-1] < n_inputs:
            starts.append(starts[-1] + sizes[-1])
            sizes.append(min(starts[-1], LARGEST))
        return Groups(np.array(starts), np.array(sizes))

    def add_scores(
        self,
        X: Array,
        keys: Array,  # noqa: ARG002 - as `Drawn` has it, which finds inputs by their keys
        extra_keys: Array,
        bandwidth: float,
        alpha: Array,
        n_features: int,
        total: Array,
    ) -> None:
        """Add the sum of the first `n_features` times their coefficients to `total`, each row as if it were alone.

        Arguments are those of `Drawn.add_scores`; the columns of X are in the order of `Rows.in_order`.
        """
        groups = self.groups(X.shape[1])
        scale, width = _turns(bandwidth), _width(groups)
        # What only these rows bring may ask for one group more: that is no reason to drop what is kept.
        norms = _NO_NORMS[: len(groups.starts)] if len(extra_keys) else self._cached(groups, scale, n_features)
        structured_scores(X, groups, self.seed, scale, norms, width, alpha, n_features, _SINE, total)

    #: There is nothing faster for many rows.
    add_many = add_scores

    def features(self, block: int, X: Array, keys: Array, bandwidth: float, out: Array) -> None:
        """Fill `out`, shape (n, 2 F), with the features phi of a block: cosines, then sines, times F^-1/2."""
        groups = self.groups(len(keys))
        first, scale = block * self.block_size, _turns(bandwidth)
        norms = self._cached(groups, scale, 0)
        structured_features(X, groups, self.seed, scale, norms, _width(groups), first, _SINE, out)

    def state(self) -> State:
        """The fields of the state."""
        return {"first_group": self.first_size}

    def load_state(self, state: State) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        self.first_size = whole(state, "first_group", most=LARGEST)
        if self.first_size and (self.first_size < SMALLEST or self.first_size.bit_count() > 1):
            raise state_mismatch("first_group")

    def _cached(self, groups: Groups, scale: float, n_features: int) -> Array:
        """The cached norms, (groups, m), m a multiple of the width and at least `n_features` if there is room."""
        n_groups, width = len(groups.starts), _width(groups)
        if len(self._norms) != n_groups:
            self._norms = np.zeros((n_groups, 0), np.float32)
        n_kept = self._norms.shape[1]
        room = self.cache_bytes // (4 * n_groups * width) * width
        if n_kept < min(n_features, room):
            # By half, so that new blocks seldom draw.
            n_wanted = min(-(-max(n_features, n_kept * 3 // 2) // width) * width, room)
            rest = np.empty((n_groups, n_wanted - n_kept), np.float32)
            draw_norms(groups, self.seed, scale, n_kept, rest)
            self._norms = np.concatenate([self._norms, rest], axis=1)
        return self._norms


def _turns(bandwidth: float) -> float:
    return 1 / (2 * math.pi * usable(bandwidth))


def _width(groups: Groups) -> int:
    return max(LANES * int(groups.sizes.max()), PART)
