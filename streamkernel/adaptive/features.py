"""The columns the heads live on: paired random features under a metric, a constant, and the inputs themselves."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamkernel.compute.features import SINE, FeatureMap, adaptive_columns
from streamkernel.compute.gaussians import feature_words
from streamkernel.fields import Rules, all_from_zero, array, checked, number, state_mismatch, whole, within
from streamkernel.kernels import FourierKernel
from streamkernel.kernels.drawing import draw_frequencies
from streamkernel.state import Array, State

_DTYPE = np.dtype("float32")
#: Scales are roots of shares of a mean: none is so far from 1, and scaled inputs are finite in single precision.
MOST_SCALE = 1e12
#: Those of no inputs.
NO_KEYS = np.zeros(0, np.uint64)


@dataclass(eq=False)
class AdaptiveFeatures:
    """[cos, sin] F^-1/2 of F frequencies, 1, and x / sqrt(d0), in this order, so that a later input comes last.

    - n_inputs: d, the inputs that have a place; 0 before the first record.
    - d0: The inputs at the last beginning.
    - n_linear: Inputs that are columns themselves: all while d <= 2 F, none in a model that starts beyond.
    - scales: The metric: what each input is multiplied by before it is projected, float64 of shape (d,).
    - bandwidth: The kernel's length scale in use.
    """

    kernel: FourierKernel  #: Draws the frequencies
    n_features: int  #: F
    seed: int  #: The stream of frequencies, an unsigned 64-bit number

    rules: ClassVar[Rules] = {"metric_scales": within(1 / MOST_SCALE, MOST_SCALE), "bandwidth": all_from_zero}

    def __post_init__(self) -> None:
        self.n_inputs = 0
        self.d0 = 0
        self.n_linear = 0
        self.scales = np.zeros(0)
        self.bandwidth = 0.0
        self._words = np.empty(self.n_features, np.uint64)
        feature_words(np.uint64(self.seed), 0, self._words)
        self._W = np.zeros((0, self.n_features), _DTYPE)
        self._keys = NO_KEYS
        self._feature_map: FeatureMap | None = None

    @property
    def n_columns(self) -> int:
        """D."""
        return 2 * self.n_features + 1 + self.n_linear

    @property
    def has_linear(self) -> bool:
        """Whether inputs are columns themselves, or will be: not in a model that began beyond 2 F."""
        return self.n_linear == min(self.n_inputs, 2 * self.n_features)

    def begin(self, n_inputs: int) -> None:
        """Take the first inputs, each as important as any other."""
        self.n_inputs = self.d0 = n_inputs
        self.n_linear = n_inputs if n_inputs <= 2 * self.n_features else 0
        self.scales = np.ones(n_inputs)
        self.bandwidth = self.kernel.bandwidth or self.kernel.initial_bandwidth(max(n_inputs, 1))
        self._forget_draws()

    def add_input(self) -> bool:
        """Give one more input its place, and say whether it also became a column."""
        self.n_inputs += 1
        self.scales = np.append(self.scales, 1.0)
        self._feature_map = None
        linear = self.n_linear == self.n_inputs - 1 and self.n_inputs <= 2 * self.n_features
        self.n_linear += linear
        return linear

    def under(self, scales: Array, bandwidth: float) -> "AdaptiveFeatures":
        """The same features under another metric."""
        other = AdaptiveFeatures(self.kernel, self.n_features, self.seed)
        other.n_inputs, other.n_linear = self.n_inputs, self.n_linear
        other.set_metric(scales, bandwidth)
        return other

    def set_metric(self, scales: Array, bandwidth: float) -> None:
        """Look at the inputs by another metric from now on."""
        self.scales = scales
        self.bandwidth = bandwidth
        self.d0 = self.n_inputs
        self._forget_draws()

    def follow(self, other: "AdaptiveFeatures") -> None:
        """Look at the inputs as the same features under another metric do, whose frequencies are drawn already."""
        self.scales, self.bandwidth, self.d0 = other.scales, other.bandwidth, other.d0
        self._W, self._keys, self._feature_map = other._W, other._keys, None

    def frequencies(self, keys: Array) -> Array:
        """Frequencies in turns for scaled inputs, float32 of shape (d, F)."""
        known = len(self._keys)
        if keys is not self._keys and (len(keys) != known or not np.array_equal(keys, self._keys)):
            if known > len(keys) or not np.array_equal(keys[:known], self._keys):
                known = 0
            drawn = np.empty((len(keys) - known, self.n_features), _DTYPE)
            draw_frequencies(self.kernel, self._words, keys[known:], self.bandwidth, drawn)
            self._W = np.concatenate([self._W[:known], drawn])
            self._feature_map = None
        self._keys = keys
        return self._W

    def feature_map(self, keys: Array, extra_keys: Array = NO_KEYS) -> FeatureMap:
        """How scaled rows become columns: rows of the inputs of `keys`, then those met in these rows only."""
        plain = not len(extra_keys)
        if plain and self._feature_map is not None and keys is self._keys:
            return self._feature_map
        W, scales = self.frequencies(keys), self.scales.astype(_DTYPE)
        if not plain:
            drawn = np.empty((len(extra_keys), self.n_features), _DTYPE)
            draw_frequencies(self.kernel, self._words, extra_keys, self.bandwidth, drawn)
            W = np.concatenate([W, drawn])
            scales = np.concatenate([scales, np.ones(len(extra_keys), _DTYPE)])
        feature_map = FeatureMap(W, scales, math.sqrt(max(self.d0, 1)), self.n_linear, SINE[_DTYPE])
        if plain:
            self._feature_map = feature_map
        return feature_map

    def of(self, X: Array, keys: Array, extra_keys: Array = NO_KEYS) -> Array:
        """The columns of scaled rows.

        - X: float32 of shape (n, d + e).
        - keys, extra_keys: The keys of the d inputs, and of e that are met in these rows only, uint64.

        Returns float64 of shape (n, D).
        """
        feature_map = self.feature_map(keys, extra_keys)
        out = np.empty((len(X), self.n_columns))
        adaptive_columns(
            X, feature_map.W, feature_map.scales, feature_map.root, feature_map.n_linear, feature_map.sine, out
        )
        return out

    def state(self) -> State:
        """The fields of the state."""
        return checked(
            {
                "seed": self.seed,
                "d0": self.d0,
                "n_linear": self.n_linear,
                "metric_scales": self.scales,
                "bandwidth": self.bandwidth,
            },
            self.rules,
        )

    def load_state(self, state: State) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        checked(state, self.rules)
        self.seed = whole(state, "seed", most=2**64 - 1)
        self.scales = array(state, "metric_scales", np.float64, None)
        self.n_inputs = len(self.scales)
        self.d0 = whole(state, "d0", self.n_inputs)
        self.n_linear = whole(state, "n_linear", self.n_inputs)
        self.bandwidth = number(state, "bandwidth")
        # A machine may have begun without inputs; before it began, there is no bandwidth.
        if not self.bandwidth and (self.n_inputs or state.get("n_records")):
            raise state_mismatch("bandwidth")
        feature_words(np.uint64(self.seed), 0, self._words)
        self._forget_draws()

    def _forget_draws(self) -> None:
        self._W = self._W[:0]
        self._keys = NO_KEYS
        self._feature_map = None
