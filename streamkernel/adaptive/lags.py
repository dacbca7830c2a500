"""The lags of the target: the last known targets before each record, or those that a record brings itself.

A record must be learned with the lags that it was predicted with. Where labels come late these are no longer the last
known ones, so they travel with the record, under names of their own.

The lagged core has them, and then the inputs of the records. It supplements the plain core, whose last mixture has what
it predicts as one part: where the past of the target is of no use, lags among the inputs do harm.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from streamkernel.adaptive.core import AdaptiveCore
from streamkernel.adaptive.experts import Arrivals
from streamkernel.compute.features import FeatureMap, Scaling
from streamkernel.compute.number_pass import PREDICTION
from streamkernel.fields import Rules, all_finite, array, checked, whole
from streamkernel.records.batches import Records
from streamkernel.records.classes import Classes
from streamkernel.records.frames import Frame
from streamkernel.records.input_columns import RAW_LIMIT, InputColumns, InputScaler
from streamkernel.records.rows import Rows
from streamkernel.records.targets import Numbers
from streamkernel.state import Array, State, key_of

#: The lags that records bring, None where one brings none; None where none of them does.
GivenLags = Sequence[list[Any] | None] | None
#: The name under which a record has its lag l, from 1: no input of a model with lags.
_NAME = "streamkernel.lag.{}"


class TargetLags:
    """The last known targets, and the lags of the records of a call.

    - n_lags: L, 0 for none.
    - targets: The encoder of the targets.
    - last: The last known targets as the encoder has them, numbers or columns of labels, the latest first; NaN where
      there are fewer. float64 of shape (L,).
    - names: The names under which a record has its lags.
    """

    rules: ClassVar[Rules] = {"last_targets": all_finite}

    def __init__(self, n_lags: int, targets: Classes | Numbers) -> None:
        self.names = tuple(_NAME.format(lag + 1) for lag in range(n_lags))
        self._reserved = frozenset(self.names)
        self._targets = targets
        self.last = np.full(n_lags, np.nan)

    def __len__(self) -> int:
        return len(self.names)

    def of_now(self) -> dict[str, Any]:
        """The last known targets by name, None where there are fewer."""
        values = (None if np.isnan(value) else self._targets.value_of(value) for value in self.last.tolist())
        return dict(zip(self.names, values, strict=True))

    def brings(self, x: Mapping[Any, Any]) -> bool:
        """Whether a record brings its lags."""
        return not x.keys().isdisjoint(self._reserved)

    def parted(self, xs: Records) -> tuple[Records, GivenLags]:
        """Part records from the lags they bring; None for those that bring none, and where none of them does.

        ValueError: A lag is no target.
        """
        if not self.names:
            return xs, None
        if isinstance(xs, Frame):
            rest, columns = xs.parted(self._reserved)
            if not columns:
                return xs, None
            rows = [columns.get(name, [None] * len(xs)) for name in self.names]
            return rest, [self._checked(row) for row in zip(*rows, strict=True)]
        brings = [*map(self.brings, xs)]
        if not any(brings):
            return xs, None
        given = [self._checked([*map(x.get, self.names)]) if own else None for x, own in zip(xs, brings, strict=True)]
        return [{name: value for name, value in x.items() if name not in self._reserved} for x in xs], given

    def before(self, targets: Array, given: GivenLags) -> Array:
        """The lags of n records with these targets, one after the other, which are not taken yet.

        - targets: Encoded, float64 of shape (n,); NaN is not known.
        - given: The lags that records bring, as `parted` gives them.

        Returns float64 of shape (n, L), NaN where not known.
        """
        L, known = len(self), ~np.isnan(targets)
        if not L:
            return np.zeros((len(targets), 0))
        so_far = np.concatenate([self.last[::-1], targets[known]])
        before = np.cumsum(known) - known
        lags = so_far[L - 1 + before[:, None] - np.arange(L)]
        for r, own in enumerate(given or ()):
            if own is not None:
                lags[r] = [self._encoded(value) for value in own]
        return lags

    def take(self, targets: Array) -> None:
        """Take targets that are known now, float64 of shape (n,), in their order; NaN is not known."""
        if not len(self):
            return
        known = targets[~np.isnan(targets)][-len(self) :]
        n = len(known)
        if n:
            self.last[n:] = self.last[: len(self) - n].copy()
            self.last[:n] = known[::-1]

    def take_one(self, target: float) -> None:
        """Take one target that is known now."""
        if self.names:
            self.last[1:] = self.last[:-1]
            self.last[0] = target

    def state(self) -> State:
        """The fields of the state."""
        if not self.names:
            return {}
        return checked({"last_targets": self.last[~np.isnan(self.last)]}, self.rules)

    def load_state(self, state: State) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        self.last[:] = np.nan
        if self.names:
            checked(state, self.rules)
            last = array(state, "last_targets", np.float64, None)
            self.last[: whole({"last_targets": len(last)}, "last_targets", len(self))] = last

    def _checked(self, lags: Sequence[Any]) -> list[Any]:
        # NaN is not known, as in any input.
        plain = [None if isinstance(value, float) and np.isnan(value) else value for value in lags]
        try:
            return self._targets.prepare(plain)[0]
        except ValueError as error:
            raise ValueError(f"a lag that a record brings: {error}") from None

    def _encoded(self, value: Any) -> float:
        known = None if value is None else self._targets.known(value)
        return np.nan if known is None else known


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
