"""The adaptive kernel machine: its state, and `advance`, the one way it learns.

Every labelled record is learnt at once: there is no mini-batch. After the numbers of records in the schedule the metric
is learnt anew from the last records, which then pass through fresh heads.
"""

import abc
import bisect
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkernel.adaptive import metric
from streamkernel.adaptive.columns import Columns
from streamkernel.adaptive.experts import LabelExperts, NumberExperts
from streamkernel.adaptive.recent import Recent
from streamkernel.inputs import Inputs, Rows
from streamkernel.intake import Intake
from streamkernel.state import Array, Record, array, misfit, whole
from streamkernel.targets import Classes, Numbers

_FLOAT32 = np.dtype("float32")
#: No record counts as more: beyond, float64 cannot keep P positive, nor the ridge in the fit of the metric.
HEAVIEST = 1e6
_NO_KEYS = np.zeros(0, np.uint64)


@dataclass(frozen=True)
class Answered:
    """What `advance` said of its records before it learnt them.

    Attributes
    ----------
    said
        Probabilities (n, K), or predictions and their deviations (n, 2).
    known
        Classes known before each record, int64 of shape (n,); 0 for numbers.
    losses
        The loss of each, (n,); NaN where there is no label.

    """

    said: Array
    known: Array
    losses: Array


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

    def __init__(self, inputs: Inputs, columns: Columns, schedule: Sequence[int], buffer_size: int) -> None:
        self.inputs = inputs
        self.columns = columns
        self.schedule = sorted(int(n) for n in schedule)
        self.recent = Recent(buffer_size)
        self.importance = np.zeros(0)
        self.n_records = 0
        self._intake = Intake(inputs, self.targets)

    def advance(
        self, xs: Sequence[Mapping[Any, Any]], ys: Sequence[Any], ws: Sequence[float] | None = None
    ) -> Answered:
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
        parts: list[Answered] = []
        for rows, targets, weights in self._intake.take(xs, ys, ws):
            parts.extend(
                self._learn(rows.part(stretch), targets[stretch], weights[stretch])
                for stretch in self._stretches(rows, targets)
            )
        return self._joined(parts)

    def learn(self, xs: Sequence[Mapping[Any, Any]], ys: Sequence[Any], ws: Sequence[float] | None = None) -> None:
        """Learn records as `advance` does."""
        for rows, targets, weights in self._intake.take(xs, ys, ws):
            for stretch in self._stretches(rows, targets):
                self._learn(rows.part(stretch), targets[stretch], weights[stretch])

    def record(self) -> Record:
        """The fields of the state."""
        return {
            "n_records": self.n_records,
            **self.inputs.record(),
            **self.targets.record(),
            **self.columns.record(),
            **self.experts.record(),
            **self.recent.record(self.columns.n_inputs),
            "importance": self.importance.copy(),
        }

    def restore(self, record: Record) -> None:
        """Take the fields that `record` gave; ValueError where they do not fit, and then the machine is spoilt."""
        self.n_records = whole(record, "n_records")
        self.inputs.restore(record)
        self.targets.restore(record)
        self.columns.restore(record)
        if self.columns.n_inputs > len(self.inputs):
            raise misfit("metric_scales")
        began = self.n_records > 0
        self.experts.restore(
            record,
            self.columns.n_columns if began else 0,
            self.columns.n_linear if began and self.columns.has_linear else None,
            self.targets.n_outputs if began else 0,
        )
        self.recent.restore(record, self.columns.n_inputs)
        self.importance = array(record, "importance", np.float64, None)
        if len(self.importance) > self.columns.n_inputs:
            raise misfit("importance")

    def _stretches(self, rows: Rows, targets: Sequence[Any]) -> Iterator[slice]:
        """Cut where the matrices change their shape or their contents: new inputs, new classes, a new metric."""
        if self._is_steady(targets):
            yield slice(0, len(targets))
            return
        learnt = np.array([y is not None for y in targets], np.bool_)
        arrives = self._arrivals(rows.values, learnt)
        joins = self._joins(targets)
        after = self.n_records + np.cumsum(learnt)
        relearns = learnt & np.isin(after, self.schedule)
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
            and bisect.bisect_right(self.schedule, n) == bisect.bisect_right(self.schedule, n + len(targets))
            and not self._joins(targets).any()
        )

    def _arrivals(self, values: Array, learnt: Array) -> Array:
        """Which records bring an input that has no place yet."""
        arrives = np.zeros(len(values), np.bool_)
        fresh = ~np.isnan(values[:, self.columns.n_inputs :]) & learnt[:, None]
        if fresh.size:
            arrives[np.argmax(fresh, axis=0)[fresh.any(axis=0)]] = True
        return arrives

    def _learn(self, rows: Rows, targets: Sequence[Any], weights: Array) -> Answered:
        """One stretch: every record meets matrices of the same shape."""
        learnt = np.array([y is not None for y in targets], np.bool_)
        d = len(self.inputs)
        X = self.inputs.scale(rows, learnt, _FLOAT32)
        weights = np.minimum(weights, HEAVIEST)
        n_learnt = int(learnt.sum())
        if n_learnt and (not self.n_records or self.columns.n_inputs < d):
            self._make_room(rows.values[learnt])
        if not self.n_records and not n_learnt:
            return self._nothing(len(targets))
        width, keys = self.columns.n_inputs, self.inputs.keys
        if width < d:
            X, keys = np.concatenate([X[:, :width], X[:, d:]], axis=1), keys[:width]
        answered, y = self._teach(self.columns.of(X, keys, rows.extra_keys), targets, weights)
        if n_learnt:
            self.recent.append(X[learnt, :width], y[learnt], weights[learnt])
            self.n_records += n_learnt
            if self.n_records in self.schedule:
                self._learn_metric()
        return answered

    def _make_room(self, values: Array) -> None:
        """Give the inputs of these records their places."""
        seen = np.flatnonzero(~np.isnan(values).all(axis=0))
        width = int(seen[-1]) + 1 if len(seen) else 0
        if not self.n_records:
            self.columns.begin(width)
            linear = self.columns.n_linear if self.columns.has_linear else None
            self.experts.begin(self.columns.n_columns, linear, self.targets.n_outputs)
        while self.columns.n_inputs < width:
            if self.columns.add_input():
                self.experts.add_column()

    def _learn_metric(self) -> None:
        """Fit once, weigh the inputs, and let the last records pass through fresh heads."""
        X, y, w = self.recent.rows()
        columns = self.columns
        full = np.zeros((len(X), columns.n_inputs), _FLOAT32)
        full[:, : X.shape[1]] = X
        keys = self.inputs.keys[: columns.n_inputs]
        Phi = columns.of(full, keys, _NO_KEYS)
        coefficients = metric.fit_ridge(Phi, self._regressed(y), w, self.experts.ridge)
        slopes = metric.gradients(
            Phi, coefficients, columns.frequencies(keys), columns.scales, columns.d0, columns.n_linear
        )
        self.importance = metric.importance(slopes)
        scales = metric.scales_of(self.importance)
        kernel = columns.kernel
        bandwidth = kernel.bandwidth or kernel.median_bandwidth(full[-metric.NEAREST :] * scales)
        before = max(columns.d0, 1)
        columns.set_metric(scales, bandwidth)
        if columns.d0 > before:
            self.experts.rescale_inputs(math.sqrt(before / columns.d0))
        self.experts.forget_heads()
        self._rehearse(columns.of(full, keys, _NO_KEYS), y, w)

    @abc.abstractmethod
    def _joins(self, targets: Sequence[Any]) -> Array:
        """Which records bring a new class."""

    @abc.abstractmethod
    def _nothing(self, n: int) -> Answered:
        """What there is to say before anything was learnt."""

    @abc.abstractmethod
    def _teach(self, Phi: Array, targets: Sequence[Any], weights: Array) -> tuple[Answered, Array]:
        """Predict, then learn, the records of a stretch; with their targets as the buffer keeps them."""

    @abc.abstractmethod
    def _regressed(self, y: Array) -> Array:
        """Targets of the buffer as the heads see them, (n, K)."""

    @abc.abstractmethod
    def _rehearse(self, Phi: Array, y: Array, w: Array) -> None:
        """Let records of the buffer pass through fresh heads."""

    @abc.abstractmethod
    def _joined(self, parts: Sequence[Answered]) -> Answered:
        """Answers one after the other."""


