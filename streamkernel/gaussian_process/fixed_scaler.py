"""The standardization of inputs by means and deviations that stay: what is learned is learned where it is looked up."""

from typing import Any, ClassVar

import numpy as np

from streamkernel.compute.moments import COUNT, LARGEST, M2, MEAN
from streamkernel.fields import Rules, all_from_zero, array, checked, state_mismatch
from streamkernel.records.input_columns import RAW_LIMIT, InputScaler
from streamkernel.records.rows import Rows
from streamkernel.state import Array, State

#: An input has outgrown its scale where its running deviation is this many times the fixed one, or one part in as many.
OUTGROWN = 4.0
_FIXED_MEAN, _FIXED_DEVIATION = range(2)


class FixedScaler(InputScaler):
    """The standardization of inputs by fixed moments, and by the running ones until an input has some.

    - fixed: Mean and deviation of the first inputs, float64 of shape (n, 2); a deviation of 0 is none yet.
    """

    rules: ClassVar[Rules] = {
        **InputScaler.rules,
        "input_scales": lambda table: table.ndim == 2 and all_from_zero(table[:, 1:]),
    }

    def forget(self) -> None:
        super().forget()
        self.fixed = np.zeros((0, 2))

    def fix(self, least: int, again: bool) -> None:
        """Fix the scales of inputs by the running moments.

        - least: How often an input must have been observed.
        - again: Whether scales that are fixed are fixed again.
        """
        count, deviation = self.moments[:, COUNT], self._running_deviation
        table = np.stack([self.moments[:, MEAN], deviation], axis=1)
        table[(count < least) | ~(deviation > 0)] = 0.0
        if not again:
            kept = np.flatnonzero(self.fixed[:, _FIXED_DEVIATION] > 0)
            table[kept] = self.fixed[kept]
        self.fixed = table

    @property
    def is_outgrown(self) -> bool:
        """Whether the running deviation of an input is far from the fixed one."""
        fixed = self.fixed[:, _FIXED_DEVIATION]
        running = self._running_deviation[: len(fixed)]
        with np.errstate(over="ignore"):
            far = (running > OUTGROWN * fixed) | (running * OUTGROWN < fixed)
        return bool((far & (fixed > 0)).any())

    def scale(self, rows: Rows, learn: Array, dtype: np.dtype[Any]) -> Array:
        out = super().scale(rows, learn, dtype)
        self._replace(rows.values, out)
        return out

    def as_of_now(self, values: Array) -> Array:
        """Encoded values of shape (n, d), scaled by the fixed moments, and by the running ones of inputs without."""
        out = super().as_of_now(values)
        self._replace(values, out)
        return out

    def state(self) -> State:
        missing = len(self.moments) - len(self.fixed)
        return checked({**super().state(), "input_scales": np.pad(self.fixed, ((0, missing), (0, 0)))}, self.rules)

    def load_state(self, state: State) -> None:
        super().load_state(state)
        self.fixed = array(state, "input_scales", np.float64, len(self.moments), 2)
        if not np.isfinite(self.fixed).all():
            raise state_mismatch("input_scales")

    @property
    def _running_deviation(self) -> Array:
        return np.asarray(np.sqrt(self.moments[:, M2] / np.maximum(self.moments[:, COUNT], 1)))

    def _replace(self, values: Array, out: Array) -> None:
        """Standardize the columns that have fixed moments; absent values are 0."""
        table = self.fixed[: values.shape[1]]
        columns = np.flatnonzero(table[:, _FIXED_DEVIATION] > 0)
        if len(columns):
            centered = np.clip(values[:, columns], -LARGEST, LARGEST) - table[columns, _FIXED_MEAN]
            with np.errstate(over="ignore"):
                scaled = centered / table[columns, _FIXED_DEVIATION]
            out[:, columns] = np.nan_to_num(np.clip(scaled, -RAW_LIMIT, RAW_LIMIT), nan=0.0)
