"""What a growing machine tells the window of its last records."""

from collections.abc import Sequence
from typing import Any, Protocol

from streamkernel.state import Array, State


class RecordWindow(Protocol):
    """The last labeled records, and when the coefficients are to be solved on them."""

    @property
    def room(self) -> int:
        """Records until the next refit, at least 1."""

    @property
    def is_due(self) -> bool:
        """Whether the coefficients are to be solved now."""

    def append(self, values: Array, n_inputs: int, targets: Sequence[Any], y: Array, weights: Array) -> None:
        """Add records.

        - values: Their encoded values before scaling, float64 of shape (n, at least n_inputs); NaN where not observed.
        - n_inputs: The number of inputs known at the last of them.
        - targets, y: Their prepared targets, and these encoded.
        - weights: Their weights.
        """

    def refit(self) -> bool:
        """Solve the coefficients; False where there is nothing to be solved yet."""

    def state(self, n_inputs: int) -> State:
        """The fields of the state."""

    def load_state(self, state: State, n_inputs: int) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
