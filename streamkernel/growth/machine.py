"""The growing kernel machine: its state, and `advance`, the one way it learns.

Records are predicted, then learned, one after the other. Coefficients change every `batch_size` labeled records,
moments with every one; how a stream is cut into calls never changes a bit.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from river.optim.base import Scheduler

from streamkernel.compute.moments import scale
from streamkernel.expansion.average import AveragedSolution
from streamkernel.expansion.expansion import LARGEST_COEFFICIENT, Expansion
from streamkernel.fields import state_mismatch, whole
from streamkernel.growth import Growth
from streamkernel.growth.bandwidth import begin_expansion
from streamkernel.growth.choice import BlockChoice
from streamkernel.growth.fast_path import GrowingFastPath
from streamkernel.growth.feature_scale import FeatureScale
from streamkernel.growth.history import StepHistory
from streamkernel.growth.minibatch import MiniBatch
from streamkernel.growth.own_loss import is_own, warn_of_losses
from streamkernel.growth.record_window import RecordWindow
from streamkernel.growth.step_undo import StepUndo
from streamkernel.growth.updates import BlockUpdates
from streamkernel.growth.warm_up_buffer import WarmUpBuffer
from streamkernel.records.batches import BatchEncoder, Records
from streamkernel.records.inputs import Inputs
from streamkernel.records.results import BatchResult, joined_targets, padded
from streamkernel.records.rows import Rows
from streamkernel.records.targets import Encoded, Targets
from streamkernel.state import Array, State


class Machine:
    """The state of a growing kernel machine.

    Parameters
    ----------
    inputs, targets, expansion
        The parts, fresh.
    growth
        Which block a step touches.
    batch_size
        B, the labeled records of a step.
    max_features
        The most frequencies, or None.
    step
        A schedule of step sizes, or None for the default rule.
    regularization
        nu.
    precondition
        Whether a step solves a ridge regression on its block and mini-batch.
    blocks_per_step
        Blocks that a mini-batch updates, one after the other.
    average
        Whether predictions are those of the mean of the solutions after each step.

    Attributes
    ----------
    warm_up
        The first records, until they fix a bandwidth left to the data; then, and where it is not, None.
    window
        The last labeled records, whose owner solves the coefficients now and then; None where nobody does.

    """

    def __init__(
        self,
        inputs: Inputs,
        targets: Targets,
        expansion: Expansion,
        growth: Growth,
        batch_size: int,
        max_features: int | None,
        step: Scheduler | None,
        regularization: float,
        precondition: bool = False,
        blocks_per_step: int = 1,
        average: bool = False,
    ) -> None:
        self.inputs = inputs
        self.targets = targets
        self.expansion = expansion
        self.max_blocks = None if max_features is None else max_features // expansion.block_size
        self.history = StepHistory(growth.keeps_beta)
        self.feature_scale = FeatureScale(expansion.kernel)
        parts = expansion, self.history, targets
        choice = BlockChoice(*parts, self.feature_scale, growth, step, batch_size, self.max_blocks, precondition)
        self.updates = BlockUpdates(*parts, choice, regularization, precondition, blocks_per_step)
        self._average = AveragedSolution(expansion) if average else None
        self.n_records = 0
        self._encoder = BatchEncoder(inputs, targets)
        self.warm_up = WarmUpBuffer() if expansion.kernel.bandwidth is None else None
        self._batch = MiniBatch(batch_size, expansion.dtype)
        self._fast_path = GrowingFastPath(inputs)
        self._has_own_loss = is_own(targets.loss)
        self.window: RecordWindow | None = None

    @property
    def is_ready(self) -> bool:
        """Whether there are coefficients that stay: the bandwidth is fixed, and a step was taken."""
        return self.warm_up is None and self.expansion.n_blocks > 0

    @property
    def solution(self) -> Expansion:
        """The expansion that predicts: of the last step, or the average of all."""
        return self.expansion if self._average is None else self._average.solution

    @property
    def nbytes(self) -> int:
        """Bytes of coefficients and cached frequencies."""
        return self.expansion.nbytes + (0 if self._average is None else self._average.nbytes)

    def advance(self, xs: Records, ys: Sequence[Any], ws: Sequence[float] | None = None) -> BatchResult:
        """Predict records, then learn them, one after the other.

        Parameters
        ----------
        xs
            The records' inputs.
        ys
            Their targets; None is predicted and changes nothing.
        ws
            Weights, which multiply the gradient; None is 1 each.

        Raises
        ------
        ValueError
            A record cannot be used. Nothing of the call is learned then.
        NotFiniteError
            Kernel, loss, step schedule or policy gave what is not finite. The mini-batch of that step is not learned.

        """
        parts: list[tuple[Encoded, Array]] = []
        for rows, targets, weights in self._encoder.take(xs, ys, ws):
            parts += self._pass(rows, targets, weights, predict=True)
            self.n_records += sum(y is not None for y in targets)
        K = self.targets.n_outputs
        encoded = joined_targets([part for part, _ in parts])
        scores = np.concatenate([np.zeros((0, K)), *(padded(scores, K) for _, scores in parts)])
        losses = self.targets.losses(encoded, scores)
        if self._has_own_loss:
            warn_of_losses(self.targets.loss, losses[encoded.labeled])
        return BatchResult(encoded, scores, losses)

    def learn(self, xs: Records, ys: Sequence[Any], ws: Sequence[float] | None = None) -> None:
        """Learn records as `advance` does, without predictions."""
        for rows, targets, weights in self._encoder.take(xs, ys, ws):
            self.learn_rows(rows, targets, weights)

    def predict_one(self, x: Mapping[Any, Any]) -> Array:
        """f(x) of a record, (1, K), with the bits that `advance` has; nothing is changed."""
        fast_path = self._open_fast_path()
        if not fast_path.takes(x):
            return self.predict([x])
        X = np.empty(fast_path.values.shape, self.expansion.dtype)
        scale(fast_path.values, _NOT_LEARNED, *fast_path.scaling, 0, X)
        return padded(self.solution.scores(X, self.inputs.columns.keys, _NO_KEYS), self.targets.n_outputs)

    def predict(self, xs: Records) -> Array:
        """f(x) of records, (n, K), equal to `advance` to rounding; nothing is changed."""
        K = self.targets.n_outputs
        parts = [np.zeros((0, K))]
        for _, rows in self._encoder.encoded(xs, [None] * len(xs)):
            X = self._scaled(rows, np.zeros(len(rows.values), np.bool_))
            parts.append(padded(self.solution.scores(X, self.inputs.columns.keys, rows.extra_keys, alone=True), K))
        return np.concatenate(parts)

    def state(self) -> State:
        """The fields of the state."""
        return {
            "n_records": self.n_records,
            **self.inputs.state(),
            **self.targets.state(),
            **self.expansion.state(),
            **self.history.state(),
            **self.feature_scale.state(),
            **({} if self._average is None else self._average.state()),
            **self._batch.state(len(self.inputs)),
            **({} if self.warm_up is None else self.warm_up.state(len(self.inputs))),
            **({} if self.window is None else self.window.state(len(self.inputs))),
        }

    def load_state(self, state: State) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit, and then the machine is spoilt."""
        self.n_records = whole(state, "n_records")
        self.inputs.load_state(state)
        self.targets.load_state(state)
        self.expansion.load_state(state)
        self.history.load_state(state)
        self.feature_scale.load_state(state)
        n_blocks, n_outputs = self.expansion.n_blocks, self.expansion.n_outputs
        if n_outputs > self.targets.n_outputs or n_blocks > (self.max_blocks or n_blocks):
            raise state_mismatch("alpha")
        if self.history.n_grown != n_blocks:
            raise state_mismatch("n_grown")
        if self.history.beta.shape[1] != n_outputs:
            raise state_mismatch("beta")
        if self._average is not None:
            self._average.load_state(state)
        self._batch.load_state(state, len(self.inputs))
        if not self.targets.are_encoded(self._batch.y):
            raise state_mismatch("batch_targets")
        warms_up = any(name.startswith("warm_up_") for name in state)
        self.warm_up = WarmUpBuffer.from_state(state, len(self.inputs)) if warms_up else None
        if self.warm_up is not None and None in self.warm_up.targets:
            raise state_mismatch("warm_up_targets")
        if self.window is not None:
            self.window.load_state(state, len(self.inputs))

    def replace_solution(self, alpha: Array) -> None:
        """Have other coefficients, float64 of the shape of `Expansion.alpha`: (9) counts from there."""
        expansion = self.expansion
        expansion.replace(
            expansion.in_order(np.clip(alpha, -LARGEST_COEFFICIENT, LARGEST_COEFFICIENT).astype(expansion.dtype))
        )
        self.history.forget_beta()
        self._batch.forget_scores()
        if self._average is not None:
            self._average.begin_at_last()

    def learn_rows(self, rows: Rows, targets: Sequence[Any], weights: Array) -> None:
        """Learn encoded records as `learn` does."""
        self._pass(rows, targets, weights, predict=False)
        self.n_records += sum(y is not None for y in targets)

    def end_batch(self, n: int) -> None:
        """Count a batch of n records, of which a step was taken: whatever was known of scores is past."""
        self.n_records += n
        self._batch.forget_scores()
        if self._average is not None:
            self._average.take(self.history.t)

    def learn_plain(self, x: Mapping[Any, Any], y: Any) -> bool:
        """Learn a record of known numbers and a known label, of weight 1; False, and nothing is done, of another."""
        value = self.targets.known(y)
        if value is None or self.warm_up is not None or not (fast_path := self._open_fast_path()).takes(x):
            return False
        y = self.targets.admit_known(value)
        self._batch.append_one(fast_path.values, fast_path.scaling, y)
        self.n_records += 1
        if self.window is not None:
            self.window.append(fast_path.values, len(self.inputs), [value], np.array([y]), _ONE)
        if not self._batch.room:
            self._take_step()
        if self.window is not None and self.window.is_due:
            self.window.refit()
        return True

    def _open_fast_path(self) -> GrowingFastPath:
        if self._fast_path.scaling.moments is not self.inputs.scaler.moments:  # other inputs since
            self._fast_path = GrowingFastPath(self.inputs)
        return self._fast_path

    def _pass(self, rows: Rows, targets: Sequence[Any], weights: Array, predict: bool) -> list[tuple[Encoded, Array]]:
        """Take encoded records in segments that end where the coefficients change; targets and scores, if wanted."""
        learned = np.array([y is not None for y in targets], np.bool_)
        so_far = np.cumsum(learned)
        parts = []
        start, done = 0, 0
        while start < len(targets):
            waiting = self._batch, self.warm_up, self.window
            room = min(part.room for part in waiting if part is not None)
            stop = int(so_far.searchsorted(done + room)) + 1
            segment = slice(start, min(stop, len(targets)))
            part = self._pass_segment(rows.part(segment), targets[segment], weights[segment], learned[segment], predict)
            if part:
                parts.append(part)
            start = segment.stop
            done = int(so_far[start - 1])
        return parts

    def _pass_segment(
        self, rows: Rows, targets: Sequence[Any], weights: Array, learned: Array, predict: bool
    ) -> tuple[Encoded, Array] | None:
        X = self._scaled(rows, learned)
        scores = self.solution.scores(X, self.inputs.columns.keys, rows.extra_keys) if predict else None
        encoded = self.targets.admit(targets)
        if learned.any():
            kept = X[learned, : rows.values.shape[1]]
            # Gradients are taken at the last solution.
            at_last = None if scores is None or self._average is not None else scores[learned]
            self._batch.append(kept, encoded.y[learned], weights[learned], at_last)
            if self.warm_up is not None:
                self.warm_up.append(rows.values[learned], [y for y in targets if y is not None], weights[learned])
            if self.window is not None:
                n_inputs = int(rows.n_known[learned][-1])
                known = [y for y in targets if y is not None]
                self.window.append(rows.values[learned], n_inputs, known, encoded.y[learned], weights[learned])
        if not self._batch.room:
            self._take_step()
        if self.warm_up is not None and not self.warm_up.room:
            self.begin_anew()
        if self.window is not None and self.window.is_due:
            self.window.refit()
        return None if scores is None else (encoded, scores)

    def _scaled(self, rows: Rows, learned: Array) -> Array:
        X = self.inputs.scaler.scale(rows, learned, self.expansion.dtype)
        # The frequencies of an input follow from its key; or, structured, from its place.
        return rows.in_order(X) if self.expansion.kernel.structured else X

    def _take_step(self) -> None:
        """One step of the algorithm on a full mini-batch, which is then empty; one that fails changes nothing else."""
        try:
            with StepUndo(self.expansion, self.history, self.feature_scale, self.targets) as undo:
                self._learn_batch(undo)
        finally:
            self._batch.clear()

    def _learn_batch(self, undo: StepUndo) -> None:
        batch, expansion = self._batch, self.expansion
        X, keys = batch.rows(len(self.inputs)), self.inputs.columns.keys
        if not expansion.n_blocks:
            begin_expansion(expansion, X, keys)
        scores = expansion.scores(X, keys, _NO_KEYS) if batch.scores is None else batch.scores
        self.updates.take_step(batch, X, keys, padded(scores, self.targets.n_outputs), undo)
        if self._average is not None:
            self._average.take(self.history.t)

    def begin_anew(self, more: Array | None = None) -> None:
        """Fix the bandwidth by the records that wait for it and learn them again, as a fresh machine would.

        It is that of more encoded values, (n, d), too, which are not learned.
        """
        warm_up = self.warm_up
        assert warm_up is not None
        bandwidth = warm_up.bandwidth(self.inputs, self.expansion.kernel, more)
        values = warm_up.rows(len(self.inputs))
        self.warm_up = None
        for part in (self.inputs, self.targets, self.expansion, self.history, self.feature_scale):
            part.forget()
        if self._average is not None:
            self._average.forget()
        self._batch.clear()
        self.expansion.bandwidth = bandwidth
        window, self.window = self.window, None  # which has these records
        try:
            self._pass(Rows.known(values), warm_up.targets, np.array(warm_up.weights), predict=False)
        finally:
            self.window = window


_NO_KEYS = np.zeros(0, np.uint64)
_NOT_LEARNED = np.zeros(1, np.bool_)
_ONE = np.ones(1)
