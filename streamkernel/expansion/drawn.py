"""Random Fourier features with independent frequencies, each a function of (seed, feature, input's name)."""

from typing import Any

import numpy as np

from streamkernel.compute.features import SINE, TILE, add_projected, add_scores, paired_features
from streamkernel.compute.gaussians import feature_words
from streamkernel.expansion.blockcache import BlockCache
from streamkernel.kernels import FourierKernel
from streamkernel.kernels.drawing import draw_frequencies
from streamkernel.state import Array

#: Rows from which on a library's matrix product is worth its call.
MANY = 16
#: Rows that are projected at a time: the turns of a tile stay in the second-level cache.
AT_ONCE = 256


class Drawn:
    """Independent random frequencies, drawn again or from a cache: any number of features of any inputs.

    - kernel: The kernel, which draws the frequencies.
    - block_size: F, the frequencies of a block.
    - cache_bytes: The most bytes of frequencies cached; others are drawn whenever they are used, a tile for all rows of
      the call.
    - seed: The seed of the frequencies, an unsigned 64-bit number.

    References
    ----------
    [^1]: Rahimi and Recht, "Random features for large-scale kernel machines", 2007, section 3.
    [^2]: Dai et al., "Scalable kernel methods via doubly stochastic gradients", 2014, section 3: drawn by seed.

    """

    def __init__(
        self, kernel: FourierKernel, block_size: int, dtype: np.dtype[Any], cache_bytes: int, seed: int
    ) -> None:
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
