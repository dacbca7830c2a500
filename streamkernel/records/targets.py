"""The interface of the encoders of targets, and the encoded targets that they return.

There is one for each kind of loss: `classes.Classes`, `two_sides.TwoSides` and `numbers.Numbers`. Those of several
targets at once, `several_numbers.SeveralNumbers` and `several_labels.SeveralLabels`, have a column of scores for each.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from streamkernel.state import Array, State


@dataclass(frozen=True)
class Encoded:
    """Encoded targets of n consecutive records.

    Attributes
    ----------
    y
        The column of the label, its side (0 or 1) or the standardized number, float64 of shape (n,); NaN where there is
        no target.
    before
        What was known before each record, float64 of shape (n, 2): (number of classes, 0), which of two sides had been
        seen, or the (mean, deviation) of the targets.

    """

    y: Array
    before: Array

    @property
    def labeled(self) -> Array:
        """Which records have a target, bool of shape (n,)."""
        return ~np.isnan(self.y)

    @property
    def n_classes(self) -> Array:
        """Classes known before each record, int64 of shape (n,)."""
        return self.before[:, 0].astype(np.int64)

    @property
    def sides_seen(self) -> Array:
        """Which of two sides had been seen before each record, bool of shape (n, 2)."""
        return self.before.astype(bool)

    @property
    def means(self) -> Array:
        """Means of the numbers before each record, float64 of shape (n,)."""
        return self.before[:, 0]

    @property
    def deviations(self) -> Array:
        """Standard deviations of the numbers before each record, float64 of shape (n,)."""
        return self.before[:, 1]

    @classmethod
    def joined(cls, parts: Sequence["Encoded"]) -> "Encoded":
        """The encoded targets of parts that came one after the other, of which there is at least one."""
        return cls(np.concatenate([part.y for part in parts]), np.concatenate([part.before for part in parts]))


class Targets(Protocol):
    """The encoder of one kind of target, with its loss."""

    loss: Any
    #: Labels ignored because they came past the limit, or numbers cut to the largest there may be.
    n_limited: int
    #: What to warn of when that happens; empty for nothing.
    limit_warning: str

    @property
    def n_outputs(self) -> int:
        """K, the number of scores that a record has by now."""

    def prepare(self, ys: Sequence[Any]) -> tuple[list[Any], int]:
        """Validate targets: plain values, None where a record is not learned, and the number of those past the limit.

        Nothing is changed. ValueError where a value is no target.
        """

    def admit(self, ys: Sequence[Any]) -> Encoded:
        """Encode validated targets one after the other, each with what was known before it; new labels join."""

    def known(self, y: Any) -> Any:
        """The argument of `admit_known` for a plain target that brings no new label; None for any other."""

    def admit_known(self, value: Any) -> Any:
        """Encode one target for which `known` returned a value; of several targets (K,)."""

    def losses(self, encoded: Encoded, scores: Array) -> Array:
        """The loss of the scores (n, K) of each record before it was learned, (n,); NaN where there is no target."""

    def gradient(self, y: Array, scores: Array) -> Array:
        """The derivative dl/du of the loss by the scores u (n, K), float64 of shape (n, K)."""

    def are_encoded(self, y: Array) -> bool:
        """Whether an array of a state can be encoded targets of records that wait for a step."""

    def state(self) -> State:
        """The fields of the state."""

    def load_state(self, state: State) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""

    def forget(self) -> None:
        """Reset labels or moments; `n_limited` stays."""
