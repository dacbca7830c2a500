"""The growing kernel machine of the papers: coefficients change every `batch_size` labeled records."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from river.optim.base import Scheduler

from streamkernel.compute.growing_step import Arriving
from streamkernel.expansion.expansion import LARGEST_COEFFICIENT, AveragedSolution, Expansion
from streamkernel.fields import state_mismatch, whole
from streamkernel.growth import Growth
from streamkernel.growth.choice import BlockChoice
from streamkernel.growth.feature_scale import FeatureScale, begin_expansion
from streamkernel.growth.history import StepHistory, StepUndo
from streamkernel.growth.record_machine import Figures, RecordMachine
from streamkernel.growth.updates import BlockUpdates
from streamkernel.growth.usual_step import UsualStep
from streamkernel.growth.waiting import MiniBatch
from streamkernel.records.classes import Classes
from streamkernel.records.inputs import Inputs
from streamkernel.records.results import padded
from streamkernel.records.rows import Rows
from streamkernel.records.several import SeveralTargets
from streamkernel.records.targets import Encoded, Targets
from streamkernel.state import Array, State

_NO_KEYS = np.zeros(0, np.uint64)
_ONE = np.ones(1)
_NO_RECORDS = Arriving(np.empty((0, 0)), np.empty(0, np.bool_), np.empty((0, 0)), np.empty(0), np.empty((0, 0)))


class Machine(RecordMachine):
    """The state of a growing kernel machine.

    - growth: Which block a step touches.
    - batch_size: B, the labeled records of a step.
    - max_features: The most frequencies, or None.
    - step: A schedule of step sizes, or None for the default rule.
    - regularization: nu.
    - precondition: Whether a step solves a ridge regression on its block and mini-batch.
    - blocks_per_step: Blocks that a mini-batch updates, one after the other.
    - average: Whether predictions are those of the mean of the solutions after each step.
    - window: The last labeled records as a `window.refit.Refit`, which solves the coefficients now and then; or None.
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
        super().__init__(inputs, targets, expansion.kernel, expansion.dtype)
        self.expansion = expansion
        self.max_blocks = None if max_features is None else max_features // expansion.block_size
        self.history = StepHistory(growth.keeps_beta)
        self.feature_scale = FeatureScale(expansion.kernel)
        parts = expansion, self.history, targets
        choice = BlockChoice(*parts, self.feature_scale, growth, step, batch_size, self.max_blocks, precondition)
        self.updates = BlockUpdates(*parts, choice, regularization, precondition, blocks_per_step)
        self._usual = UsualStep(self.updates)
        self._average = AveragedSolution(expansion) if average else None
        self._batch = MiniBatch(batch_size, expansion.dtype)
        self.window: Any = None

    @property
    def is_ready(self) -> bool:
        return self.warm_up is None and self.expansion.n_blocks > 0

    @property
    def solution(self) -> Expansion:
        """The expansion that predicts: of the last step, or the average of all."""
        return self.expansion if self._average is None else self._average.solution

    @property
    def nbytes(self) -> int:
        return self.expansion.nbytes + (0 if self._average is None else self._average.nbytes)

    @property
    def figures(self) -> Figures:
        expansion, history = self.expansion, self.history
        return Figures(
            n_blocks=expansion.n_blocks,
            block_size=expansion.block_size,
            n_steps=history.t,
            last_batch_size=history.last_batch_size,
            n_grown=history.n_grown,
            n_reused=history.n_reused,
            last_margin=history.last_margin,
            gamma_0=history.gamma_0,
            bandwidth=expansion.bandwidth,
        )

    def scores(self, X: Array, extra_keys: Array = _NO_KEYS, alone: bool = True) -> Array:
        return self.solution.scores(X, self.inputs.columns.keys, extra_keys, alone)

    def state(self) -> State:
        return {
            "n_records": self.n_records,
            **self.inputs.state(),
            **self.targets.state(),
            **self.expansion.state(),
            **self.history.state(),
            **self.feature_scale.state(),
            **({} if self._average is None else self._average.state()),
            **self._batch.state(len(self.inputs)),
            **self._warm_up_state(),
            **({} if self.window is None else self.window.state(len(self.inputs))),
        }

    def load_state(self, state: State) -> None:
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
        self._load_warm_up(state)
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

    def end_batch(self, n: int) -> None:
        """Count a batch of n records, of which a step was taken: whatever was known of scores is past."""
        self.n_records += n
        self._batch.forget_scores()
        if self._average is not None:
            self._average.take(self.history.t)

    def learn_plain(self, x: Mapping[Any, Any], y: Any) -> bool:
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

    def _waiting(self) -> list[Any]:
        return [part for part in (self._batch, self.warm_up, self.window) if part is not None]

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

    def _pass_usual(
        self, rows: Rows, targets: Sequence[Any], weights: Array, learned: Array, start: int
    ) -> tuple[Encoded, Array] | None:
        own, waits = self.targets, self.warm_up is not None or self.window is not None
        is_plain = not (waits or len(rows.extra_keys)) and rows.values.shape[1] == len(self.inputs)
        if self._average is not None or not is_plain or isinstance(own, SeveralTargets):
            return None
        if own.n_outputs != self.expansion.n_outputs or not self._usual.begins(self.inputs.columns.keys):
            return None
        targets = targets[start:]
        if isinstance(own, Classes) and not own.are_known(targets):  # a new one joins at a step
            return None
        before = {} if isinstance(own, Classes) else own.state()
        values, scores = np.ascontiguousarray(rows.values[start:]), np.empty((len(targets), own.n_outputs))
        self._usual.n_taken = 0
        try:
            encoded = own.admit(targets)
            y = encoded.y.reshape(len(scores), 1)
            self._take_usual(Arriving(values, learned[start:], y, weights[start:], scores), None)
        finally:
            n = self._usual.n_taken
            if n < len(targets) and before:  # the others come again, or never
                own.load_state(before)
                own.admit(targets[:n])
        if not self._batch.room:
            self._take_step()
        return (encoded, scores) if n == len(scores) else (Encoded(encoded.y[:n], encoded.before[:n]), scores[:n])

    def _take_usual(self, arriving: Arriving, undo: StepUndo | None) -> None:
        batch, inputs = self._batch, self.inputs
        if batch.scores is None or batch.scores.shape[1] != self.expansion.n_outputs:
            batch.take_scores(self._batch_scores()[1])
        self._usual.take(batch, inputs.columns.keys, arriving, inputs.scaler.scaling(len(inputs)), undo)

    def _take_step(self) -> None:
        """One step of the algorithm on a full mini-batch, which is then empty; one that fails changes nothing else."""
        try:
            with StepUndo(self.expansion, self.history, self.feature_scale, self.targets) as undo:
                self._learn_batch(undo)
                if self._average is not None:
                    self._average.take(self.history.t)
        finally:
            self._batch.clear()

    def _learn_batch(self, undo: StepUndo) -> None:
        if not self.expansion.n_blocks:
            begin_expansion(self.expansion, self._batch.rows(len(self.inputs)), self.inputs.columns.keys)
        if self._usual.begins(self.inputs.columns.keys):
            self.expansion.widen(self.targets.n_outputs)
            self.history.widen(self.targets.n_outputs)
            self._take_usual(_NO_RECORDS, undo)
        if not self._batch.room:
            X, scores = self._batch_scores()
            self.updates.take_step(self._batch, X, self.inputs.columns.keys, scores, undo)

    def _batch_scores(self) -> tuple[Array, Array]:
        """The rows of the mini-batch, and their scores, which may be written to."""
        X, scores = self._batch.rows(len(self.inputs)), self._batch.scores
        if scores is None:
            scores = self.expansion.scores(X, self.inputs.columns.keys, _NO_KEYS)
        return X, padded(scores, self.targets.n_outputs)

    def begin_anew(self, more: Array | None = None) -> None:
        window, self.window = self.window, None  # which has these records
        try:
            super().begin_anew(more)
        finally:
            self.window = window

    def _forget(self, bandwidth: float) -> None:
        for part in (self.expansion, self.history, self.feature_scale):
            part.forget()
        if self._average is not None:
            self._average.forget()
        self._batch.clear()
        self.expansion.bandwidth = bandwidth
