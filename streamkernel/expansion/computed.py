"""Random features of any kernel, as its method `features` computes them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkernel.compute.features import TILE
from streamkernel.compute.gaussians import feature_words
from streamkernel.compute.random_features import add_parts
from streamkernel.kernels import Kernel
from streamkernel.kernels.drawing import compute_features
from streamkernel.state import Array

#: Rows whose features are computed at a time: those of a tile stay in the second-level cache.
AT_ONCE = 256


@dataclass(eq=False)
class Computed:
    """Random features that a kernel computes itself, drawn again whenever they are used: a tile for all rows of a call.

    References
    ----------
    [^1]: Dai et al., "Scalable kernel methods via doubly stochastic gradients", 2014, section 3 and table 1.

    """

    kernel: Kernel  #: The kernel, which computes them
    block_size: int  #: F, the draws of a block
    dtype: np.dtype[Any]
    seed: int  #: The seed of the draws, an unsigned 64-bit number

    @property
    def nbytes(self) -> int:
        """0: nothing is cached."""
        return 0

    def add_scores(
        self, X: Array, keys: Array, extra_keys: Array, bandwidth: float, alpha: Array, n_features: int, total: Array
    ) -> None:
        """Add the sum of the first `n_features` draws times their coefficients to `total`, each row as if alone.

        Arguments are those of `Drawn.add_scores`, and alpha's shape is (K, n_parts, at least n_features).
        """
        if len(extra_keys):
            keys = np.concatenate([keys, extra_keys])
        # Whole blocks, as some kernels make the features of a block together.
        tile = max(TILE // self.block_size, 1) * self.block_size
        for first in range(0, n_features, tile):
            words = self._words(first, min(tile, n_features - first))
            for start in range(0, len(X), AT_ONCE):
                rows = slice(start, start + AT_ONCE)
                add_parts(self._features(X[rows], words, keys, bandwidth), alpha, first, total[rows])

    #: There is nothing faster for many rows.
    add_many = add_scores

    def features(self, block: int, X: Array, keys: Array, bandwidth: float, out: Array) -> None:
        """Fill `out`, shape (n, n_parts F), with the features phi of a block, times F^-1/2."""
        words = self._words(block * self.block_size, self.block_size)
        out[:] = self._features(X, words, keys, bandwidth)
        out *= self.dtype.type(1 / np.sqrt(self.block_size))

    def _features(self, X: Array, words: Array, keys: Array, bandwidth: float) -> Array:
        out = np.empty((len(X), self.kernel.n_parts * words.size), self.dtype)
        compute_features(self.kernel, X, words, keys, bandwidth, out)
        return out

    def _words(self, first: int, n: int) -> Array:
        words = np.empty(n, np.uint64)
        feature_words(np.uint64(self.seed), first, words)
        return words.reshape(-1, self.block_size) if self.kernel.by_block else words
