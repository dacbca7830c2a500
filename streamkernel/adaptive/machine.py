"""The adaptive kernel machine: its state, and `advance`, the one way it learns.

Every labelled record is learnt at once: there is no mini-batch. After the numbers of records in the schedule, and after
a change of the stream, the metric is learnt anew from the last records, which then pass through fresh heads.
"""

import abc
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from streamkernel.adaptive import metric
from streamkernel.adaptive.change import BLOCK
from streamkernel.adaptive.experts import LabelExperts, NumberExperts
from streamkernel.adaptive.fast_path import AdaptiveFastPath
from streamkernel.adaptive.features import AdaptiveFeatures
from streamkernel.adaptive.recent import Recent
from streamkernel.fields import Rules, all_from_zero, array, checked, state_mismatch, whole
from streamkernel.kernels.drawing import median_bandwidth, slope_frequencies
from streamkernel.records.batches import BatchEncoder, Records
from streamkernel.records.classes import Classes
from streamkernel.records.inputs import Inputs
from streamkernel.records.numbers import Numbers
from streamkernel.records.results import BatchResult, joined_targets, padded
from streamkernel.records.rows import Rows
from streamkernel.records.targets import Encoded
from streamkernel.state import Array, State

_NO_KEYS = np.zeros(0, np.uint64)
_RULES: Rules = {"importance": all_from_zero}


