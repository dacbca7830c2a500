"""The experts for classes, whose scores become probabilities, and those for numbers, which have two scales."""

import math
from typing import Any

import numpy as np

from streamkernel.adaptive.experts import Experts
from streamkernel.adaptive.memory import Memory
from streamkernel.compute.experts import HIGHEST_LOG_TEMPERATURE, standardize_targets
from streamkernel.compute.label_pass import pass_labels
from streamkernel.compute.memory import LABEL_EXPERTS, NUMBER_EXPERTS
from streamkernel.compute.moments import SIZE as MOMENTS
from streamkernel.compute.moments import are_moments, near
from streamkernel.compute.number_pass import (
    MAGNITUDES,
    RESIDUALS,
    AsinhStatistics,
    TargetStatistics,
    keep_magnitude,
    pass_numbers,
    take_all_asinh,
)
from streamkernel.compute.number_pass import MEDIAN_SIZE as MEDIAN
from streamkernel.fields import Rules, all_finite, all_from_zero
from streamkernel.state import Array

#: lambda of the two softmax-Newton experts.
FORGETTING = np.array([1.0, 0.99])
#: Classes whose transitions are counted, at most: the first.
MOST_TRANSITIONS = 256


def _are_log_temperatures(values: Array) -> bool:
    return all_from_zero(values) and bool((values <= HIGHEST_LOG_TEMPERATURE).all())


def _are_from_one(values: Array) -> bool:
    return all_finite(values) and bool((values >= 1).all())


class LabelExperts(Experts):
    """Experts for classes: least squares scores become probabilities by a temperature each."""

    eta = 1.0
    n_ensembles = 2
    linear_rates = FORGETTING
    stack_drifts = np.array([0.0, 1e-4])
    stack_ridge = 100.0
    memory_experts = LABEL_EXPERTS
    memory_prior = 1.0
    run = staticmethod(pass_labels)
    _lasting = ("transition_counts", "transition_unit")
    nothing = -1

    @property
    def n_beside(self) -> int:
        return 0  # transitions are one of the experts

    def begin(self, n_columns: int, n_linear: int | None, n_outputs: int, n_inputs: int) -> None:
        super().begin(n_columns, n_linear, n_outputs, n_inputs)
        self.log_temperatures = np.full(len(self.heads.drifts), np.log(4.0))
        self.transition_counts = self._fresh_counts(n_outputs)
        self.transition_unit = np.ones(1)

    def resume(self, other: Experts) -> None:
        super().resume(other)
        assert isinstance(other, LabelExperts)
        known = dict(zip(other.heads.drifts, other.log_temperatures, strict=True))
        self.log_temperatures = np.array([known.get(q, np.log(4.0)) for q in self.heads.drifts])

    def add_output(self) -> None:
        super().add_output()
        counts = self._fresh_counts(self.heads.W.shape[1])
        known = len(self.transition_counts)
        counts[:known, :known] = self.transition_counts
        self.transition_counts = counts

    def _fresh_counts(self, n_outputs: int) -> Array:
        n = min(n_outputs, MOST_TRANSITIONS) if self.n_past else 0
        return np.zeros((n, n))

    @property
    def other_names(self) -> list[str]:
        trees = ["trees", "residual trees"] if self.forest.n_trees else []
        return trees + self.memory_names + ["transition"] * self.n_past

    @property
    def nbytes(self) -> int:
        return super().nbytes + int(self.transition_counts.nbytes)

    @property
    def rules(self) -> Rules:
        transitions = {"transition_counts": all_from_zero, "transition_unit": _are_from_one}
        return {**super().rules, "log_temperatures": _are_log_temperatures, **transitions}

    @property
    def _fields(self) -> tuple[str, ...]:
        own = ("log_temperatures", "transition_counts", "transition_unit")
        return (*super()._fields, *own[: 3 if self.n_past else 1])

    @property
    def _others(self) -> tuple[Array, ...]:
        return self.log_temperatures, self.transition_counts, self.transition_unit

    def replay(self, Phi: Array, labels: Array, weights: Array) -> None:
        """Let records come again, to the heads alone; a weight of 0 leaves one out."""
        K = self.heads.W.shape[1]
        self.heads.replay(Phi, np.eye(K)[labels.astype(np.int64)] - 1 / K, weights)


#: q of the two linear least squares experts.
LINEAR_DRIFTS = np.array([0.0, 1e-3])


def _are_counted(numbers: Array) -> bool:
    """Whether an array can be a number of values from 0 up, then values."""
    return bool(all_finite(numbers) and numbers.ndim == 1 and len(numbers) and numbers[0] >= 0 and numbers[0] % 1 == 0)


def _are_magnitudes(numbers: Array) -> bool:
    """Whether an array can be a number of sizes, then these sorted."""
    return _are_counted(numbers) and numbers[0] < len(numbers) and bool((numbers >= 0).all())


