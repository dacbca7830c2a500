"""The machine of a batch estimator of least squares, and its batch step.

The machine of least squares that learns from sums over records: its state, and `advance`, by batches of one record.

Records that come one by one are batches of one record each, so that how a stream is cut into calls never changes a bit.

The batch step of least squares: predictions and sums are made where the rows are, and become one step of the machine.

The first rows fix the moments of inputs and targets, by a sample, and the inputs the bandwidth. Every batch is scaled
by the moments of those before it, into which its own sample is taken afterwards; new inputs by those of their own
batch. After the first step, before which no expert could say anything, the experts are weighed by halves of the sample.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamkernel.adaptive.features import NO_KEYS, AdaptiveFeatures
from streamkernel.batch.chunk import BatchChunk, encode
from streamkernel.batch.least_squares_experts import ClassLeastSquares, LeastSquaresExperts, NumberLeastSquares
from streamkernel.batch.passes import AT_ONCE, ScoredChunk
from streamkernel.batch.rows import BatchRows, ScoredBatch, count_arrivals, score_admitted
from streamkernel.batch.sums import LeastSquaresSums
from streamkernel.compute.moments import MEAN
from streamkernel.fields import state_mismatch, whole
from streamkernel.records.batches import BatchEncoder, Records
from streamkernel.records.classes import Classes
from streamkernel.records.inputs import Inputs
from streamkernel.records.results import BatchResult, joined_targets, padded
from streamkernel.records.rows import Rows
from streamkernel.records.targets import Encoded, Numbers, Targets
from streamkernel.state import Array, State

#: Labeled records in which the moments of numbers tell little: what was learned follows them, so that predictions stay.
UNSETTLED = 200


class LeastSquaresMachine:
    """Columns, experts and encoders, which a step changes.

    - ridge, drift_rates: As `LeastSquaresExperts` has them.
    - experts: What predicts and learns columns.
    - n_records: Labeled records learned.
    - n_steps, last_batch_size: Steps so far, and the labeled records of the last one.
    """

    def __init__(
        self,
        inputs: Inputs,
        targets: Classes | Numbers,
        columns: AdaptiveFeatures,
        ridge: float,
        drift_rates: tuple[float, ...],
    ) -> None:
        self.inputs = inputs
        self.targets: Targets = targets
        self.columns = columns
        kind = ClassLeastSquares if isinstance(targets, Classes) else NumberLeastSquares
        self.experts: LeastSquaresExperts = kind(ridge, drift_rates)
        self.n_records = self.n_steps = self.last_batch_size = 0
        self._encoder = BatchEncoder(inputs, targets)
        self._keys = NO_KEYS

    def advance(self, xs: Records, ys: Sequence[Any], ws: Sequence[float] | None = None) -> BatchResult:
        """Predict records, then learn them. A weight of 0 leaves the experts as they are."""
        parts: list[BatchResult] = []
        for rows, targets, weights in self._encoder.take(xs, ys, ws):
            for r, y in enumerate(targets):
                row = rows.part(slice(r, r + 1))
                if y is None:
                    parts.append(BatchResult(Encoded(_UNKNOWN, self.known_before(1)), self._predicted(row), _UNKNOWN))
                else:
                    parts.append(self._learn_row(row, y, weights[r : r + 1]))
        K = self.targets.n_outputs
        return BatchResult(
            joined_targets([part.targets for part in parts]),
            np.concatenate([np.zeros((0, K)), *(padded(part.predictions, K) for part in parts)]),
            np.concatenate([np.zeros(0), *(part.losses for part in parts)]),
        )

    def learn(self, xs: Records, ys: Sequence[Any], ws: Sequence[float] | None = None) -> None:
        """Learn records as `advance` does."""
        for rows, targets, weights in self._encoder.take(xs, ys, ws):
            for r, y in enumerate(targets):
                if y is not None:
                    self._learn_row(rows.part(slice(r, r + 1)), y, weights[r : r + 1])

    def learn_plain(self, x: Mapping[Any, Any], y: Any) -> bool:  # noqa: ARG002
        """False: no record has a shorter way than `learn`."""
        return False

    def predict_one(self, x: Mapping[Any, Any]) -> Array:
        """The prediction of a record, (1, K); nothing is changed."""
        return self.predict([x])

    def predict(self, xs: Records) -> Array:
        """The predictions of records, probabilities (n, K) or standardized numbers (n, 1); nothing is changed."""
        encoded = self._encoder.encoded(xs, [None] * len(xs))
        parts = [self._predicted(rows) for _, rows in encoded]
        return np.concatenate([np.zeros((0, self.targets.n_outputs)), *parts])

    def state(self) -> State:
        """The fields of the state."""
        return {
            "n_records": self.n_records,
            "n_steps": self.n_steps,
            "last_batch_size": self.last_batch_size,
            **self.inputs.state(),
            **self.targets.state(),
            **self.columns.state(),
            **self.experts.state(),
        }

    def load_state(self, state: State) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit, and then the machine is spoilt."""
        self.n_records = whole(state, "n_records")
        self.n_steps = whole(state, "n_steps", self.n_records)
        self.last_batch_size = whole(state, "last_batch_size", self.n_records)
        self.inputs.load_state(state)
        self.targets.load_state(state)
        columns = self.columns
        columns.load_state(state)
        if not self.n_records:
            self.experts.load_state(state, 0, None, 0)
            return
        if columns.n_inputs != len(self.inputs):
            raise state_mismatch("metric_scales")
        linear = columns.n_linear if columns.has_linear else None
        self.experts.load_state(state, columns.n_columns, linear, self.targets.n_outputs)

    # Steps ------------------------------------------------------------------------------------------------------------

    @property
    def began(self) -> bool:
        """Whether there are columns to learn by."""
        return self.experts.began

    def make_room(self, values: Array, targets: Sequence[Any], n_inputs: int) -> bool:
        """Give the inputs their places, and moments to those without; return whether the machine begins with them.

        - values: Encoded values of records to be learned, (n, n_inputs or more).
        - targets: Their targets, as plain values: with the first ones the moments of numbers begin, too.
        - n_inputs: All inputs that they and records before have.
        """
        columns, experts, begins, known = self.columns, self.experts, not self.began, self.columns.n_inputs
        self.inputs.scaler.take(values, slice(known, n_inputs))
        if begins:
            columns.begin(n_inputs)
            # Classes join with the step that learns them.
            n_outputs = 0 if isinstance(self.targets, Classes) else 1
            experts.begin(columns.n_columns, columns.n_linear if columns.has_linear else None, n_outputs)
            if isinstance(self.targets, Numbers):
                self.targets.admit(targets)
        while columns.n_inputs < n_inputs:
            if columns.add_input():
                experts.add_column()
        return begins

    def take_step(self, sums: LeastSquaresSums) -> None:
        """Learn records by their sums."""
        self.experts.learn(self.experts.widen(self.targets.n_outputs, sums))
        self.n_records += sums.n
        self.n_steps += 1
        self.last_batch_size = sums.n

    def judge(self, values: Array, targets: Sequence[Any], weights: Array, n: int) -> None:
        """Weigh the experts after the first step, of n records of a weight above 0, by some of its records."""
        Phi = self._columns_of(values)
        self.experts.judge(Phi, self._encoded(targets), weights, n)

    def take_moments(self, values: Array, targets: Sequence[Any], n_inputs: int) -> None:
        """Take records that were learned into the moments of the first inputs, and of the targets."""
        self.inputs.scaler.take(values, slice(n_inputs))
        self._take_targets(targets)

    def to_send(self) -> "LeastSquaresMachine":
        """A machine that scores rows as this one does, without what only a step needs: the inverse covariances."""
        sent = copy.copy(self)
        sent.experts = self.experts.without_covariances()
        return sent

    def known_before(self, n: int) -> Array:
        """What is known of targets before n records are learned, (n, 2), as `Encoded.before` has it."""
        if not self.n_records:
            return np.zeros((n, 2))
        if isinstance(self.targets, Classes):  # some may have come with the records
            return np.tile([float(self.experts.n_outputs), 0.0], (n, 1))
        return self.targets.admit([None] * n).before

    def predict_and_sum(self, values: Array, targets: Encoded, weights: Array) -> tuple[BatchResult, LeastSquaresSums]:
        """Predict records of encoded values (n, d), and take the sums over those that are labeled."""
        K, learned = self.targets.n_outputs, targets.labeled
        if not self.began:
            return BatchResult(targets, np.zeros((len(values), K)), np.full(len(values), np.nan)), self.experts.no_sums
        Phi = self._columns_of(values)
        scores = self.experts.scores(Phi)
        predictions = of_all = self.experts.mixture(scores)
        wide = scores
        if scores.shape[2] < K:  # some have come with these records
            wide = np.pad(scores, ((0, 0), (0, 0), (0, K - scores.shape[2])))
            of_all = self.experts.mixture(wide)
        sums = self.experts.sums(Phi[learned], targets.y[learned], weights[learned], wide[learned])
        return BatchResult(targets, predictions, self._losses(targets, of_all)), sums

    def _learn_row(self, row: Rows, y: Any, weight: Array) -> BatchResult:
        """Predict, then learn, one encoded record: a batch of one."""
        before, n_inputs = self.known_before(1), self.columns.n_inputs
        begins = self.make_room(row.values, [y], int(row.n_known[0]))
        try:
            result, sums = self.predict_and_sum(row.values, Encoded(self._encoded([y]), before), weight)
        except BaseException:  # a kernel of the user's may fail, and what has begun has learned a record
            if begins:
                self.experts.begin(0, None, 0)
                self.columns.begin(0)
            raise
        self.take_step(sums)
        if not begins:
            self.take_moments(row.values, [y], n_inputs)
        return result

    def _encoded(self, targets: Sequence[Any]) -> Array:
        """Plain targets as of now; new labels join."""
        if isinstance(self.targets, Numbers):
            return self.targets.as_of_now(np.array(targets, np.float64))
        return self.targets.admit(targets).y

    def _predicted(self, rows: Rows) -> Array:
        """The predictions of encoded records, (n, K)."""
        if not self.began:
            return np.zeros((len(rows.values), self.targets.n_outputs))
        Phi = self._columns_of(rows.values, rows.extras, rows.extra_keys)
        return self.experts.mixture(self.experts.scores(Phi))

    def _columns_of(self, values: Array, extras: Array | None = None, extra_keys: Array = NO_KEYS) -> Array:
        """The columns of encoded values (n, d), scaled as of now, with inputs met in these rows only; (n, D)."""
        d = self.columns.n_inputs
        X = self.inputs.scaler.as_of_now(values)[:, :d]
        if extras is not None and len(extra_keys):
            X = np.concatenate([X, extras], axis=1)
        if len(self._keys) != d:
            self._keys = self.inputs.columns.keys[:d].copy()
        return self.columns.of(np.ascontiguousarray(X, np.float32), self._keys, extra_keys)

    def _losses(self, targets: Encoded, predictions: Array) -> Array:
        if isinstance(self.targets, Numbers):
            return self.targets.losses(targets, predictions) * (self.targets.deviation > 0)
        losses = np.full(len(targets.y), np.nan)
        rows = np.flatnonzero(targets.labeled)
        losses[rows] = -np.log(np.maximum(predictions[rows, targets.y[rows].astype(np.int64)], _LEAST))
        return losses

    def _take_targets(self, targets: Sequence[Any]) -> None:
        """Take targets into the moments of numbers; in the beginning coefficients follow their units.

        Later on they do not: where a target grows with its inputs, what holds is the relation of both as standardized.
        """
        if not isinstance(self.targets, Numbers):
            return
        assert isinstance(self.experts, NumberLeastSquares)
        mean, unit = _units(self.targets)
        self.targets.admit(targets)
        if self.n_records <= UNSETTLED:
            new_mean, new_unit = _units(self.targets)
            self.experts.change_units(unit / new_unit, (mean - new_mean) / new_unit)


