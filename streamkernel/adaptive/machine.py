"""The adaptive kernel machine: its state, and `advance`, the one way it learns.

Every labeled record is learned at once: there is no mini-batch. Records become rows of numbers here, and segments of
rows in which nothing changes its shape; what is predicted and learned from these is the core's.
"""

import abc
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from streamkernel.adaptive.change import BLOCK
from streamkernel.adaptive.core import AdaptiveCore
from streamkernel.adaptive.experts import Arrivals
from streamkernel.adaptive.fast_path import AdaptiveFastPath
from streamkernel.adaptive.lags import GivenLags, LaggedCore, TargetLags
from streamkernel.adaptive.target_experts import LabelExperts, NumberExperts
from streamkernel.compute.number_pass import DEVIATION, PREDICTION, VARIANCE
from streamkernel.fields import state_mismatch, whole
from streamkernel.records.batches import BatchEncoder, Records
from streamkernel.records.classes import Classes
from streamkernel.records.inputs import Inputs
from streamkernel.records.results import BatchResult, joined_targets, padded
from streamkernel.records.rows import Rows
from streamkernel.records.targets import Encoded, Numbers, in_variances
from streamkernel.state import Array, State


class AdaptiveMachine(abc.ABC):
    """State and learning that classes and numbers share.

    - lags: The last known targets, fresh.
    - lagged: The core that sees them, fresh; None for none.
    - core: What predicts and learns rows of numbers.
    - n_records: Labeled records learned.
    - n_relearnings: Metrics that took effect since this machine was made, of both cores; it is not part of the state.
    """

    targets: Classes | Numbers

    def __init__(
        self,
        inputs: Inputs,
        core: AdaptiveCore,
        lags: TargetLags,
        lagged: LaggedCore | None = None,
    ) -> None:
        self.inputs = inputs
        self.lags = lags
        self.lagged = lagged
        self.core = core
        self.n_records = 0
        self.n_relearnings = 0
        self._encoder = BatchEncoder(inputs, self.targets)
        self._fast_path: AdaptiveFastPath | None = None

    @property
    def experts(self) -> LabelExperts | NumberExperts:
        """The experts of the core."""
        return self.core.experts

    def advance(self, xs: Records, ys: Sequence[Any], ws: Sequence[float] | None = None) -> BatchResult:
        """Predict records, then learn them. A weight of 0 leaves the experts as they are."""
        parts = list(self._results(xs, ys, ws))
        return parts[0] if len(parts) == 1 else self._joined(parts)

    def learn(self, xs: Records, ys: Sequence[Any], ws: Sequence[float] | None = None) -> None:
        """Learn records as `advance` does."""
        for _ in self._results(xs, ys, ws):
            pass

    def learn_plain(self, x: Mapping[Any, Any], y: Any) -> bool:
        """Learn a record of known numbers and a known label, of weight 1; False, and nothing is done, of another."""
        truth = self.targets.known(y)
        if truth is None or not (fast_path := self._open_fast_path()) or not fast_path.learn(x, truth):
            return False
        self._count(1)
        return True

    def predict_one(self, x: Mapping[Any, Any]) -> list[float]:
        """The prediction of a record; nothing is changed."""
        if (fast_path := self._open_fast_path()) and (prediction := fast_path.predict(x)) is not None:
            return prediction
        row: list[float] = self.predict([x])[0].tolist()
        return row

    def predict(self, xs: Records) -> Array:
        """The predictions of records, (n, K), or (n, 3) of numbers; nothing is changed."""
        xs, given = self.lags.parted(xs)
        encoded = self._encoder.encoded(xs, [None] * len(xs))
        parts = [self.predict_rows(rows, given and given[part]) for part, rows in encoded]
        return parts[0] if len(parts) == 1 else np.concatenate([self._nothing(0), *parts])

    def predict_rows(self, rows: Rows, lags: GivenLags) -> Array:
        """The predictions of encoded records, with the lags they bring; nothing is changed."""
        n = len(rows.values)
        return self._pass(rows, self._unknown(n), np.zeros(n), lags) if self.n_records else self._nothing(n)

    def state(self) -> State:
        """The fields of the state."""
        return {
            "n_records": self.n_records,
            **self.inputs.state(),
            **self.targets.state(),
            **self.core.state(),
            **self.lags.state(),
            **(self.lagged.state() if self.lagged else {}),
        }

    def load_state(self, state: State) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit, and then the machine is spoilt."""
        self.n_records = whole(state, "n_records")
        self.inputs.load_state(state)
        self.targets.load_state(state)
        self.lags.load_state(state)
        if self.core.budget and not self.n_records:
            return  # what fits is chosen at the first labeled record
        if self.core.budget:
            self.core = self.core.budget.core_of(state)
        self.core.load_state(state, self.n_records > 0, self.targets.n_outputs, len(self.inputs))
        if self.lagged:
            self.lagged.load_state(state, self.n_records > 0)
            if self.lagged.core.n_inputs != (self.core.n_inputs + len(self.lags) if self.n_records else 0):
                raise state_mismatch("lagged_metric_scales")

    def _results(self, xs: Records, ys: Sequence[Any], ws: Sequence[float] | None) -> Iterator[BatchResult]:
        """Learn records segment by segment, as the results are taken."""
        xs, given = self.lags.parted(xs)
        for rows, targets, weights in self._encoder.take(xs, ys, ws):
            for segment in self._segments(rows, targets):
                lags = given and given[segment]
                yield self._learn(rows.part(segment), targets[segment], weights[segment], lags)
            given = given and given[len(targets) :]

    def _joined(self, parts: Sequence[BatchResult]) -> BatchResult:
        """The results of segments one after the other; a class that was not known yet has probability 0."""
        parts = [self._result(self._encoded([]), self._nothing(0)), *parts]
        deviations = [part.deviations for part in parts if part.deviations is not None]
        return BatchResult(
            joined_targets([part.targets for part in parts]),
            np.concatenate([padded(part.predictions, self.targets.n_outputs) for part in parts]),
            np.concatenate([part.losses for part in parts]),
            np.concatenate(deviations) if deviations else None,
        )

    def _segments(self, rows: Rows, targets: Sequence[Any]) -> Iterator[slice]:
        """Cut where the matrices change their shape or their contents: new inputs, new classes, a new metric."""
        if self._is_steady(targets):
            yield slice(0, len(targets))
            return
        learned = np.array([y is not None for y in targets], np.bool_)
        arrives = self._arrivals(rows.values, learned)
        joins = self._joins(targets)
        after = self.n_records + np.cumsum(learned)
        relearns = learned & (np.isin(after, self.core.schedule) | (after % BLOCK == 0))
        begins = learned & (after == 1)
        cuts = np.flatnonzero(arrives | joins | begins).tolist() + (np.flatnonzero(joins | relearns) + 1).tolist()
        edges = sorted({0, *cuts, len(targets)})
        for start, stop in itertools.pairwise(edges):
            # Asked again after each segment: they are learned as they are taken.
            while self._is_relearning and (known := np.flatnonzero(learned[start:stop])[:1]).size:
                first, start = start, start + int(known[0]) + 1
                yield slice(first, start)
            if start < stop:
                yield slice(start, stop)

    def _is_steady(self, targets: Sequence[Any]) -> bool:
        """Whether nothing can happen that needs a cut, which is cheap to see and mostly so."""
        n = self.n_records
        return (
            n > 0
            and not self._is_relearning
            and self.core.n_inputs == len(self.inputs)
            and not any(n < stop < n + len(targets) for stop in self.core.schedule)
            and (n + len(targets) - 1) // BLOCK == n // BLOCK
            and not self._joins(targets).any()
        )

    @property
    def _is_relearning(self) -> bool:
        """Whether a metric is in the making."""
        return self.core.is_relearning or (self.lagged is not None and self.lagged.core.is_relearning)

    def _arrivals(self, values: Array, learned: Array) -> Array:
        """Which records bring an input that has no place yet."""
        arrives = np.zeros(len(values), np.bool_)
        fresh = ~np.isnan(values[:, self.core.n_inputs :]) & learned[:, None]
        if fresh.size:
            arrives[np.argmax(fresh, axis=0)[fresh.any(axis=0)]] = True
        return arrives

    def _learn(self, rows: Rows, targets: Sequence[Any], weights: Array, lags: GivenLags) -> BatchResult:
        """One segment: every record meets matrices of the same shape."""
        n_learned = sum(y is not None for y in targets)
        if not n_learned:
            return self._result(self._encoded(targets), self.predict_rows(rows, lags))
        if not self.n_records and lags:
            lags = [None, *lags[1:]]  # the first of all was predicted with none
        if not self.n_records or self.core.n_inputs < len(self.inputs):
            self._make_room(rows.values[[y is not None for y in targets]])
        result = self._predict_then_learn(rows, targets, weights, lags)
        self._count(n_learned)
        return result

    def _count(self, n_learned: int) -> None:
        """Count records learned, and let the cores learn their metrics where it is time."""
        self.n_records += n_learned
        n_metrics = int(self.core.end_segment(self.n_records, self._keys))
        if self.lagged:
            n_metrics += self.lagged.end_segment(self.n_records)
        if n_metrics:
            self.n_relearnings += n_metrics
            self._fast_path = None

    @property
    def _keys(self) -> Array:
        """The keys of the inputs that have a place in the core."""
        keys, width = self.inputs.columns.keys, self.core.n_inputs
        return keys if width == len(keys) else keys[:width]

    def _open_fast_path(self) -> AdaptiveFastPath | None:
        """The fast path, if all columns are numbers that have a place."""
        if self._fast_path is None and self.n_records:
            names = self.inputs.columns.plain_names
            if names and len(names) == self.core.n_inputs:
                scaling, feature_map = self.inputs.scaler.scaling(len(names)), self.core.feature_map(self._keys)
                own = self.core, scaling, feature_map
                self._fast_path = AdaptiveFastPath(names, self._unknown(1), *own, self.lags, self.lagged)
        return self._fast_path

    def _pass(self, rows: Rows, y: Array, weights: Array, given: GivenLags) -> Array:
        """Let rows through the cores."""
        values, width, known = rows.values, self.core.n_inputs, (y == y) & (y != self.experts.nothing)
        if width < values.shape[1]:
            values = np.ascontiguousarray(values[:, :width])
        targets = np.where(known, y, np.nan)
        lags = self.lags.before(targets, given)
        past = self.lagged.advance(lags, values, rows, y, weights, known) if self.lagged else self._past(lags)
        self.lags.take(targets)
        scaling, feature_map = self.inputs.scaler.scaling(width), self.core.feature_map(self._keys, rows.extra_keys)
        return self.core.advance(Arrivals(values, rows.extras, known, y, weights, past, scaling, feature_map))

    def _make_room(self, values: Array) -> None:
        """Give the inputs of these records their places."""
        self._fast_path = None
        seen = np.flatnonzero(~np.isnan(values).all(axis=0))
        width = int(seen[-1]) + 1 if len(seen) else 0
        self._fit(max(width, self.core.n_inputs), self.targets.n_outputs)
        if not self.n_records:
            self.core.begin(width, self.targets.n_outputs)
            if self.lagged:
                self.lagged.begin(width, self.targets.n_outputs)
        self.core.widen(width)
        if self.lagged:
            self.lagged.widen(width)

    def _fit(self, n_inputs: int, n_outputs: int) -> None:
        """Take cores of other sizes if the inputs or outputs exceed their budgets of bytes."""
        self.core = self.core.with_room(n_inputs, n_outputs, self._keys)
        if self.lagged:
            self.lagged.make_room(n_inputs)

    def _joins(self, targets: Sequence[Any]) -> Array:
        """Which records bring a new class."""
        return np.zeros(len(targets), np.bool_)

    def _unknown(self, n: int) -> Array:
        """Targets of records that are predicted only."""
        return np.full(n, self.experts.nothing)

    @abc.abstractmethod
    def _nothing(self, n: int) -> Array:
        """The predictions of n records before anything was learned."""

    @abc.abstractmethod
    def _encoded(self, targets: Sequence[Any]) -> Encoded:
        """Encode the targets of a segment; a new label joins."""

    @abc.abstractmethod
    def _past(self, lags: Array) -> Array:
        """What the plain core is given of records with these lags, (n, G), where there is no other core."""

    @abc.abstractmethod
    def _predict_then_learn(self, rows: Rows, targets: Sequence[Any], weights: Array, lags: GivenLags) -> BatchResult:
        """Predict, then learn, the records of a segment."""

    @abc.abstractmethod
    def _result(self, targets: Encoded, predictions: Array) -> BatchResult:
        """The result of a segment from its predictions, with the losses these had."""


class LabelMachine(AdaptiveMachine):
    """The adaptive kernel machine of classifiers: K scores, mixed as probabilities."""

    def __init__(self, inputs: Inputs, targets: Classes, core: AdaptiveCore, lags: TargetLags) -> None:
        self.targets: Classes = targets
        super().__init__(inputs, core, lags)

    def _joins(self, targets: Sequence[Any]) -> Array:
        joined = set()
        joins = np.zeros(len(targets), np.bool_)
        for i, label in enumerate(targets):
            joins[i] = self.targets.is_new(label) and label not in joined
            joined.add(label)
        return joins

    def _nothing(self, n: int) -> Array:
        return np.zeros((n, self.targets.n_outputs))

    def _encoded(self, targets: Sequence[Any]) -> Encoded:
        return self.targets.admit(targets)

    def _past(self, lags: Array) -> Array:
        return np.where(np.isnan(lags), -1, lags).astype(np.int64)

    def _predict_then_learn(self, rows: Rows, targets: Sequence[Any], weights: Array, lags: GivenLags) -> BatchResult:
        is_new = self.targets.is_new(targets[0])  # and then the segment is this record
        before = self.predict_rows(rows, lags) if is_new else None
        encoded = self._encoded(targets)
        if is_new:
            self._fit(self.core.n_inputs, self.targets.n_outputs)
            self.core.add_output()
            self._fast_path = None
        predictions = self._pass(rows, np.where(encoded.labeled, encoded.y, -1).astype(np.int64), weights, lags)
        result = self._result(encoded, predictions)
        return result if before is None else replace(result, predictions=before)

    def _result(self, targets: Encoded, predictions: Array) -> BatchResult:
        losses = np.full(len(targets.y), np.nan)
        rows = np.flatnonzero(targets.labeled)
        losses[rows] = -np.log(np.maximum(predictions[rows, targets.y[rows].astype(np.int64)], 1e-15))
        return BatchResult(targets, predictions, losses)

    def load_state(self, state: State) -> None:
        super().load_state(state)
        if self.n_records and not np.isin(state["recent_targets"], np.arange(self.targets.n_outputs)).all():
            raise state_mismatch("recent_targets")
        if not np.isin(self.lags.last[~np.isnan(self.lags.last)], np.arange(self.targets.n_outputs)).all():
            raise state_mismatch("last_targets")


class NumberMachine(AdaptiveMachine):
    """The adaptive kernel machine of regressors: one score, a prediction with its deviation."""

    def __init__(
        self, inputs: Inputs, targets: Numbers, core: AdaptiveCore, lags: TargetLags, lagged: LaggedCore | None
    ) -> None:
        self.targets: Numbers = targets
        super().__init__(inputs, core, lags, lagged)

    @property
    def experts(self) -> NumberExperts:
        """The experts of the core."""
        assert isinstance(self.core.experts, NumberExperts)
        return self.core.experts

    def _nothing(self, n: int) -> Array:
        return np.tile([0.0, np.nan, 1.0], (n, 1))

    def _encoded(self, targets: Sequence[Any]) -> Encoded:
        return Encoded(np.array(targets, np.float64), np.zeros((len(targets), 2)))  # None is NaN

    def _past(self, lags: Array) -> Array:
        return lags

    def _predict_then_learn(self, rows: Rows, targets: Sequence[Any], weights: Array, lags: GivenLags) -> BatchResult:
        encoded = self._encoded(targets)
        return self._result(encoded, self._pass(rows, encoded.y, weights, lags))

    def _result(self, targets: Encoded, predictions: Array) -> BatchResult:
        losses = in_variances((predictions[:, PREDICTION] - targets.y) ** 2, predictions[:, VARIANCE])
        if self.experts.absolute:
            losses = np.sqrt(losses)
        return BatchResult(targets, predictions[:, [PREDICTION]], losses, predictions[:, DEVIATION])