class LabelMachine(AdaptiveMachine):
    """For classes."""

    def __init__(
        self,
        inputs: Inputs,
        targets: Classes,
        columns: Columns,
        experts: LabelExperts,
        schedule: Sequence[int],
        buffer_size: int,
    ) -> None:
        self.targets: Classes = targets
        self.experts: LabelExperts = experts
        super().__init__(inputs, columns, schedule, buffer_size)

    def _joins(self, targets: Sequence[Any]) -> Array:
        known = set(self.targets.labels)
        joins = np.zeros(len(targets), np.bool_)
        if known.issuperset(targets) or (len(targets) == 1 and targets[0] is None):
            return joins
        for i, label in enumerate(targets):
            if label is not None and label not in known:
                known.add(label)
                joins[i] = True
        return joins

    def _nothing(self, n: int) -> Answered:
        return Answered(np.zeros((n, 0)), np.zeros(n, np.int64), np.full(n, np.nan))

    def _teach(self, Phi: Array, targets: Sequence[Any], weights: Array) -> tuple[Answered, Array]:
        before = self.targets.n_outputs
        encoded = self.targets.admit(targets)
        labelled = encoded.labelled
        labels = np.where(labelled & (weights > 0), encoded.y, -1).astype(np.int64)
        said = None
        for _ in range(before, self.targets.n_outputs):  # at most one, and then the stretch is its record
            said = self.experts.learn(Phi, np.full(len(Phi), -1), weights) if before else np.zeros((len(Phi), 0))
            self.experts.add_output()
        learnt = self.experts.learn(Phi, labels, np.where(weights > 0, weights, 1.0))
        losses = np.full(len(Phi), np.nan)
        rows = np.flatnonzero(labelled)
        losses[rows] = -np.log(np.maximum(learnt[rows, encoded.y[rows].astype(np.int64)], 1e-15))
        return Answered(learnt if said is None else said, encoded.before[:, 0].astype(np.int64), losses), encoded.y

    def _regressed(self, y: Array) -> Array:
        K = self.targets.n_outputs
        return np.asarray(np.eye(K)[y.astype(np.int64)] - 1 / K)

    def _rehearse(self, Phi: Array, y: Array, w: Array) -> None:
        self.experts.learn(Phi, np.where(w > 0, y, -1).astype(np.int64), np.where(w > 0, w, 1.0), only_heads=True)

    def _joined(self, parts: Sequence[Answered]) -> Answered:
        if len(parts) == 1:
            return parts[0]
        K = self.targets.n_outputs
        said = [np.pad(part.said, ((0, 0), (0, K - part.said.shape[1]))) for part in parts]
        return Answered(
            np.concatenate([np.zeros((0, K)), *said]),
            np.concatenate([np.zeros(0, np.int64), *(part.known for part in parts)]),
            np.concatenate([np.zeros(0), *(part.losses for part in parts)]),
        )


