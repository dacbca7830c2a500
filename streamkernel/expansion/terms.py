"""The terms of a kernel's expansion: one for each of the kernels whose sum it is, with coefficients of its own."""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkernel.compute.features import TILE
from streamkernel.compute.gaussians import feature_words, mix64
from streamkernel.compute.random_features import add_parts
from streamkernel.expansion.sources import Drawn, Stacks
from streamkernel.kernels import Kernel
from streamkernel.kernels.base import has_frequencies
from streamkernel.kernels.drawing import compute_features
from streamkernel.state import Array

#: Rows whose features are computed at a time: those of a tile stay in the second-level cache.
AT_ONCE = 256


@dataclass(eq=False)
class Computed:
    """Random features that a kernel computes itself, drawn again at each use: a tile for all rows of a call."""

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


_STEP = 0x9E3779B97F4A7C15


@dataclass(eq=False)
class Term:
    """A kernel's features with their coefficients.

    - alpha: Coefficients, of the source's dtype and shape (K, n_parts, room): of the first numbers of the draws, then
      of the second ones, draw after draw, as the sums go through them.
    """

    kernel: Kernel  #: One that is no sum
    source: Drawn | Stacks | Computed  #: Where its features come from
    factor: float  #: What they are multiplied by
    block_size: int  #: F
    dtype: np.dtype[Any]
    own_bandwidth: float | None  #: A length scale that only this term has; None is that of the expansion

    def __post_init__(self) -> None:
        self.alpha = np.zeros((0, self.kernel.n_parts, 0), self.dtype)

    @property
    def width(self) -> int:
        """The numbers of a block's features."""
        return self.kernel.n_parts * self.block_size

    def add_scores(
        self, X: Array, keys: Array, extra_keys: Array, bandwidth: float, n_features: int, total: Array, alone: bool
    ) -> None:
        """Add the sum of the features times their coefficients to `total`; arguments as `Drawn.add_scores`."""
        add = self.source.add_many if alone else self.source.add_scores
        bandwidth = self.own_bandwidth or bandwidth
        if self.factor == 1:
            add(X, keys, extra_keys, bandwidth, self.alpha, n_features, total)
            return
        own = np.zeros_like(total)
        add(X, keys, extra_keys, bandwidth, self.alpha, n_features, own)
        total += self.factor * own

    def features(self, block: int, X: Array, keys: Array, bandwidth: float) -> Array:
        """The features phi of a block, shape (n, width), times F^-1/2."""
        out = np.empty((len(X), self.width), self.alpha.dtype)
        self.source.features(block, X, keys, self.own_bandwidth or bandwidth, out)
        if self.factor != 1:
            out *= out.dtype.type(self.factor)
        return out

    def block(self, block: int) -> Array:
        """The coefficients of a block, a view of shape (K, n_parts, F), for which room is made."""
        F, room = self.block_size, self.alpha.shape[2]
        if (block + 1) * F > room:
            # By half: twice would make the largest model three times its coefficients.
            self.alpha = np.pad(self.alpha, ((0, 0), (0, 0), (0, max(room // 2, 4 * F))))
        return self.alpha[:, :, block * F : (block + 1) * F]

    def holding(self, alpha: Array) -> "Term":
        """The same term with other coefficients."""
        other = copy.copy(self)
        other.alpha = alpha
        return other


def terms_of(kernel: Kernel, block_size: int, dtype: np.dtype[Any], cache_bytes: int, seed: int) -> list[Term]:
    """The terms of a kernel, fresh: each has a part of the cache and a seed of its own, the first one `seed`."""
    terms = kernel.terms
    return [
        Term(
            part,
            _source(part, block_size, dtype, cache_bytes // len(terms), seed_of_term(seed, number)),
            factor,
            block_size,
            dtype,
            None if part is kernel else part.bandwidth,
        )
        for number, (factor, part) in enumerate(terms)
    ]


def _source(
    kernel: Kernel, block_size: int, dtype: np.dtype[Any], cache_bytes: int, seed: int
) -> Drawn | Stacks | Computed:
    if kernel.structured:
        return Stacks(block_size, cache_bytes, seed)
    if has_frequencies(kernel):
        return Drawn(kernel, block_size, dtype, cache_bytes, seed)
    return Computed(kernel, block_size, dtype, seed)


def seed_of_term(seed: int, number: int) -> int:
    """The seed of a term of a sum of kernels: that of the sum for the first."""
    return seed if number == 0 else int(mix64(np.uint64((seed + number * _STEP) % 2**64)))
