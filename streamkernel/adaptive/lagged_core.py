"""The lagged core: one whose inputs are the last known targets, and then those of the records.

It supplements the plain core, whose last mixture has what it predicts as one part: where the past of the target is of
no use, lags among the inputs do harm.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkernel.adaptive.core import AdaptiveCore
from streamkernel.adaptive.experts import Arrivals
from streamkernel.compute.arrival import FeatureMap, Scaling
from streamkernel.compute.number_pass import PREDICTION
from streamkernel.input_keys import key_of
from streamkernel.records.input_columns import InputColumns
from streamkernel.records.input_scaler import RAW_LIMIT, InputScaler
from streamkernel.records.rows import Rows
from streamkernel.state import Array, State

_PREFIX = "lagged_"


def last_known(lags: Array) -> Array:
    """The last known target of each record, (n, L) into (n, 1); 0 while there is none."""
    return np.nan_to_num(lags[:, :1])


class _LaggedColumns:
    """The lags, each a number, and then the columns of the records; numbers or, unscaled, what passes as it is."""

    def __init__(self, n_lags: int, columns: InputColumns, standardize: bool) -> None:
        self._lags = [["number", lag] for lag in range(n_lags)]
        self.columns = columns
        self._standardize = standardize

    def __len__(self) -> int:
        return len(self._lags) + len(self.columns)

    def __iter__(self) -> Iterator[list[Any]]:
        yield from self._lags
        yield from self.columns if self._standardize else ([""] for _ in self.columns)


@dataclass(eq=False)
class LaggedCore:
    """A core on rows of lags and inputs, with moments of its own to scale them by."""

    core: AdaptiveCore
    n_lags: int  #: L, at least 1
    columns: InputColumns  #: The columns of the records' inputs
    standardize: bool  #: Whether numbers among the inputs are standardized, as the lags always are

    def __post_init__(self) -> None:
        self._lag_keys = np.array([key_of(["lag", ["int", lag + 1]]) for lag in range(self.n_lags)], np.uint64)
        self._keys = np.zeros(0, np.uint64)
        self.scaler = InputScaler(_LaggedColumns(self.n_lags, self.columns, self.standardize), True)

    def make_room(self, n_inputs: int) -> None:
        """Take a core of other sizes where one more would not fit its budget of bytes."""
        self.core = self.core.with_room(self.n_lags + n_inputs, 1, self.keys)

    def begin(self, n_inputs: int, n_outputs: int) -> None:
        """Begin with the inputs of the first record."""
        self.core.begin(self.n_lags + n_inputs, n_outputs)

    def widen(self, n_inputs: int) -> None:
        """Give more inputs a place, as they come."""
        self.core.widen(self.n_lags + n_inputs)

    def advance(self, lags: Array, values: Array, rows: Rows, y: Array, weights: Array, known: Array) -> Array:
        """Predict, then learn, records.

        - lags, values: Of n records, the lags (n, L) and the inputs that have a place (n, d).
        - rows: The records, for what they have next to these.
        - y, weights, known: Targets, weights and which records are learned, of shape (n,).

        Returns the predictions, float64 of shape (n, 1).
        """
        given = np.concatenate([lags, self.bounded(values)], axis=1)
        scaling, feature_map = self.scaling(), self.core.feature_map(self.keys, rows.extra_keys)
        past = last_known(lags)
        said = self.core.advance(Arrivals(given, rows.extras, known, y, weights, past, scaling, feature_map))
        return np.ascontiguousarray(said[:, [PREDICTION]])

    def bounded(self, values: Array) -> Array:
        """Inputs within the limits of those that are not standardized."""
        return values if self.standardize else np.clip(values, -RAW_LIMIT, RAW_LIMIT)

    def end_segment(self, n_records: int) -> bool:
        """End a segment, as the plain core does; whether the metric was learned again."""
        return self.core.end_segment(n_records, self.keys)

    @property
    def keys(self) -> Array:
        """The keys of lags and inputs that have a place."""
        n = self.core.n_inputs
        if len(self._keys) != n:  # the array in hand is known again by `feature_map`
            self._keys = np.concatenate([self._lag_keys, self.columns.keys[: n - self.n_lags]])
        return self._keys

    def scaling(self) -> Scaling:
        """The moments of what has a place."""
        self.scaler.fit()
        return self.scaler.scaling(self.core.n_inputs)

    def feature_map(self) -> FeatureMap:
        """How scaled rows become columns."""
        return self.core.feature_map(self.keys)

    def state(self) -> State:
        """The fields of the state, with a prefix that tells them from those of the plain core."""
        self.scaler.fit()
        return {f"{_PREFIX}{name}": value for name, value in {**self.core.state(), **self.scaler.state()}.items()}

    def load_state(self, state: State, began: bool) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit, and then the core is spoilt."""
        own = {name.removeprefix(_PREFIX): value for name, value in state.items() if name.startswith(_PREFIX)}
        own["n_records"] = state.get("n_records")
        self._keys = np.zeros(0, np.uint64)
        if self.core.budget and began:
            self.core = self.core.budget.core_of(own)
        self.core.load_state(own, began, 1, self.n_lags + len(self.columns))
        self.scaler.load_state(own)
