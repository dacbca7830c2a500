"""The inputs of a Gaussian process, scaled by means and deviations that stay, and its columns, random features.

What is learned is learned where it is looked up. The products of random or quasi-random columns approximate the kernel.
"""

from typing import Any, ClassVar

import numpy as np

from streamkernel.compute.features import SINE
from streamkernel.compute.gaussians import feature_words
from streamkernel.compute.laws import stream
from streamkernel.compute.moments import COUNT, LARGEST, M2, MEAN
from streamkernel.compute.random_features import project, waves
from streamkernel.compute.sobol import directions, sobol
from streamkernel.expansion.terms import seed_of_term
from streamkernel.fields import Rules, all_from_zero, array, checked, state_mismatch
from streamkernel.kernels import FourierKernel, Kernel
from streamkernel.kernels.base import has_frequencies
from streamkernel.kernels.drawing import compute_features, draw_frequencies
from streamkernel.records.input_columns import RAW_LIMIT, InputScaler
from streamkernel.records.rows import Rows
from streamkernel.state import Array, State

#: An input has outgrown its scale where its running deviation is this many times the fixed one, or one part in as many.
OUTGROWN = 4.0
_FIXED_MEAN, _FIXED_DEVIATION = range(2)


class FixedScaler(InputScaler):
    """The standardization of inputs by fixed moments, and by the running ones until an input has some.

    - fixed: Mean and deviation of the first inputs, float64 of shape (n, 2); a deviation of 0 is none yet.
    """

    rules: ClassVar[Rules] = {
        **InputScaler.rules,
        "input_scales": lambda table: table.ndim == 2 and all_from_zero(table[:, 1:]),
    }

    def forget(self) -> None:
        super().forget()
        self.fixed = np.zeros((0, 2))

    def fix(self, least: int, again: bool) -> None:
        """Fix the scales of inputs by the running moments.

        - least: How often an input must have been observed.
        - again: Whether scales that are fixed are fixed again.
        """
        count, deviation = self.moments[:, COUNT], self._running_deviation
        table = np.stack([self.moments[:, MEAN], deviation], axis=1)
        table[(count < least) | ~(deviation > 0)] = 0.0
        if not again:
            kept = np.flatnonzero(self.fixed[:, _FIXED_DEVIATION] > 0)
            table[kept] = self.fixed[kept]
        self.fixed = table

    @property
    def is_outgrown(self) -> bool:
        """Whether the running deviation of an input is far from the fixed one."""
        fixed = self.fixed[:, _FIXED_DEVIATION]
        running = self._running_deviation[: len(fixed)]
        with np.errstate(over="ignore"):
            far = (running > OUTGROWN * fixed) | (running * OUTGROWN < fixed)
        return bool((far & (fixed > 0)).any())

    def scale(self, rows: Rows, learn: Array, dtype: np.dtype[Any]) -> Array:
        out = super().scale(rows, learn, dtype)
        self._replace(rows.values, out)
        return out

    def as_of_now(self, values: Array) -> Array:
        """Encoded values of shape (n, d), scaled by the fixed moments, and by the running ones of inputs without."""
        out = super().as_of_now(values)
        self._replace(values, out)
        return out

    def state(self) -> State:
        missing = len(self.moments) - len(self.fixed)
        return checked({**super().state(), "input_scales": np.pad(self.fixed, ((0, missing), (0, 0)))}, self.rules)

    def load_state(self, state: State) -> None:
        super().load_state(state)
        self.fixed = array(state, "input_scales", np.float64, len(self.moments), 2)
        if not np.isfinite(self.fixed).all():
            raise state_mismatch("input_scales")

    @property
    def _running_deviation(self) -> Array:
        return np.asarray(np.sqrt(self.moments[:, M2] / np.maximum(self.moments[:, COUNT], 1)))

    def _replace(self, values: Array, out: Array) -> None:
        """Standardize the columns that have fixed moments; absent values are 0."""
        table = self.fixed[: values.shape[1]]
        columns = np.flatnonzero(table[:, _FIXED_DEVIATION] > 0)
        if len(columns):
            centered = np.clip(values[:, columns], -LARGEST, LARGEST) - table[columns, _FIXED_MEAN]
            with np.errstate(over="ignore"):
                scaled = centered / table[columns, _FIXED_DEVIATION]
            out[:, columns] = np.nan_to_num(np.clip(scaled, -RAW_LIMIT, RAW_LIMIT), nan=0.0)


_DTYPE = np.dtype("float64")


