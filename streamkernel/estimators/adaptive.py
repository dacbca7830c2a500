"""The common part of the adaptive estimators: their arguments and the attributes to plot."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from streamkernel.adaptive.budget import Budget, Parts, middle
from streamkernel.adaptive.core import AdaptiveCore
from streamkernel.adaptive.features import AdaptiveFeatures
from streamkernel.adaptive.machine import AdaptiveMachine, LabelMachine, NumberMachine
from streamkernel.adaptive.memory import Memory
from streamkernel.adaptive.target_experts import LabelExperts, NumberExperts
from streamkernel.arguments import require_whole
from streamkernel.estimators.arguments import head_columns
from streamkernel.estimators.base import StreamEstimator
from streamkernel.estimators.explanation import shares_of
from streamkernel.records.contributions import Group, groups_of, mean_contributions, n_explained
from streamkernel.records.inputs import Inputs
from streamkernel.records.rows import Rows
from streamkernel.state import Array


def importances(machine: AdaptiveMachine) -> list[tuple[str, float]]:
    """Compute the mean absolute contribution of each input, with its name; nothing is changed.

    With a core that sees the lags, each of them is an input, against the mean target.
    """
    n_lags, n_inputs = len(machine.lags) if machine.lagged else 0, machine.core.n_inputs
    groups = [Group(name, [lag], False) for lag, name in enumerate(machine.lags.names[:n_lags])]
    for name, columns, is_string in groups_of(machine.inputs.columns):
        placed = [n_lags + column for column in columns if column < n_inputs]
        groups.append(Group(name, placed, is_string))
    rows, mean = _recent_rows(machine, n_explained(len(groups)))
    if not len(rows):
        return []

    def predict(given: Array) -> Array:
        values, lags = np.ascontiguousarray(given[:, n_lags:]), given[:, :n_lags].tolist() if n_lags else None
        return machine.predict_rows(Rows.known(values), lags)[:, : machine.targets.n_outputs]

    nothing = np.concatenate([np.full(n_lags, mean), np.full(n_inputs, np.nan)])
    return mean_contributions(predict, rows, nothing, groups)


def _recent_rows(machine: AdaptiveMachine, n: int) -> tuple[Array, float]:
    """Return n of the last records, spread evenly, as lags that a lagged core saw and inputs; and the mean target."""
    values, memory = machine.core.experts.forest.last_rows(), machine.core.experts.memory
    if not len(values):  # without trees
        n_kept = min(len(memory), memory.buffer_size)
        values = machine.inputs.scaler.as_they_came(memory.rows_from(n_kept, n_kept)[0])
    targets = memory.rows_from(len(memory), len(memory))[1]
    count = min(len(values), len(targets))
    n = min(n, count)
    if not n:
        return values[:0], 0.0
    chosen, mean = np.arange(n) * count // n, float(targets.mean())
    rows = values[len(values) - count :][chosen]
    if machine.lagged:
        # Before the first record that is remembered no target is known any more.
        n_lags, before = len(machine.lags), chosen + len(targets) - count
        known = np.concatenate([np.full(n_lags, mean), targets])
        rows = np.concatenate([known[before[:, None] + np.arange(n_lags)[::-1]], rows], axis=1)
    return rows, mean


#: What not even the smallest parts of a few inputs take.
LEAST_BYTES = 16_384


class AdaptiveMachineEstimator(StreamEstimator):
    """An adaptive kernel machine under River's interface."""

    n_features: int
    ridge: float
    metric_schedule: tuple[int, ...] | None
    buffer_size: int
    n_trees: int
    tree_window: int
    memory: int
    lags: int
    max_bytes: int | None
    _left_out: ClassVar[dict[str, Any]] = {"lags": 0, "max_bytes": None}
    #: The most lags there may be, and whether a core of its own sees them.
    _most_lags: int
    _has_lagged_core: bool
    #: Outputs to have room for from the beginning.
    _fewest_outputs: int
    _machine: LabelMachine | NumberMachine

    def _parts(self) -> tuple[Inputs, AdaptiveFeatures]:
        """Fresh inputs and columns from the constructor's arguments."""
        require_whole("lags", self.lags, 0, self._most_lags)
        if self.max_bytes is not None:
            require_whole("max_bytes", self.max_bytes, LEAST_BYTES * self._n_cores)
        return head_columns(self)

    def _core(
        self, columns: AdaptiveFeatures, rates: Sequence[float], make: Callable[..., LabelExperts | NumberExperts]
    ) -> AdaptiveCore:
        """A fresh core with these columns and heads of these rates; `max_bytes` may make it smaller.

        `make` gives its experts: it takes ridge, drift rates, trees, their window, and the memory. Of two cores each
        may take half of the bytes.
        """
        schedule = self.metric_schedule or ()

        def sized(parts: Parts, budget: Budget | None = None) -> AdaptiveCore:
            memory = Memory(parts.memory, parts.buffer_size)
            kept = middle(rates, parts.n_heads)
            experts = make(float(self.ridge), kept, parts.n_trees, parts.tree_window, memory)
            again = AdaptiveFeatures(columns.kernel, parts.n_features, columns.seed)
            return AdaptiveCore(again, experts, schedule, budget)

        sizes = self.n_features, len(rates), self.n_trees, self.tree_window, self.memory, self.buffer_size
        most = Parts(0, self._fewest_outputs, *map(int, sizes))
        if self.max_bytes is None:
            return sized(most)
        # Until a record is learned nothing needs room.
        none_yet = most._replace(n_trees=0, tree_window=1, memory=0, buffer_size=1)
        return sized(none_yet, Budget(int(self.max_bytes) // self._n_cores, most, sized))

    @property
    def _n_cores(self) -> int:
        return 1 + (self.lags > 0 and self._has_lagged_core)

    def with_lags(self, x: dict[Any, Any], known: Sequence[Any] | None = None) -> dict[Any, Any]:
        """Return a record with its current lags, so that you can learn it later with the same lags.

        `predict_one`, `learn_one` and all other methods use the lags that a record brings. For a record without lags,
        they use the last known targets. If a label comes late, other labels have arrived in between, and the last known
        targets have changed since the prediction. So keep the returned record, and learn that one.

        Parameters
        ----------
        x
            Inputs by name.
        known
            Targets to use instead of the last known ones, latest first. None (the default) uses the learned ones.

        Returns
        -------
        The inputs and, unless x has them already, the last known targets, latest first. Their names are
        `streamkernel.lag.1`, `streamkernel.lag.2`, ..., and a missing one is None. Without `lags`, the inputs alone.

        Examples
        --------
        >>> from collections import deque
        >>> from streamkernel import AdaptiveKernelRegressor
        >>> model, waiting = AdaptiveKernelRegressor(lags=1, seed=1), deque()
        >>> for i in range(20):
        ...     x = model.with_lags({"a": i % 7})
        ...     prediction = model.predict_one(x)
        ...     waiting.append((x, i % 7))
        ...     if len(waiting) > 5:  # the label of the record five before
        ...         model.learn_one(*waiting.popleft())
        >>> model.with_lags({"a": 6})
        {'a': 6, 'streamkernel.lag.1': 0.0}

        """
        lags = self._machine.lags
        if lags.brings(x):
            return dict(x)
        if known is None:
            with self._lock:
                return {**x, **lags.of_now()}
        return {**x, **dict.fromkeys(lags.names), **dict(zip(lags.names, known, strict=False))}

    def _left_in(self, x: Mapping[Any, Any]) -> dict[Any, Any]:
        # A record that brings its lags must not be taken for one that brings none: that would see those of now.
        lags = self._machine.lags
        return dict.fromkeys(lags.names) if lags.brings(x) else {}

    @property
    def bandwidth(self) -> float:
        """The kernel's length scale in use; 0 before the first record."""
        return self._machine.core.columns.bandwidth

    @property
    def feature_importances_(self) -> dict[str, float]:
        """How far each input moves the predictions of recent records, by name, as shares of 1, largest first.

        An input's share is its mean absolute contribution, similar to `explain_one`, on up to 128 records of the trees'
        window. Without trees, the records come from the memory. All values of a string are one input, and so is each
        lag of a regressor with lags. Empty before the first labeled record. It costs at most about 1,000 predictions,
        or 8 for each input if there are more than 128.
        """
        with self._lock:
            return shares_of(importances(self._machine))

    @property
    def expert_weights(self) -> dict[str, float]:
        """The weight of each expert and stack in the prediction, by name. Empty before the first labeled record.

        Each stack combines the predictions of all experts with its own weights. In a regressor with lags, the experts
        that see them come last: `lagged, head, drift 0.001`, ..., `lagged, no change`.
        """
        with self._lock:
            machine = self._machine
            if not self.n_records:
                return {}
            weights = _weights(machine.core.experts)
            if not machine.lagged:
                return weights
            past, seeing = machine.core.experts.shares.past, machine.lagged.core.experts
            lagged = {**_weights(seeing), "no change": seeing.shares.past}
        return {**weights, **{f"lagged, {name}": past * weight for name, weight in lagged.items()}}

    @property
    def drift_detected(self) -> bool:
        """Whether the last labeled record signaled a drift, as in River's drift detectors.

        The model checks its losses after every 100th labeled record. So this is True after such a record, until the
        model learns the next labeled one.
        """
        return self._machine.experts.change.is_detected(self.n_records)

    @property
    def n_drifts_detected(self) -> int:
        """Drifts detected so far. A state from before this count existed contributes at most its last drift."""
        return self._machine.experts.change.n_detected

    @property
    def n_metric_relearnings(self) -> int:
        """How often the metric of the inputs was learned, including the first. With lags, in both cores.

        The count starts when the estimator is made or loaded. Its state does not include it.
        """
        return self._machine.n_relearnings

    @property
    def memory_bytes(self) -> int:
        """Bytes of the experts' matrices, the trees with their window, and the memory. With lags, of both cores."""
        machine = self._machine
        return machine.core.nbytes + (machine.lagged.core.nbytes if machine.lagged else 0)


def _weights(experts: LabelExperts | NumberExperts) -> dict[str, float]:
    """The weights of experts and stacks; 1 in all where nothing else has a weight."""
    shares = experts.shares
    return {name: shares.mixed * weight for name, weight in experts.weights.items()} | shares.stacks