class NumberExperts(Experts):
    """Experts for numbers: targets are standardized by the moments of those learned.

    - ridge, drift_rates, n_trees, window, memory, n_past: As `Experts` has them.
    - absolute: Whether a median is predicted, the mixture's losses being absolute errors, instead of a mean by squared
      ones.
    """

    target_statistics = ("moments", "asinh_moments", "magnitudes", "target_bounds")
    eta = 2.0
    n_ensembles = 1
    n_scales = 2
    width = 3
    linear_rates = LINEAR_DRIFTS
    stack_drifts = np.array([0.0, 1e-3])
    stack_ridge = 10.0
    memory_experts = NUMBER_EXPERTS
    memory_prior = 1 / 6
    run = staticmethod(pass_numbers)
    _lasting = ("linear_moments", "squared_errors", "residuals", "median")
    nothing = math.nan

    def __init__(
        self,
        ridge: float,
        drift_rates: tuple[float, ...],
        n_trees: int,
        window: int,
        memory: Memory,
        n_past: int = 0,
        absolute: bool = False,
    ) -> None:
        self.absolute = absolute
        super().__init__(ridge, drift_rates, n_trees, window, memory, n_past)

    def begin(self, n_columns: int, n_linear: int | None, n_outputs: int, n_inputs: int) -> None:
        super().begin(n_columns, n_linear, n_outputs, n_inputs)
        self.moments = np.zeros(MOMENTS)
        self.linear_moments = np.zeros(MOMENTS)
        self.squared_errors = np.zeros(2)
        self.levels = np.zeros(2 if self.forest.n_trees else 1)
        self.asinh_moments = np.zeros(MOMENTS)
        self.magnitudes = np.zeros(1 + MAGNITUDES)
        self.target_bounds = np.zeros(2)
        self.residuals = np.zeros(1 + RESIDUALS)
        self.median = np.zeros(MEDIAN if self.absolute else 0)

    @property
    def n_beside(self) -> int:
        return self.n_past

    @property
    def residuals_kept(self) -> Array:
        """A copy of the last errors of predictions, in no order."""
        return self.residuals[1 : 1 + int(min(self.residuals[0], RESIDUALS))].copy()

    @property
    def nbytes(self) -> int:
        return super().nbytes + int(self.magnitudes.nbytes + self.residuals.nbytes)

    def fresh_heads(self) -> dict[str, Any]:
        """Heads that know nothing but how large the last targets were."""
        parts = super().fresh_heads()
        n = min(MAGNITUDES, len(self.memory))
        for y in self.memory.rows_from(n, n)[1]:
            keep_magnitude(parts["magnitudes"], near(self.linear_moments, y))
        return parts

    @property
    def slowest_head(self) -> Array:
        """Those of the scale whose heads are heard more."""
        H, E = len(self.heads.drifts), len(self.linear_W)
        weights = np.array([*self.weights.values()])
        scale = int(weights[H + E :][:H].sum() > weights[:H].sum())
        return super().slowest_head[scale : scale + 1]

    @property
    def rules(self) -> Rules:
        moments = dict.fromkeys(("moments", "linear_moments", "asinh_moments"), are_moments)
        return {
            **super().rules,
            **moments,
            "magnitudes": _are_magnitudes,
            "residuals": _are_counted,
            "squared_errors": all_from_zero,
        }

    @property
    def other_names(self) -> list[str]:
        trees = ["residual trees"] if self.forest.n_trees else []
        return [*trees, *self.memory_names, *["level", "residual trees, level"][: 1 + len(trees)]]

    @property
    def _fields(self) -> tuple[str, ...]:
        errors = "squared_errors", "residuals", "levels", *(("median",) if self.absolute else ())
        return (*super()._fields, "linear_moments", *self.target_statistics, *errors)

    @property
    def _others(self) -> tuple[Array, ...]:
        asinh = tuple(self._asinh)
        errors = self.squared_errors, self.residuals
        return tuple(TargetStatistics(self.moments, self.linear_moments, self.levels, *errors, asinh, self.median))

    @property
    def _asinh(self) -> AsinhStatistics:
        return AsinhStatistics(self.asinh_moments, self.magnitudes, self.target_bounds)

    def replay(self, Phi: Array, targets: Array, weights: Array) -> None:
        """Let records come again, to the heads alone; a weight of 0 leaves one out."""
        truths = np.empty((len(Phi), 2))
        nearer = np.array([near(self.linear_moments, y) for y in targets])
        standardize_targets(nearer, weights, self.moments, truths[:, 0])
        take_all_asinh(nearer, weights, self._asinh, truths[:, 1])
        self.heads.replay(Phi, truths, weights)
