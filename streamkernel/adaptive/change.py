"""Change: whether the mixture does worse than it did, block of records by block."""

import math
from typing import ClassVar

import numpy as np

from streamkernel.fields import Rules, all_from_zero, array, checked, state_mismatch, whole
from streamkernel.state import State

#: Labeled records of a block.
BLOCK = 100
#: Losses before are discounted by this a block; a change is found from this many records on.
DISCOUNT = 0.9
LEAST = 250
#: Deviations of a block's mean by which it must exceed the mean before.
DEVIATIONS = 4.0
#: What is less is no change.
ROUNDING = 1e-9
#: When the metric is learned again: this many records after the block that showed it.
DELAYS = (100, 300, 800)


class Change:
    """Watches the losses of the mixture and says when the metric is to be learned again, and from which records.

    A block whose mean loss exceeds the mean of those before by four deviations is a change: the records before it
    are past. The metric is learned from those since, as soon as there are some, and again when there are more.

    - block: Number, sum and sum of squares of the losses of this block: compiled code adds to it. float64 of shape
      (3,).
    - n_detected: Changes so far.
    """

    rules: ClassVar[Rules] = {"change_block": all_from_zero, "change_before": all_from_zero}

    def __init__(self) -> None:
        self.block = np.zeros(3)
        self._before = np.zeros(3)
        self._last = 0  # the records there had been when the last change came; 0 for none
        self.n_detected = 0

    def end_block(self, n_records: int) -> int:
        """End a block; the records since the last change where now is the time to learn from them, else 0."""
        if self._is_worse():
            self._last = n_records - BLOCK
            self.n_detected += 1
            self._before[:] = 0.0
        else:
            self._before = DISCOUNT * self._before + self.block
        self.block[:] = 0.0
        since = n_records - self._last
        return since if self._last and since - BLOCK in DELAYS else 0

    def is_detected(self, n_records: int) -> bool:
        """Whether the last of this many labeled records is the one at which a change was detected."""
        return self._last > 0 and n_records == self._last + BLOCK

    def _is_worse(self) -> bool:
        n, total, _ = self.block.tolist()
        before, total_before, squares_before = self._before.tolist()
        if before < LEAST or n < BLOCK / 2:
            return False
        mean = total_before / before
        variance = max(squares_before / before - mean * mean, 0.0)
        return total / n - mean > max(DEVIATIONS * math.sqrt(variance / n), ROUNDING)

    def state(self) -> State:
        """The fields of the state.

        Without `n_drifts_detected` there was one change if `change_last` tells of it, else none.
        """
        fields: State = {
            "change_block": self.block.copy(),
            "change_before": self._before.copy(),
            "change_last": np.array([self._last]),
        }
        if self.n_detected > 1:
            fields["n_drifts_detected"] = self.n_detected
        return checked(fields, self.rules)

    def load_state(self, state: State) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        checked(state, self.rules)
        self.block, self._before = (array(state, name, np.float64, 3) for name in ("change_block", "change_before"))
        self._last = int(array(state, "change_last", np.int64, 1)[0])
        if self._last < 0:
            raise state_mismatch("change_last")
        least = int(self._last > 0)
        self.n_detected = whole({"n_drifts_detected": least, **state}, "n_drifts_detected")
        if self.n_detected < least:
            raise state_mismatch("n_drifts_detected")
