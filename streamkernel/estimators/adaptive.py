"""What the adaptive estimators have in common: their arguments, and what a user would plot of them."""

import math
import secrets

import numpy as np

from streamkernel.adaptive.columns import Columns
from streamkernel.adaptive.machine import LabelMachine, NumberMachine
from streamkernel.estimators.base import StreamEstimator
from streamkernel.inputs import Inputs
from streamkernel.kernels import Gaussian, Kernel


class AdaptiveMachineEstimator(StreamEstimator):
    """An adaptive kernel machine behind River's interface."""

    kernel: Kernel | None
    n_features: int
    ridge: float
    drift_rates: tuple[float, ...]
    metric_schedule: tuple[int, ...]
    buffer_size: int
    standardize: bool | None
    max_inputs: int
    seed: int | None
    _machine: LabelMachine | NumberMachine

    def _parts(self) -> tuple[Inputs, Columns]:
        """Fresh inputs and columns from the constructor's arguments."""
        self._check("kernel", self.kernel, Kernel)
        for name in ("n_features", "buffer_size", "max_inputs"):
            self._at_least(name, 1)
        if not (isinstance(self.ridge, int | float | np.number) and 0 < self.ridge < math.inf):
            raise ValueError(f"ridge must be a positive number, got {self.ridge!r}")
        rates = tuple(self.drift_rates)
        if not rates or not all(isinstance(q, int | float | np.number) and 0 <= q < math.inf for q in rates):
            raise ValueError(f"drift_rates must be numbers from 0 up, at least one, got {self.drift_rates!r}")
        if not all(isinstance(n, int | np.integer) and n > 0 for n in self.metric_schedule):
            raise ValueError(f"metric_schedule must be whole numbers from 1 up, got {self.metric_schedule!r}")
        if not isinstance(self.standardize, bool | None):
            raise ValueError(f"standardize must be True, False or None, got {self.standardize!r}")
        whole = isinstance(self.seed, int | np.integer) and not isinstance(self.seed, bool)
        if self.seed is not None and not whole:
            raise ValueError(f"seed must be a whole number or None, got {self.seed!r}")
        seed = secrets.randbits(64) if self.seed is None else int(self.seed) % 2**64
        kernel = self.kernel or Gaussian()
        standardize = kernel.shift_invariant if self.standardize is None else self.standardize
        return Inputs(self.max_inputs, standardize), Columns(kernel, int(self.n_features), seed)

    @property
    def bandwidth(self) -> float:
        """The kernel's length scale in use; 0 before the first record."""
        return self._machine.columns.bandwidth

    @property
    def feature_importances_(self) -> dict[str, float]:
        """How much each input matters to the prediction, by name; shares of 1, empty before the first metric."""
        importance = self._machine.importance
        total = float(importance.sum())
        return {
            name: float(value) / total for name, value in zip(self.input_names, importance, strict=False) if total > 0
        }

    @property
    def expert_weights(self) -> dict[str, float]:
        """The weight of each expert in the mixture, by name; empty before the first record."""
        return self._machine.experts.weights

    @property
    def memory_bytes(self) -> int:
        """Bytes of the experts' matrices and of the buffer."""
        return self._machine.experts.nbytes + self._machine.recent.nbytes
