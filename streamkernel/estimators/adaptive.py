"""What the adaptive estimators have in common: their arguments, and what a user would plot of them."""

import secrets
from collections.abc import Sequence

import numpy as np

from streamkernel.adaptive.features import AdaptiveFeatures
from streamkernel.adaptive.label_machine import LabelMachine
from streamkernel.adaptive.number_machine import NumberMachine
from streamkernel.estimators.base import StreamEstimator
from streamkernel.finite import is_finite
from streamkernel.kernels import Gaussian, Kernel
from streamkernel.kernels.spectral import require_fourier
from streamkernel.records.inputs import Inputs
from streamkernel.state import excerpt

#: Below, float64 does not keep P positive where inputs are copies of each other.
LEAST_RIDGE = 1e-9


class AdaptiveMachineEstimator(StreamEstimator):
    """An adaptive kernel machine behind River's interface."""

    kernel: Kernel | None
    n_features: int
    ridge: float
    drift_rates: tuple[float, ...]
    metric_schedule: tuple[int, ...] | None
    buffer_size: int
    n_trees: int
    tree_window: int
    memory: int
    standardize: bool | None
    max_inputs: int
    seed: int | None
    _machine: LabelMachine | NumberMachine

    def _parts(self) -> tuple[Inputs, AdaptiveFeatures]:
        """Fresh inputs and columns from the constructor's arguments."""
        self._check("kernel", self.kernel, Kernel)
        for name in ("n_features", "buffer_size", "tree_window", "max_inputs"):
            self._at_least(name, 1)
        for name in ("n_trees", "memory"):
            self._at_least(name, 0)
        if not (_is_number(self.ridge) and is_finite(self.ridge) and self.ridge >= LEAST_RIDGE):
            raise ValueError(f"ridge must be a finite number of at least {LEAST_RIDGE:g}, got {excerpt(self.ridge)}")
        rates, schedule = self.drift_rates, self.metric_schedule
        if not (
            _is_some(rates) and all(_is_number(q) and is_finite(q) and q >= 0 for q in rates) and _each_once(rates)
        ):
            raise ValueError(f"drift_rates must be a tuple of different finite numbers from 0 up, got {excerpt(rates)}")
        # River cannot clone an empty tuple.
        if schedule is not None and not (_is_some(schedule) and all(_is_whole(n) and n > 0 for n in schedule)):
            raise ValueError(
                f"metric_schedule must be None or a tuple of whole numbers from 1 up, got {excerpt(schedule)}"
            )
        if not isinstance(self.standardize, bool | None):
            raise ValueError(f"standardize must be True, False or None, got {excerpt(self.standardize)}")
        if self.seed is not None and not _is_whole(self.seed):
            raise ValueError(f"seed must be a whole number or None, got {excerpt(self.seed)}")
        seed = secrets.randbits(64) if self.seed is None else int(self.seed) % 2**64
        kernel = require_fourier(self.kernel or Gaussian(), type(self).__name__)
        standardize = kernel.standardizes if self.standardize is None else self.standardize
        return Inputs(self.max_inputs, standardize), AdaptiveFeatures(kernel, int(self.n_features), seed)

    @property
    def bandwidth(self) -> float:
        """The kernel's length scale in use; 0 before the first record."""
        return self._machine.core.columns.bandwidth

    @property
    def feature_importances_(self) -> dict[str, float]:
        """How much each input matters to the prediction, by name; shares of 1, empty before the first metric."""
        importance = self._machine.core.importance
        total = float(importance.sum())
        return {
            name: float(value) / total for name, value in zip(self.input_names, importance, strict=False) if total > 0
        }

    @property
    def expert_weights(self) -> dict[str, float]:
        """The weight of each expert in the mixture, by name; empty before the first labelled record."""
        return self._machine.experts.weights if self.n_records else {}

    @property
    def drift_detected(self) -> bool:
        """Whether a drift was detected at the last labelled record, as River's drift detectors have it.

        The losses are looked at after every 100th labelled record, so it is True after one of these, and until the
        next labelled record is learnt.
        """
        return self._machine.experts.change.is_detected(self.n_records)

    @property
    def n_drifts_detected(self) -> int:
        """Drifts detected so far; of a state from before this was counted, at most the last one counts."""
        return self._machine.experts.change.n_detected

    @property
    def memory_bytes(self) -> int:
        """Bytes of the experts' matrices, the trees with their window, and the memory."""
        return self._machine.experts.nbytes


def _is_some(values: object) -> bool:
    return isinstance(values, tuple | list) and len(values) > 0


def _each_once(values: Sequence[float]) -> bool:
    # As the experts are named by them.
    return len({f"{float(value):g}" for value in values}) == len(values)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
