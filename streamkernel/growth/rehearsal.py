"""The rehearsal: the first labelled records as they came, kept until they fix a bandwidth that was left to the data."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from streamkernel.state import Array, Record, Rules, all_from_zero, array, checked, misfit, none_infinite, tag, untagged

#: Labelled records after which the bandwidth is fixed and the machine starts anew with them.
WARM_UP = 200


class Rehearsal:
    """The first labelled records as they came.

    Attributes
    ----------
    targets, weights
        Prepared targets and weights so far.

    """

    rules: ClassVar[Rules] = {"rehearsal_values": none_infinite, "rehearsal_weights": all_from_zero}

    def __init__(self) -> None:
        self._values: list[Array] = []
        self.targets: list[Any] = []
        self.weights: list[float] = []

    @property
    def room(self) -> int:
        """Records until the bandwidth is fixed."""
        return WARM_UP - len(self.targets)

    def append(self, values: Array, targets: Sequence[Any], weights: Array) -> None:
        """Add records: encoded values (n, d), targets and weights."""
        self._values.append(values)
        self.targets.extend(targets)
        self.weights.extend(weights.tolist())

    def rows(self, n_inputs: int) -> Array:
        """The encoded values, shape (n, n_inputs): an input that came later was not observed before."""
        out = np.full((len(self.targets), n_inputs), np.nan)
        at = 0
        for part in self._values:
            out[at : at + len(part), : part.shape[1]] = part
            at += len(part)
        return out

    def record(self, n_inputs: int) -> Record:
        """The fields of the state."""
        return checked(
            {
                "rehearsal_values": self.rows(n_inputs),
                "rehearsal_targets": [tag(y) for y in self.targets],
                "rehearsal_weights": np.array(self.weights),
            },
            self.rules,
        )

    @classmethod
    def restored(cls, record: Record, n_inputs: int) -> "Rehearsal":
        """A rehearsal of the fields that `record` gave; ValueError where they do not fit."""
        checked(record, cls.rules)
        rehearsal = cls()
        targets = untagged(record, "rehearsal_targets")
        if len(targets) >= WARM_UP:
            raise misfit("rehearsal_targets")
        values = array(record, "rehearsal_values", np.float64, len(targets), n_inputs)
        weights = array(record, "rehearsal_weights", np.float64, len(targets))
        if targets:
            rehearsal.append(values, targets, weights)
        return rehearsal