class AdaptiveMachine(abc.ABC):
    """State and learning that classes and numbers share.

    Parameters
    ----------
    inputs, targets, columns, experts
        The parts, fresh.
    schedule
        Labelled records after which the metric is learnt anew.
    buffer_size
        Records it is learnt from.

    """

    targets: Classes | Numbers
    experts: LabelExperts | NumberExperts

    def __init__(self, inputs: Inputs, columns: AdaptiveFeatures, schedule: Sequence[int], buffer_size: int) -> None:
        self.inputs = inputs
        self.columns = columns
        self.schedule = sorted(int(n) for n in schedule)
        self.recent = Recent(buffer_size)
        self.importance = np.zeros(0)
        self.n_records = 0
        self._encoder = BatchEncoder(inputs, self.targets)
        self._fast_path: AdaptiveFastPath | None = None

    def advance(self, xs: Records, ys: Sequence[Any], ws: Sequence[float] | None = None) -> BatchResult:
        """Predict records, then learn them, one after the other.

        Parameters
        ----------
        xs
            The records' inputs.
        ys
            Their targets; None is predicted and changes nothing.
        ws
            Weights; None is 1 each. A weight of 0 leaves the experts as they are.

        Raises
        ------
        ValueError
            A record cannot be used. Nothing of the call is learnt then.

        """
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
        parts = [self._predict(rows) for _, rows in self._encoder.encoded(xs, [None] * len(xs))]
        return parts[0] if len(parts) == 1 else np.concatenate([self._nothing(0), *parts])

    def state(self) -> State:
        """The fields of the state."""
        return {
            "n_records": self.n_records,
            **self.inputs.state(),
            **self.targets.state(),
            **self.columns.state(),
            **self.experts.state(),
            **self.recent.state(),
            **checked({"importance": self.importance.copy()}, _RULES),
        }

    def load_state(self, state: State) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit, and then the machine is spoilt."""
        self.n_records = whole(state, "n_records")
        self.inputs.load_state(state)
        self.targets.load_state(state)
        self.columns.load_state(state)
        if self.columns.n_inputs > len(self.inputs):
            raise state_mismatch("metric_scales")
        began = self.n_records > 0
        self.experts.load_state(
            state,
            self.columns.n_columns if began else 0,
            self.columns.n_linear if began and self.columns.has_linear else None,
            self.targets.n_outputs if began else 0,
            self.columns.n_inputs if began else 0,
        )
        self.recent.load_state(state, self.columns.n_inputs)
        checked(state, _RULES)
        self.importance = array(state, "importance", np.float64, None)
        if len(self.importance) > self.columns.n_inputs:
            raise state_mismatch("importance")

    def _results(self, xs: Records, ys: Sequence[Any], ws: Sequence[float] | None) -> Iterator[BatchResult]:
        """Learn records segment by segment, as the results are taken."""
        for rows, targets, weights in self._encoder.take(xs, ys, ws):
            for segment in self._segments(rows, targets):
                yield self._learn(rows.part(segment), targets[segment], weights[segment])

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
        learnt = np.array([y is not None for y in targets], np.bool_)
        arrives = self._arrivals(rows.values, learnt)
        joins = self._joins(targets)
        after = self.n_records + np.cumsum(learnt)
        relearns = learnt & (np.isin(after, self.schedule) | (after % BLOCK == 0))
        begins = learnt & (after == 1)
        cuts = np.flatnonzero(arrives | joins | begins).tolist() + (np.flatnonzero(joins | relearns) + 1).tolist()
        edges = sorted({0, *cuts, len(targets)})
        yield from (slice(start, stop) for start, stop in itertools.pairwise(edges))

    def _is_steady(self, targets: Sequence[Any]) -> bool:
        """Whether nothing can happen that needs a cut, which is cheap to see and mostly so."""
        n = self.n_records
        return (
            n > 0
            and self.columns.n_inputs == len(self.inputs)
            and not any(n < stop < n + len(targets) for stop in self.schedule)
            and (n + len(targets) - 1) // BLOCK == n // BLOCK
            and not self._joins(targets).any()
        )

    def _arrivals(self, values: Array, learnt: Array) -> Array:
        """Which records bring an input that has no place yet."""
        arrives = np.zeros(len(values), np.bool_)
        fresh = ~np.isnan(values[:, self.columns.n_inputs :]) & learnt[:, None]
        if fresh.size:
            arrives[np.argmax(fresh, axis=0)[fresh.any(axis=0)]] = True
        return arrives

    def _predict(self, rows: Rows) -> Array:
        """Let rows pass that are not learnt."""
        n = len(rows.values)
        return self._pass(rows, self._unknown(n), np.zeros(n)) if self.n_records else self._nothing(n)

    def _learn(self, rows: Rows, targets: Sequence[Any], weights: Array) -> BatchResult:
        """One segment: every record meets matrices of the same shape."""
        n_learnt = sum(y is not None for y in targets)
        if not n_learnt:
            return self._result(self._encoded(targets), self._predict(rows))
        if not self.n_records or self.columns.n_inputs < len(self.inputs):
            self._make_room(rows.values[[y is not None for y in targets]])
        result = self._predict_then_learn(rows, targets, weights)
        self._count(n_learnt)
        return result

    def _count(self, n_learnt: int) -> None:
        """Count records learnt, and learn the metric where it is time."""
        self.n_records += n_learnt
        since = self.experts.change.end_block(self.n_records) if self.n_records % BLOCK == 0 else 0
        if since:
            self.experts.forest.keep_last(since)
        if self.n_records in self.schedule or (since and self.schedule):
            self._learn_metric(since)

    def _open_fast_path(self) -> AdaptiveFastPath | None:
        """The fast path, if all columns are numbers that have a place."""
        if self._fast_path is None and self.n_records:
            names = self.inputs.columns.plain_names
            if names and len(names) == self.columns.n_inputs:
                self._fast_path = AdaptiveFastPath(
                    names,
                    self._unknown(1),
                    self.experts,
                    self.columns.n_columns,
                    self.inputs.scaler.scaling(len(names)),
                    self.columns.feature_map(self.inputs.columns.keys, _NO_KEYS),
                    self.recent.window,
                )
        return self._fast_path

    def _pass(self, rows: Rows, y: Array, weights: Array) -> Array:
        """Let rows through scaling, columns and experts."""
        values, keys, width = rows.values, self.inputs.columns.keys, self.columns.n_inputs
        if width < len(keys):
            values, keys = np.ascontiguousarray(values[:, :width]), keys[:width]
        return self.experts.advance(
            values,
            rows.extras,
            y,
            weights,
            self._is_known(y),
            self.inputs.scaler.scaling(width),
            self.columns.feature_map(keys, rows.extra_keys),
            self.recent.window,
        )

    def _make_room(self, values: Array) -> None:
        """Give the inputs of these records their places."""
        self._fast_path = None
        seen = np.flatnonzero(~np.isnan(values).all(axis=0))
        width = int(seen[-1]) + 1 if len(seen) else 0
        if not self.n_records:
            self.columns.begin(width)
            linear = self.columns.n_linear if self.columns.has_linear else None
            self.experts.begin(self.columns.n_columns, linear, self.targets.n_outputs, width)
        while self.columns.n_inputs < width:
            if self.columns.add_input():
                self.experts.add_column()
        self.experts.forest.widen(self.columns.n_inputs)
        self.recent.widen(self.columns.n_inputs)

    def _learn_metric(self, since: int) -> None:
        """Weigh the inputs by the slopes of the slowest head, and let the last records pass through fresh heads.

        Those since a change, or all that are remembered where `since` is 0.
        """
        self._fast_path = None
        X, y, w = (part[-since:] for part in self.recent.rows())
        columns, experts = self.columns, self.experts
        keys = self.inputs.columns.keys[: columns.n_inputs]
        feature_map = columns.feature_map(keys, _NO_KEYS)
        self.importance = metric.importance(
            columns.of(X, keys),
            experts.slowest_head,
            feature_map._replace(W=slope_frequencies(columns.kernel, feature_map.W)),
        )
        scales = metric.scales_of(self.importance)
        bandwidth = columns.kernel.bandwidth or median_bandwidth(columns.kernel, X[-metric.NEAREST :] * scales)
        before = max(columns.d0, 1)
        columns.set_metric(scales, bandwidth)
        if columns.d0 > before:
            experts.rescale_inputs(math.sqrt(before / columns.d0))
        experts.forget_heads()
        experts.replay(columns.of(X, keys), y, w)

    def _joins(self, targets: Sequence[Any]) -> Array:
        """Which records bring a new class."""
        return np.zeros(len(targets), np.bool_)

    @abc.abstractmethod
    def _unknown(self, n: int) -> Array:
        """Targets of records that are predicted only."""

    @abc.abstractmethod
    def _is_known(self, y: Array) -> Array:
        """Which records are learnt."""

    @abc.abstractmethod
    def _nothing(self, n: int) -> Array:
        """The predictions of n records before anything was learnt."""

    @abc.abstractmethod
    def _encoded(self, targets: Sequence[Any]) -> Encoded:
        """Encode the targets of a segment; a new label joins."""

    @abc.abstractmethod
    def _predict_then_learn(self, rows: Rows, targets: Sequence[Any], weights: Array) -> BatchResult:
        """Predict, then learn, the records of a segment."""

    @abc.abstractmethod
    def _result(self, targets: Encoded, predictions: Array) -> BatchResult:
        """The result of a segment from its predictions, with the losses these had."""
