"""The adaptive kernel machine of regressors: its predictions are means with their deviations."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamkernel.adaptive.core import AdaptiveCore
from streamkernel.adaptive.lagged_core import LaggedCore
from streamkernel.adaptive.machine import AdaptiveMachine
from streamkernel.adaptive.number_experts import NumberExperts
from streamkernel.adaptive.target_lags import GivenLags, TargetLags
from streamkernel.compute.number_pass import DEVIATION, PREDICTION, VARIANCE
from streamkernel.records.inputs import Inputs
from streamkernel.records.numbers import Numbers, in_variances
from streamkernel.records.results import BatchResult
from streamkernel.records.rows import Rows
from streamkernel.records.targets import Encoded
from streamkernel.state import Array


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

    def _unknown(self, n: int) -> Array:
        return np.full(n, np.nan)

    def _is_known(self, y: Array) -> Array:
        return ~np.isnan(y)

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
