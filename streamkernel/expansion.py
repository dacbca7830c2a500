"""f(x) = scale . sum_k phi_k(x) . alpha_k: features that are regenerated, coefficients that are stored.

Block k holds F frequencies, a function of (seed, k, feature, input) and so never part of the state. A cache of drawn
frequencies, bounded in bytes, changes speed only: what does not fit is drawn again whenever it is used.
"""

from typing import Any

import numpy as np

from streamkernel.blockcache import BlockCache
from streamkernel.compute.features import SINE, TILE, add_scores, paired_features
from streamkernel.compute.gaussians import feature_words
from streamkernel.kernels import Kernel
from streamkernel.state import Array, Record, array, finite, misfit, whole

#: The global scale is folded into the coefficients before it can vanish.
SMALLEST_SCALE = 1e-6


class Expansion:
    """Blocks, their coefficients and one global scale.

    Parameters
    ----------
    kernel
        Draws the frequencies.
    block_size
        F, the frequencies of a block; a frequency is a cosine and a sine.
    dtype
        float32 or float64.
    cache_bytes
        Drawn frequencies kept, in bytes.
    seed
        The stream of frequencies, an unsigned 64-bit number.

    """

    def __init__(self, kernel: Kernel, block_size: int, dtype: np.dtype[Any], cache_bytes: int, seed: int) -> None:
        self.kernel = kernel
        self.block_size = block_size
        self.dtype = dtype
        self.cache_bytes = cache_bytes
        self.seed = seed
        self.forget()

    def forget(self) -> None:
        """Drop every block; the next begin at number 0 again."""
        self.bandwidth = float(self.kernel.bandwidth or 0.0)  # 0: not chosen yet
        self.n_blocks = 0
        self.n_outputs = 0
        self.scale = 1.0
        self._alpha = np.zeros((0, 0, 2 * self.block_size), self.dtype)
        self.cache = BlockCache(self.block_size, self.dtype, self.cache_bytes)

    @property
    def n_features(self) -> int:
        """Frequencies in use."""
        return self.n_blocks * self.block_size

    @property
    def alpha(self) -> Array:
        """Coefficients before the global scale, shape (blocks, K, 2 F)."""
        return self._alpha[: self.n_blocks]

    @property
    def nbytes(self) -> int:
        """Bytes of coefficients and cached frequencies."""
        return int(self._alpha.nbytes + self.cache.W.nbytes)

    def scores(self, X: Array, keys: Array, extra_keys: Array) -> Array:
        """f(x) of every row.

        Parameters
        ----------
        X
            Scaled rows, shape (n, d + e), of the expansion's dtype.
        keys
            The keys of the inputs that stay, uint64 of shape (d,).
        extra_keys
            The keys of inputs met in these rows only, uint64 of shape (e,).

        Returns
        -------
        float64 of shape (n, K).

        """
        total = np.zeros((len(X), self.n_outputs))
        if not self.n_blocks:
            return total
        sine = SINE[self.dtype]
        cached = 0
        if len(extra_keys):
            keys = np.concatenate([keys, extra_keys])
        else:
            cached = min(self.cache.fill(keys, self.n_blocks + 1, self._draw), self.n_blocks)
            if cached:
                add_scores(X, self.cache.W, self.alpha[:cached], sine, total)
        per_tile = max(TILE // self.block_size, 1)
        for first in range(cached, self.n_blocks, per_tile):
            last = min(first + per_tile, self.n_blocks)
            add_scores(X, self._draw(first, last, keys), self.alpha[first:last], sine, total)
        total *= self.scale / np.sqrt(self.block_size)
        return total

    def features(self, block: int, X: Array, keys: Array) -> Array:
        """phi_k(x) of every row, shape (n, 2 F); `block` may be the one that comes next."""
        out = np.empty((len(X), 2 * self.block_size), self.dtype)
        if block < self.cache.fill(keys, self.n_blocks + 1, self._draw):
            paired_features(X, self.cache.W, block * self.block_size, SINE[self.dtype], out)
        else:
            paired_features(X, self._draw(block, block + 1, keys), 0, SINE[self.dtype], out)
        return out

    def widen(self, n_outputs: int) -> None:
        """Give new outputs a zero column in every block."""
        if n_outputs > self.n_outputs:
            wider = np.zeros((len(self._alpha), n_outputs, 2 * self.block_size), self.dtype)
            wider[:, : self.n_outputs] = self._alpha
            self._alpha = wider
            self.n_outputs = n_outputs

    def decay(self, factor: float) -> None:
        """Multiply every coefficient, by one number kept aside."""
        self.scale *= factor
        if abs(self.scale) < SMALLEST_SCALE:
            self._alpha[: self.n_blocks] *= self.dtype.type(self.scale)
            self.scale = 1.0

    def add(self, block: int, delta: Array) -> None:
        """Add `delta`, float64 of shape (K, 2 F), to a block's coefficients; the block that comes next begins at 0."""
        if block == self.n_blocks:
            if block == len(self._alpha):
                larger = np.zeros((max(2 * block, 4), self.n_outputs, 2 * self.block_size), self.dtype)
                larger[:block] = self._alpha
                self._alpha = larger
            self.n_blocks += 1
        self._alpha[block] += (delta / self.scale).astype(self.dtype)

    def record(self) -> Record:
        """The fields of the state."""
        return {
            "seed": self.seed,
            "bandwidth": self.bandwidth,
            "scale": self.scale,
            "alpha": self.alpha.copy(),
        }

    def restore(self, record: Record) -> None:
        """Take the fields that `record` gave; ValueError where they do not fit."""
        self.seed = whole(record, "seed", most=2**64 - 1)
        self.forget()
        self.bandwidth = finite(record, "bandwidth", least=0.0)
        self.scale = finite(record, "scale")
        if not self.scale:
            raise misfit("scale")
        self._alpha = array(record, "alpha", self.dtype, None, None, 2 * self.block_size)
        self.n_blocks, self.n_outputs, _ = self._alpha.shape

    def _draw(self, first: int, last: int, keys: Array) -> Array:
        """Frequencies in turns of the blocks from `first` to before `last`, shape (d, (last - first) F)."""
        words = np.empty((last - first) * self.block_size, np.uint64)
        feature_words(np.uint64(self.seed), first * self.block_size, words)
        out = np.empty((len(keys), len(words)), self.dtype)
        self.kernel.frequencies(words, keys, self.bandwidth, out)
        return out