class NumberMachine(AdaptiveMachine):
    """For numbers."""

    def __init__(
        self,
        inputs: Inputs,
        targets: Numbers,
        columns: Columns,
        experts: NumberExperts,
        schedule: Sequence[int],
        buffer_size: int,
    ) -> None:
        self.targets: Numbers = targets
        self.experts: NumberExperts = experts
        super().__init__(inputs, columns, schedule, buffer_size)

    def _joins(self, targets: Sequence[Any]) -> Array:
        return np.zeros(len(targets), np.bool_)

    def _nothing(self, n: int) -> Answered:
        return Answered(np.zeros((n, 2)), np.zeros(n, np.int64), np.full(n, np.nan))

    def _teach(self, Phi: Array, targets: Sequence[Any], weights: Array) -> tuple[Answered, Array]:
        y = np.array([np.nan if target is None else target for target in targets], np.float64)
        learnable = np.where(weights > 0, y, np.nan)
        said = self.experts.learn(Phi, learnable, np.where(weights > 0, weights, 1.0))
        # In units of the target's deviation, as the losses of the other regressors are.
        losses = (said[:, 0] - y) ** 2 / said[:, 2]
        return Answered(said[:, :2], np.zeros(len(y), np.int64), losses), y

    def _regressed(self, y: Array) -> Array:
        return np.asarray((y - y.mean()) / (y.std() or 1.0))[:, None]

    def _rehearse(self, Phi: Array, y: Array, w: Array) -> None:
        self.experts.learn(Phi, np.where(w > 0, y, np.nan), np.where(w > 0, w, 1.0), only_heads=True)

    def _joined(self, parts: Sequence[Answered]) -> Answered:
        if len(parts) == 1:
            return parts[0]
        return Answered(
            np.concatenate([np.zeros((0, 2)), *(part.said for part in parts)]),
            np.concatenate([np.zeros(0, np.int64), *(part.known for part in parts)]),
            np.concatenate([np.zeros(0), *(part.losses for part in parts)]),
        )