class ProcessFeatures:
    """F draws of features of each term of a kernel, side by side: phi(x) . phi(x') is near k(x, x') / kappa.

    - kernel: The kernel, with features of a bounded norm.
    - n_features: F.
    - quasi_random: Whether the frequencies of the inputs that came first, as many as there are `directions`, are made
      of scrambled Sobol numbers, where the kernel can; all others are drawn.
    - seed: The seed of all draws, an unsigned 64-bit number.
    - bandwidth: The length scale in use, in units of the scaled inputs; 0 before it is chosen.
    - kappa: The largest k(x, x), by which the kernel is divided.
    """

    def __init__(self, kernel: Kernel, n_features: int, quasi_random: bool, seed: int) -> None:
        self.kernel = kernel
        self.n_features = n_features
        self.quasi_random = quasi_random
        self.kappa = float(kernel.kappa or 1.0)
        self.bandwidth = float(kernel.bandwidth or 0.0)
        self.begin(seed)

    def begin(self, seed: int) -> None:
        """Draw by another seed."""
        self.seed = seed
        self._sources = [
            _Source(part, self.n_features, self.quasi_random, seed_of_term(seed, number))
            for number, (_, part) in enumerate(self.kernel.terms)
        ]

    @property
    def n_columns(self) -> int:
        """D."""
        return self.kernel.n_parts * self.n_features

    def of(self, X: Array, keys: Array, extra_keys: Array) -> Array:
        """The columns of scaled rows, float64 of shape (n, D).

        - X: float64 of shape (n, d + e).
        - keys, extra_keys: The keys of the d inputs that stay, in the order of their arrival, and of the e met in these
          rows only.
        """
        out = np.empty((len(X), self.n_columns))
        first = 0
        for (factor, part), source in zip(self.kernel.terms, self._sources, strict=True):
            columns = out[:, first : first + part.n_parts * self.n_features]
            own = np.empty(columns.shape)
            bandwidth = self.bandwidth if part is self.kernel else part.bandwidth or self.bandwidth
            source.fill(X, keys, extra_keys, bandwidth, own)
            np.multiply(own, factor / np.sqrt(self.n_features * self.kappa), out=columns)
            first += columns.shape[1]
        return out


class _Source:
    """The features of a term, its frequencies kept."""

    def __init__(self, kernel: Kernel, n_features: int, quasi_random: bool, seed: int) -> None:
        self._kernel = kernel
        self._quasi_random = quasi_random
        self._seed = seed
        self._words = np.empty(n_features, np.uint64)
        feature_words(np.uint64(seed), 0, self._words)
        self._W = np.zeros((0, n_features))
        self._keys = np.zeros(0, np.uint64)
        self._bandwidth = 0.0

    def fill(self, X: Array, keys: Array, extra_keys: Array, bandwidth: float, out: Array) -> None:
        """Fill `out`, shape (n, n_parts F), with the features of rows, without the factor F^-1/2."""
        kernel = self._kernel
        if not has_frequencies(kernel):
            compute_features(kernel, X, self._words, np.concatenate([keys, extra_keys]), bandwidth, out)
            return
        W = self._frequencies(kernel, keys, bandwidth)
        if len(extra_keys):
            # In the order of their names, not of arrival: they have no place yet.
            W = np.concatenate([W, self._drawn(kernel, extra_keys, bandwidth)])
        turns = np.empty((len(X), len(self._words)))
        project(np.ascontiguousarray(kernel.transform(X)), W, turns)
        waves(turns, SINE[_DTYPE], out)

    def _frequencies(self, kernel: FourierKernel, keys: Array, bandwidth: float) -> Array:
        known = len(self._keys)
        if bandwidth != self._bandwidth or not np.array_equal(keys[:known], self._keys):
            known = 0
        if known < len(keys) or len(keys) < len(self._W):
            self._W = np.concatenate([self._W[:known], self._new(kernel, known, keys[known:], bandwidth)])
            self._keys, self._bandwidth = keys.copy(), bandwidth
        return self._W

    def _new(self, kernel: FourierKernel, first: int, keys: Array, bandwidth: float) -> Array:
        """Frequencies of inputs from a place on, shape (d, F)."""
        per_input = kernel.n_uniforms if self._quasi_random else 0
        table = directions() if per_input else np.zeros((0, 0), np.uint64)
        n_quasi = min(max(len(table) // per_input - first, 0), len(keys)) if per_input else 0
        W = self._drawn(kernel, keys, bandwidth)
        if n_quasi:
            U = np.empty((per_input, n_quasi, len(self._words)))
            for number in range(per_input):
                for j in range(n_quasi):
                    place = (first + j) * per_input + number
                    seed = stream(np.uint64(self._seed), np.uint64(keys[j]) ^ np.uint64(number))
                    sobol(table[place], 0, np.uint64(seed), U[number, j])
            kernel.frequencies_at(U, self._words, bandwidth, W[:n_quasi])
        return W

    def _drawn(self, kernel: FourierKernel, keys: Array, bandwidth: float) -> Array:
        W = np.empty((len(keys), len(self._words)))
        draw_frequencies(kernel, self._words, keys, bandwidth, W)
        return W


def can_be_quasi_random(kernel: Kernel) -> bool:
    """Whether all terms of a kernel make frequencies of given uniform numbers."""
    return all(has_frequencies(part) and part.n_uniforms > 0 for _, part in kernel.terms)
