"""Frequencies drawn one by one: each a function of (seed, feature, input's name), kept while there is room for them."""

from typing import Any

import numpy as np

from streamkernel.compute.features import SINE, TILE, add_projected, add_scores, paired_features
from streamkernel.compute.gaussians import feature_words
from streamkernel.expansion.blockcache import BlockCache
from streamkernel.kernels import Kernel
from streamkernel.state import Array

#: Rows from which on a library's matrix product is worth its call.
MANY = 16
#: Rows that are projected at a time: the turns of a tile stay in the second-level cache.
AT_ONCE = 256


class Drawn:
    """Frequencies of the features from 0 on, for any inputs.

    Parameters
    ----------
    kernel
        Draws them.
    block_size
        F, the frequencies of a block.
    dtype
        float32 or float64.
    cache_bytes
        Drawn frequencies kept, in bytes; beyond them a tile is drawn whenever it is used, for all rows of the call.
    seed
        The stream of frequencies.

    """

    def __init__(self, kernel: Kernel, block_size: int, dtype: np.dtype[Any], cache_bytes: int, seed: int) -> None:
        self.kernel = kernel
        self.block_size = block_size
        self.dtype = dtype
        self.seed = seed
        self.cache = BlockCache(block_size, dtype, cache_bytes)

    @property
    def nbytes(self) -> int:
        """Bytes of the cached frequencies."""
        return int(self.cache.W.nbytes)

    def add_scores(
        self, X: Array, keys: Array, extra_keys: Array, bandwidth: float, alpha: Array, n_features: int, total: Array
    ) -> None:
        """Add what the first `n_features` say of rows (n, d + e) to `total`: every row has the bits it has alone."""
        sine = SINE[self.dtype]
        n_cached = 0
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
        """The same to rounding, and faster for many rows: a library projects them at once."""
        if len(X) < MANY:
            self.add_scores(X, keys, extra_keys, bandwidth, alpha, n_features, total)
            return
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
        """Fill `out` (n, 2 F) with phi of a block."""
        first = block * self.block_size
        if block < self._fill(keys, bandwidth, block + 1):
            paired_features(X, self.cache.W, first, SINE[self.dtype], out)
        else:
            paired_features(X, self._draw(first, first + self.block_size, keys, bandwidth), 0, SINE[self.dtype], out)

    def _cached(self, keys: Array, bandwidth: float, n_features: int) -> int:
        """How many of the features are in the cache: whole tiles, so that the sums are the same whatever is cached."""
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
        self.kernel.frequencies(words, keys, bandwidth, out)
        return out