_UNKNOWN = np.array([np.nan])
#: No probability counts as less in a loss.
_LEAST = 1e-15


def _units(targets: Numbers) -> tuple[float, float]:
    """What numbers are moved and divided by."""
    deviation = targets.deviation
    return float(targets.moments[MEAN]), deviation if deviation > 0 else 1.0


def learn_least_squares_batch(machine: LeastSquaresMachine, batch: BatchRows) -> ScoredBatch:
    """Take one step on the rows of a batch, and give what is known of them."""
    n_inputs = machine.columns.n_inputs
    scored, columns = score_admitted(machine, batch, score_least_squares)
    sample = scored.sample.drawn()
    if sample.targets:
        begins = machine.make_room(sample.values, sample.targets, len(machine.inputs))
        if begins or columns:
            scored = batch.score(machine, score_least_squares)
        machine.take_step(scored.sums)
        if begins:
            machine.judge(sample.values, sample.targets, sample.weights, scored.sums.n_counted)
        else:
            machine.take_moments(sample.values, sample.targets, n_inputs)
    count_arrivals(machine, scored, columns)
    return scored


def score_least_squares(machine: LeastSquaresMachine, chunk: BatchChunk) -> ScoredChunk:
    """Encode and predict a chunk, and take its sums."""
    encoded = encode(machine.inputs, machine.targets, chunk)
    before = machine.known_before(len(encoded.y))
    results: list[BatchResult] = []
    sums: list[LeastSquaresSums] = []
    for start in range(0, max(len(encoded.y), 1), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        of_targets = Encoded(encoded.y[some], before[some])
        result, of_rows = machine.predict_and_sum(encoded.values[some], of_targets, encoded.weights[some])
        results.append(result)
        sums.append(of_rows)
    whole = BatchResult(
        Encoded(encoded.y, before),
        np.concatenate([part.predictions for part in results]),
        np.concatenate([part.losses for part in results]),
    )
    return ScoredChunk(encoded, whole, None, LeastSquaresSums.total(sums))
