"""The random feature expansion f(x) = scale . sum_k phi_k(x) . alpha_k: coefficients stored, features drawn again.

Block k holds F draws of random features, a function of the seed and so never part of the state: of a Fourier kernel
frequencies, drawn one by one for every input (`drawn`) or sixteen stacks of orthogonal ones at a time (`stacks`); of
any other what the kernel itself computes (`computed`). The features of a sum of kernels are those of each, side by
side.
"""

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from streamkernel.expansion.sources import Drawn, Stacks
from streamkernel.expansion.terms import Computed, Term, terms_of
from streamkernel.fields import Rules, all_from_zero, array, checked, number, state_mismatch, whole, within
from streamkernel.kernels import Kernel
from streamkernel.state import Array, State

#: Coefficients are cut here: far past any that matters, and sums of all of them are finite in float32.
LARGEST_COEFFICIENT = 1e30
#: The same in single precision, where it is a little more.
_MOST = float(np.float32(LARGEST_COEFFICIENT))
#: The global scale is folded into the coefficients before it can vanish, or be below 0.
SMALLEST_SCALE = 1e-6


@dataclass(eq=False)
class Expansion:
    """A kernel expansion in blocks of random features, with K outputs and one global scale.

    - bandwidth: The length scale in use, in units of the scaled inputs; 0 before it is chosen.
    - n_blocks, n_outputs: Blocks with coefficients, and K.
    - scale: The factor of every coefficient, which decay changes alone.
    """

    kernel: Kernel  #: The kernel, which draws the features
    #: F, the draws of a block; a draw is `kernel.n_parts` numbers, of a Fourier kernel the cosine and the sine of one
    #: frequency.
    block_size: int
    dtype: np.dtype[Any]
    cache_bytes: int  #: The most bytes of drawn frequencies cached
    seed: int  #: The seed of the draws, an unsigned 64-bit number

    rules: ClassVar[Rules] = {
        "bandwidth": all_from_zero,
        "scale": within(SMALLEST_SCALE, 1.0),
        "alpha": within(-_MOST, _MOST),
    }

    def __post_init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Drop every block, so that the next one is number 0 again, and a bandwidth chosen by data."""
        self.bandwidth = float(self.kernel.bandwidth or 0.0)  # 0: not chosen yet
        self.n_blocks = 0
        self.n_outputs = 0
        self.scale = 1.0
        self.terms: list[Term] = terms_of(self.kernel, self.block_size, self.dtype, self.cache_bytes, self.seed)

    def begin(self, X: Array, bandwidth: float) -> None:
        """Fix what the first rows, shape (n, d), decide: the bandwidth, where none is given, or too
        small a one for their dtype, and structured groups."""
        self.bandwidth = max(self.bandwidth or bandwidth, self._least_bandwidth(X))
        if (stacks := self._stacks) is not None:
            stacks.begin(X)

    def _least_bandwidth(self, X: Array) -> float:
        """The rounding of usual rows: of a smaller length scale, turns have no fraction in this dtype.

        Every feature would then be the same.
        """
        kernel = self.kernel
        has_own = kernel.is_fourier and not kernel.transforms and kernel.n_kernels == 1
        if not (has_own or kernel.bandwidth is None):
            return 0.0
        return float(np.median(np.abs(X).max(axis=1, initial=0.0))) * float(np.finfo(self.dtype).epsneg)

    @property
    def n_features(self) -> int:
        """Draws in use."""
        return self.n_blocks * self.block_size

    @property
    def width(self) -> int:
        """The numbers that the features of a block are: `n_parts` F, of a Fourier kernel 2 F."""
        return self.kernel.n_parts * self.block_size

    @property
    def alpha(self) -> Array:
        """The coefficients before the global scale, a copy of shape (n_blocks, K, width)."""
        K, F = self.n_outputs, self.block_size
        blocks = self.coefficients.reshape(K, self.kernel.n_parts, self.n_blocks, F)
        return np.ascontiguousarray(blocks.transpose(2, 0, 1, 3)).reshape(self.n_blocks, K, self.width)

    @property
    def coefficients(self) -> Array:
        """The same in the order of the sums, shape (K, n_parts, n_features): a view, or of several terms a copy."""
        parts = [term.alpha[:, :, : self.n_features] for term in self.terms]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def in_order(self, alpha: Array) -> Array:
        """Coefficients as `alpha` gives them in the order of the sums, shape (K, n_parts, n_features)."""
        n_blocks, K, _ = alpha.shape
        P, F = self.kernel.n_parts, self.block_size
        blocks = alpha.reshape(n_blocks, K, P, F)
        return np.ascontiguousarray(blocks.transpose(1, 2, 0, 3)).reshape(K, P, n_blocks * F)

    def replace(self, coefficients: Array) -> None:
        """Have others in place of all coefficients, of the shape of `coefficients`, and a global scale of 1.

        What shares the terms of this expansion keeps its own.
        """
        parts = np.split(coefficients, np.cumsum([term.kernel.n_parts for term in self.terms])[:-1], axis=1)
        self.terms = [term.holding(np.ascontiguousarray(part)) for term, part in zip(self.terms, parts, strict=True)]
        self.scale = 1.0

    @property
    def nbytes(self) -> int:
        """Bytes of coefficients and cached frequencies."""
        return sum(int(term.alpha.nbytes) + term.source.nbytes for term in self.terms)

    def scores(self, X: Array, keys: Array, extra_keys: Array, alone: bool = False) -> Array:
        """The scores f(x) of rows.

        - X: Scaled rows, shape (n, d + e), of the expansion's dtype.
        - keys: The keys of the inputs that stay, uint64 of shape (d,).
        - extra_keys: The keys of inputs met in these rows only, uint64 of shape (e,).
        - alone: Whether nothing is learned from these scores: then many rows are projected at once, and are equal to
          those computed one by one to rounding only.

        Returns float64 of shape (n, K).
        """
        total = np.zeros((len(X), self.n_outputs))
        if self.n_blocks:
            for term in self.terms:
                term.add_scores(X, keys, extra_keys, self.bandwidth, self.n_features, total, alone)
            total *= self.scale / np.sqrt(self.block_size)
        return total

    def features(self, block: int, X: Array, keys: Array) -> Array:
        """The features phi_k(x) of rows X (n, d), shape (n, width); block k may be the one that comes next."""
        parts = [term.features(block, X, keys, self.bandwidth) for term in self.terms]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def widen(self, n_outputs: int) -> None:
        """Add outputs, up to `n_outputs`, with coefficients of 0 in every block."""
        missing = n_outputs - self.n_outputs
        if missing > 0:
            for term in self.terms:
                term.alpha = np.pad(term.alpha, ((0, missing), (0, 0), (0, 0)))
            self.n_outputs = n_outputs

    def folds(self, factor: float) -> bool:
        """Whether a decay by this factor changes the coefficients themselves: the scale stays from `SMALLEST_SCALE`."""
        return self.scale * factor < SMALLEST_SCALE

    def decay(self, factor: float) -> None:
        """Multiply every coefficient by a factor from -1 to 1: most often only the global scale changes."""
        folds = self.folds(factor)
        self.scale *= factor
        if folds:
            for term in self.terms:
                term.alpha *= self.dtype.type(self.scale)
            self.scale = 1.0

    def add(self, block: int, delta: Array) -> None:
        """Add `delta`, float64 of shape (K, width), to the coefficients of a block, an old one or the next."""
        most = LARGEST_COEFFICIENT
        parts = np.clip(delta / self.scale, -most, most).astype(self.dtype)
        first = 0
        for term in self.terms:
            own = term.block(block)
            own += parts[:, first : first + term.width].reshape(own.shape)
            np.clip(own, -most, most, out=own)
            first += term.width
        self.n_blocks += block == self.n_blocks

    def state(self) -> State:
        """The fields of the state."""
        return checked(
            {
                "seed": self.seed,
                "bandwidth": self.bandwidth,
                "scale": self.scale,
                "alpha": self.alpha,
                **(stacks.state() if (stacks := self._stacks) else {}),
            },
            self.rules,
        )

    def load_state(self, state: State) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        checked(state, self.rules)
        self.seed = whole(state, "seed", most=2**64 - 1)
        self.forget()
        self.bandwidth = number(state, "bandwidth")
        alpha = array(state, "alpha", self.dtype, None, None, self.width)
        self.n_blocks, self.n_outputs, _ = alpha.shape
        self.replace(self.in_order(alpha))
        self.scale = number(state, "scale")
        if (stacks := self._stacks) is not None:
            stacks.load_state(state)
            if self.n_blocks and not stacks.first_size:
                raise state_mismatch("first_group")
        if self.n_blocks and not self.bandwidth:
            raise state_mismatch("bandwidth")

    @property
    def frequencies(self) -> Drawn | Stacks | Computed:
        """The source of the features of the first term, which is the only one unless the kernel is a sum."""
        return self.terms[0].source

    @property
    def _stacks(self) -> Stacks | None:
        """The source of a structured kernel, which is no sum."""
        return self.frequencies if isinstance(self.frequencies, Stacks) else None


class AveragedSolution:
    """The mean of the solutions of a growing machine after each of its steps (Polyak-Ruppert averaging).

    A block that did not exist at a step counts as 0 then. It takes as much memory as the coefficients.

    - expansion: The last solution.
    - solution: The mean as an expansion, which shares its frequencies with the last solution and is only to be read.
    """

    rules: ClassVar[Rules] = {"average_alpha": Expansion.rules["alpha"]}

    def __init__(self, expansion: Expansion) -> None:
        self._last = expansion
        self.forget()

    def forget(self) -> None:
        """Start over."""
        self._mean = np.zeros_like(self._last.coefficients)
        self.solution = self._last

    @property
    def nbytes(self) -> int:
        """Bytes of its coefficients."""
        return int(self._mean.nbytes)

    def take(self, t: int) -> None:
        """Take in the last solution as the t-th, from 1."""
        last = self._last.coefficients
        if last.shape != self._mean.shape:
            self._mean = np.pad(self._mean, [(0, n - m) for n, m in zip(last.shape, self._mean.shape, strict=True)])
        share = self._last.dtype.type(1 / t)
        self._mean += share * (self._last.dtype.type(self._last.scale) * last - self._mean)
        self._show()

    def begin_at_last(self) -> None:
        """Have the last solution as the mean."""
        last = self._last
        self._mean = last.dtype.type(last.scale) * last.coefficients
        self._show()

    def state(self) -> State:
        """The fields of the state."""
        return checked({"average_alpha": self.solution.alpha}, self.rules)

    def load_state(self, state: State) -> None:
        """Take the fields that `state` gave, after the last solution's; ValueError where they do not fit."""
        checked(state, self.rules)
        last = self._last
        self._mean = last.in_order(array(state, "average_alpha", last.dtype, *last.alpha.shape))
        self._show()

    def _show(self) -> None:
        self.solution = copy.copy(self._last)
        self.solution.replace(self._mean)
