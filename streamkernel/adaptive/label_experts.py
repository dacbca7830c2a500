"""The experts for classes, whose scores become probabilities."""

import numpy as np

from streamkernel.adaptive.experts import Experts
from streamkernel.compute.experts import HIGHEST_LOG_TEMPERATURE
from streamkernel.compute.label_pass import pass_labels
from streamkernel.compute.memory import LABEL_EXPERTS
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
    def _width(self) -> int:
        return int(self.heads.W.shape[1])

    @property
    def _others(self) -> tuple[Array, ...]:
        return self.log_temperatures, self.transition_counts, self.transition_unit

    def replay(self, Phi: Array, labels: Array, weights: Array) -> None:
        """Let records come again, to the heads alone; a weight of 0 leaves one out."""
        K = self.heads.W.shape[1]
        self.heads.replay(Phi, np.eye(K)[labels.astype(np.int64)] - 1 / K, weights)
