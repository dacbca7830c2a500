"""The warm-up buffer: the first labeled records as they came, until they fix a bandwidth left to the data."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from streamkernel.fields import Rules, all_from_zero, array, checked, none_infinite, state_mismatch, untagged
from streamkernel.growth.feature_scale import occupied, usual
from streamkernel.kernels import Kernel
from streamkernel.kernels.drawing import median_bandwidth
from streamkernel.records.inputs import Inputs
from streamkernel.state import Array, State, tag

#: Labeled records after which the bandwidth is fixed and the machine starts over with them.
WARM_UP = 200


class WarmUpBuffer:
    """The first labeled records as they came.

    - targets, weights: Prepared targets and weights so far.
    """

    rules: ClassVar[Rules] = {"warm_up_values": none_infinite, "warm_up_weights": all_from_zero}

    def __init__(self) -> None:
        self._values: list[Array] = []
        self.targets: list[Any] = []
        self.weights: list[float] = []

    @property
    def room(self) -> int:
        """Records until the bandwidth is fixed."""
        return WARM_UP - len(self.targets)

    def append(self, values: Array, targets: Sequence[Any], weights: Array) -> None:
        """Add records: encoded values (n, d), targets and weights."""
        self._values.append(values)
        self.targets.extend(targets)
        self.weights.extend(weights.tolist())

    def rows(self, n_inputs: int) -> Array:
        """The encoded values, shape (n, n_inputs): an input that came later was not observed before."""
        out = np.full((len(self.targets), n_inputs), np.nan)
        at = 0
        for part in self._values:
            out[at : at + len(part), : part.shape[1]] = part
            at += len(part)
        return out

    def bandwidth(self, inputs: Inputs, kernel: Kernel, more: Array | None = None) -> float:
        """The median bandwidth of the records, and of others of encoded values (n, d), until there are `WARM_UP`."""
        values = self.rows(len(inputs))
        X = inputs.scaler.as_of_now(values if more is None else np.concatenate([values, more])[:WARM_UP])
        if inputs.standardize:
            X = usual(X)
        kernel, X = kernel.on_rows(X, inputs.columns.keys)
        return median_bandwidth(kernel, occupied(X))

    def state(self, n_inputs: int) -> State:
        """The fields of the state."""
        return checked(
            {
                "warm_up_values": self.rows(n_inputs),
                "warm_up_targets": [tag(y) for y in self.targets],
                "warm_up_weights": np.array(self.weights),
            },
            self.rules,
        )

    @classmethod
    def from_state(cls, state: State, n_inputs: int) -> "WarmUpBuffer":
        """A buffer of the fields that `state` gave; ValueError where they do not fit."""
        checked(state, cls.rules)
        warm_up = cls()
        targets = untagged(state, "warm_up_targets")
        if len(targets) >= WARM_UP:
            raise state_mismatch("warm_up_targets")
        values = array(state, "warm_up_values", np.float64, len(targets), n_inputs)
        weights = array(state, "warm_up_weights", np.float64, len(targets))
        if targets:
            warm_up.append(values, targets, weights)
        return warm_up
