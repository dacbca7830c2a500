"""The core of an adaptive machine: from rows of numbers to predictions, which it learns from as the targets come.

After the numbers of records in the schedule, and after a change of the stream, the metric is learned again from the
last records, which then pass through fresh heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamkernel.adaptive.budget import Budget, Parts, with_room
from streamkernel.adaptive.change import BLOCK
from streamkernel.adaptive.experts import Arrivals
from streamkernel.adaptive.features import NO_KEYS, AdaptiveFeatures
from streamkernel.adaptive.relearning import Relearning
from streamkernel.adaptive.target_experts import LabelExperts, NumberExperts
from streamkernel.compute.features import FeatureMap
from streamkernel.fields import state_mismatch
from streamkernel.state import Array, State


@dataclass(eq=False)
class AdaptiveCore:
    """Columns, experts and the metric, all of rows of numbers with d inputs.

    - parts: The sizes of the parts; None where bytes do not matter, and before the first record.
    """

    columns: AdaptiveFeatures
    experts: LabelExperts | NumberExperts
    schedule: Sequence[int]  #: Labeled records after which the metric is learned again
    budget: Budget | None = None  #: What the parts must fit into; None where bytes do not matter

    def __post_init__(self) -> None:
        self.schedule = sorted(int(n) for n in self.schedule)
        self._relearning: Relearning | None = None
        self.parts: Parts | None = None

    @property
    def is_relearning(self) -> bool:
        """Whether a metric is in the making: no segment goes past a labeled record then."""
        return self._relearning is not None

    @property
    def nbytes(self) -> int:
        """Bytes of the experts, and of a metric in the making."""
        return self.experts.nbytes + (self._relearning.nbytes if self._relearning else 0)

    @property
    def n_inputs(self) -> int:
        """The inputs that have a place, d; 0 before the first record."""
        return self.columns.n_inputs

    def begin(self, n_inputs: int, n_outputs: int) -> None:
        """Begin with the inputs of the first record."""
        self.columns.begin(n_inputs)
        linear = self.columns.n_linear if self.columns.has_linear else None
        self.experts.begin(self.columns.n_columns, linear, n_outputs, n_inputs)

    def widen(self, n_inputs: int) -> None:
        """Give more inputs a place, as they come."""
        while self.columns.n_inputs < n_inputs:
            if self.columns.add_input():
                self.experts.add_column()
            if self._relearning:
                self._relearning.add_input()
        self.experts.forest.widen(self.columns.n_inputs)
        self.experts.memory.widen(self.columns.n_inputs)
        if self._relearning:
            self._relearning.find_rows()

    def add_output(self) -> None:
        """One more class."""
        self.experts.add_output()
        if self._relearning:
            self._relearning.add_output()

    def with_room(self, n_inputs: int, n_outputs: int, keys: Array) -> "AdaptiveCore":
        """Return this core, or one of other sizes if the inputs or outputs exceed its budget of bytes.

        That one knows the records this one remembers, and its heads have learned the last of them; trees start
        over, and linear experts where they are of another size.

        - n_inputs, n_outputs: What there will be room for.
        - keys: The keys of the inputs that have a place.
        """
        budget, parts = self.budget, self.parts
        if budget is None or (parts and n_inputs <= parts.n_inputs and n_outputs <= parts.n_outputs):
            return self
        core = budget.core(*with_room(n_inputs, n_outputs, parts), self.n_inputs if parts else n_inputs)
        if parts:
            core._resume(self, keys)
        return core

    def feature_map(self, keys: Array, extra_keys: Array = NO_KEYS) -> FeatureMap:
        """How scaled rows become columns: rows of the d inputs of `keys`, then those met in these rows only."""
        return self.columns.feature_map(keys, extra_keys)

    def advance(self, records: Arrivals) -> Array:
        """Predict, then learn, records; the predictions, (n, K) or (n, 3)."""
        return self.experts.advance(records)

    def end_segment(self, n_records: int, keys: Array) -> bool:
        """End a segment at this many labeled records; whether from now on another metric is in force.

        - n_records: Labeled records so far: no segment goes past the end of a block of `change`, or a number of the
          schedule, nor past a labeled record while a metric is in the making.
        - keys: The keys of the d inputs.
        """
        since = self.experts.change.end_block(n_records) if n_records % BLOCK == 0 else 0
        if since:
            self.experts.forest.keep_last(since)
        n_rows = min(len(self.experts.memory), self.experts.memory.buffer_size)
        # Where the stream has changed, what is in the making is of records that are past.
        if since and self.schedule:
            self._relearning = None
            n_rows = min(n_rows, since)
        # There are no rows where all that came had a weight of 0.
        if not self._relearning and n_rows and (n_records in self.schedule or (since and self.schedule)):
            self._relearning = Relearning(self.columns, self.experts, n_rows)
        if not self._relearning or not self._relearning.step(keys):
            return False
        self._relearning = None
        return True

    def state(self) -> State:
        """The fields of the state."""
        return {
            **({"parts": np.array(self.parts or Parts(*[0] * len(Parts._fields)), np.int64)} if self.budget else {}),
            **self.columns.state(),
            **self.experts.state(),
            **(self._relearning.state() if self._relearning else {}),
        }

    def load_state(self, state: State, began: bool, n_outputs: int, most_inputs: int) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit, and then the core is spoilt."""
        self.columns.load_state(state)
        if self.columns.n_inputs > most_inputs:
            raise state_mismatch("metric_scales")
        self.experts.load_state(
            state,
            self.columns.n_columns if began else 0,
            self.columns.n_linear if began and self.columns.has_linear else None,
            n_outputs if began else 0,
            self.columns.n_inputs if began else 0,
        )
        if began:
            self.experts.memory.set_metric(self.columns.scales)
        self._relearning = Relearning.of(state, self.columns, self.experts) if Relearning.is_in(state) else None

    def _resume(self, other: "AdaptiveCore", keys: Array) -> None:
        """Begin with what another core remembers."""
        self.begin(other.n_inputs, other.experts.n_outputs)
        self.columns.set_metric(other.columns.scales.copy(), other.columns.bandwidth)
        self.columns.d0 = other.columns.d0
        self.experts.resume(other.experts)
        self.experts.memory.set_metric(self.columns.scales)
        n = min(len(self.experts.memory), self.experts.memory.buffer_size)
        if n:
            X, y, w = self.experts.memory.rows_from(n, n)
            self.experts.exchange_heads(self.experts.fresh_heads())
            self.experts.replay(self.columns.of(X, keys), y, w)
        if other.is_relearning and n:
            self._relearning = Relearning(self.columns, self.experts, n)
