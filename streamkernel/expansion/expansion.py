"""The random feature expansion f(x) = scale . sum_k phi_k(x) . alpha_k: coefficients stored, features drawn again.

Block k holds F frequencies, a function of the seed and so never part of the state: drawn one by one for every input
(`drawn`), or sixteen stacks of orthogonal ones at a time (`stacks`).
"""

from typing import Any, ClassVar

import numpy as np

from streamkernel.expansion.drawn import Drawn
from streamkernel.expansion.stacks import Stacks
from streamkernel.kernels import Kernel
from streamkernel.state import (
    Array,
    Rules,
    State,
    all_finite,
    all_from_zero,
    array,
    checked,
    number,
    state_mismatch,
    whole,
)

#: Coefficients are cut here: far past any that matters, and sums of all of them are finite in float32.
LARGEST_COEFFICIENT = 1e30
#: The global scale is folded into the coefficients before it can vanish.
SMALLEST_SCALE = 1e-6


class Expansion:
    """A kernel expansion in blocks of random Fourier features, with K outputs and one global scale.

    Parameters
    ----------
    kernel
        The kernel, which draws the frequencies.
    block_size
        F, the frequencies of a block; a frequency is a cosine and a sine.
    dtype
        float32 or float64.
    cache_bytes
        The most bytes of drawn frequencies cached.
    seed
        The seed of the frequencies, an unsigned 64-bit number.

    Attributes
    ----------
    bandwidth
        The length scale in use, in units of the scaled inputs; 0 before it is chosen.
    n_blocks, n_outputs
        Blocks with coefficients, and K.
    scale
        The factor of every coefficient, which decay changes alone.

    References
    ----------
    [^1]: Dai et al., "Scalable kernel methods via doubly stochastic gradients", 2014, algorithms 1 and 2.

    """

    rules: ClassVar[Rules] = {"bandwidth": all_from_zero, "scale": all_finite, "alpha": all_finite}

    def __init__(self, kernel: Kernel, block_size: int, dtype: np.dtype[Any], cache_bytes: int, seed: int) -> None:
        self.kernel = kernel
        self.block_size = block_size
        self.dtype = dtype
        self.cache_bytes = cache_bytes
        self.seed = seed
        self.forget()

    def forget(self) -> None:
        """Drop every block, so that the next one is number 0 again, and a bandwidth chosen by data."""
        self.bandwidth = float(self.kernel.bandwidth or 0.0)  # 0: not chosen yet
        self.n_blocks = 0
        self.n_outputs = 0
        self.scale = 1.0
        # Of the cosines, then of the sines, feature after feature: as the sums go through them.
        self._alpha = np.zeros((0, 2, 0), self.dtype)
        self.frequencies: Drawn | Stacks = (
            Stacks(self.block_size, self.cache_bytes, self.seed)
            if self.kernel.structured
            else Drawn(self.kernel, self.block_size, self.dtype, self.cache_bytes, self.seed)
        )

    def begin(self, X: Array, bandwidth: float) -> None:
        """Fix what the first rows, shape (n, d), decide: the bandwidth, where none is given, and structured groups."""
        self.bandwidth = self.bandwidth or bandwidth
        if isinstance(self.frequencies, Stacks):
            self.frequencies.begin(X)

    @property
    def n_features(self) -> int:
        """Frequencies in use."""
        return self.n_blocks * self.block_size

    @property
    def alpha(self) -> Array:
        """The coefficients before the global scale, a copy of shape (n_blocks, K, 2 F)."""
        K, F = self.n_outputs, self.block_size
        blocks = self._alpha[:, :, : self.n_features].reshape(K, 2, self.n_blocks, F)
        return np.ascontiguousarray(blocks.transpose(2, 0, 1, 3)).reshape(self.n_blocks, K, 2 * F)

    @property
    def coefficients(self) -> Array:
        """The same in the order of the sums, a view of shape (K, 2, n_features)."""
        return self._alpha[:, :, : self.n_features]

    def in_order(self, alpha: Array) -> Array:
        """Coefficients as `alpha` gives them in the order of the sums, shape (K, 2, n_features)."""
        n_blocks, K, _ = alpha.shape
        halves = alpha.reshape(n_blocks, K, 2, self.block_size)
        return np.ascontiguousarray(halves.transpose(1, 2, 0, 3)).reshape(K, 2, n_blocks * self.block_size)

    def replace(self, coefficients: Array) -> None:
        """Have others in place of all coefficients, of the shape of `coefficients`, and a global scale of 1."""
        self._alpha = coefficients
        self.scale = 1.0

    @property
    def nbytes(self) -> int:
        """Bytes of coefficients and cached frequencies."""
        return int(self._alpha.nbytes) + self.frequencies.nbytes

    def scores(self, X: Array, keys: Array, extra_keys: Array, alone: bool = False) -> Array:
        """The scores f(x) of rows.

        Parameters
        ----------
        X
            Scaled rows, shape (n, d + e), of the expansion's dtype.
        keys
            The keys of the inputs that stay, uint64 of shape (d,).
        extra_keys
            The keys of inputs met in these rows only, uint64 of shape (e,).
        alone
            Whether nothing is learnt from these scores: then many rows are projected at once, and are equal to those
            computed one by one to rounding only.

        Returns
        -------
        float64 of shape (n, K).

        """
        total = np.zeros((len(X), self.n_outputs))
        if self.n_blocks:
            add = self.frequencies.add_many if alone else self.frequencies.add_scores
            add(X, keys, extra_keys, self.bandwidth, self._alpha, self.n_features, total)
            total *= self.scale / np.sqrt(self.block_size)
        return total

    def features(self, block: int, X: Array, keys: Array) -> Array:
        """The features phi_k(x) of rows X (n, d), shape (n, 2 F); block k may be the one that comes next."""
        out = np.empty((len(X), 2 * self.block_size), self.dtype)
        self.frequencies.features(block, X, keys, self.bandwidth, out)
        return out

    def widen(self, n_outputs: int) -> None:
        """Add outputs, up to `n_outputs`, with coefficients of 0 in every block."""
        missing = n_outputs - self.n_outputs
        if missing > 0:
            self._alpha = np.pad(self._alpha, ((0, missing), (0, 0), (0, 0)))
            self.n_outputs = n_outputs

    def decay(self, factor: float) -> None:
        """Multiply every coefficient by a factor from -1 to 1, which only changes the global scale."""
        self.scale *= factor
        if abs(self.scale) < SMALLEST_SCALE:
            self._alpha *= self.dtype.type(self.scale)
            self.scale = 1.0

    def add(self, block: int, delta: Array) -> None:
        """Add `delta`, float64 of shape (K, 2 F), to the coefficients of a block, an old one or the next."""
        F = self.block_size
        if block == self.n_blocks:
            room = self._alpha.shape[2]
            if (block + 1) * F > room:
                # By half: twice would make the largest model three times its coefficients.
                self._alpha = np.pad(self._alpha, ((0, 0), (0, 0), (0, max(room // 2, 4 * F))))
            self.n_blocks += 1
        own = self._alpha[:, :, block * F : (block + 1) * F]
        most = LARGEST_COEFFICIENT
        own += np.clip(delta / self.scale, -most, most).astype(self.dtype).reshape(self.n_outputs, 2, F)
        np.clip(own, -most, most, out=own)

    def state(self) -> State:
        """The fields of the state."""
        return checked(
            {
                "seed": self.seed,
                "bandwidth": self.bandwidth,
                "scale": self.scale,
                "alpha": self.alpha,
                **(self.frequencies.state() if isinstance(self.frequencies, Stacks) else {}),
            },
            self.rules,
        )

    def load_state(self, state: State) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        checked(state, self.rules)
        self.seed = whole(state, "seed", most=2**64 - 1)
        self.forget()
        self.bandwidth = number(state, "bandwidth")
        self.scale = number(state, "scale")
        if not self.scale:
            raise state_mismatch("scale")
        alpha = array(state, "alpha", self.dtype, None, None, 2 * self.block_size)
        self.n_blocks, self.n_outputs, _ = alpha.shape
        self._alpha = self.in_order(alpha)
        if isinstance(self.frequencies, Stacks):
            self.frequencies.load_state(state)
            if self.n_blocks and not self.frequencies.first_size:
                raise state_mismatch("first_group")
        if self.n_blocks and not self.bandwidth:
            raise state_mismatch("bandwidth")
