"""The adaptive kernel machine of classifiers: labels become scores, mixed as probabilities; a new class joins."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from streamkernel.adaptive.core import AdaptiveCore
from streamkernel.adaptive.machine import AdaptiveMachine
from streamkernel.adaptive.target_lags import GivenLags, TargetLags
from streamkernel.fields import state_mismatch
from streamkernel.records.classes import Classes
from streamkernel.records.inputs import Inputs
from streamkernel.records.results import BatchResult
from streamkernel.records.rows import Rows
from streamkernel.records.targets import Encoded
from streamkernel.state import Array, State


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

    def _unknown(self, n: int) -> Array:
        return np.full(n, -1)

    def _is_known(self, y: Array) -> Array:
        return y >= 0

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
