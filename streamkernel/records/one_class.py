"""The encoder of novelty detection: every record belongs to one class, and a threshold is learned with the scores."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from streamkernel.fields import Rules, checked, number, whole, within
from streamkernel.losses import NoveltyHinge
from streamkernel.records.learning_targets import LearningTargets
from streamkernel.records.targets import Encoded
from streamkernel.state import Array, State

#: The threshold is cut here, as coefficients are.
LARGEST_THRESHOLD = 1e30


class OneClass(LearningTargets):
    """The encoder of records without labels, with the threshold tau below which a score is that of a novelty.

    Parameters
    ----------
    loss
        The one-class hinge loss of thresholds and scores.

    Attributes
    ----------
    threshold
        tau.
    n_flagged
        Records learned whose score had been below the threshold.

    """

    threshold: float
    n_flagged: int
    rules: ClassVar[Rules] = {"threshold": within(-LARGEST_THRESHOLD, LARGEST_THRESHOLD)}

    def __init__(self, loss: NoveltyHinge) -> None:
        super().__init__(loss)

    def prepare(self, ys: Sequence[Any]) -> tuple[list[Any], int]:
        return [None if y is None else True for y in ys], 0

    def known(self, y: Any) -> float | None:
        return None if y is None else 1.0

    def admit(self, ys: Sequence[Any]) -> Encoded:
        before = np.zeros((len(ys), 2))
        before[:, 0] = self.threshold
        return Encoded(np.array([math.nan if y is None else 1.0 for y in ys]), before)

    def losses(self, encoded: Encoded, scores: Array) -> Array:
        values = np.asarray(self.loss(encoded.before[:, 0], scores[:, 0]), np.float64)
        return np.where(encoded.labeled, values, np.nan)

    def gradient(self, y: Array, scores: Array) -> Array:  # noqa: ARG002 - there is no target
        return np.asarray(self.loss.gradient(self.threshold, scores[:, 0]), np.float64)[:, None]

    def observed(self, y: Array, scores: Array, weights: Array) -> Array:  # noqa: ARG002 - each record counts once
        return np.array([(scores[:, 0] < self.threshold).sum()], np.float64)

    def take_observed(self, n: int, sums: Array) -> None:  # noqa: ARG002 - of whatever number
        self.n_flagged += int(sums[0])

    def slope(self, scores: Array, weights: Array) -> float:
        return float(np.sum(weights * self.loss.threshold_gradient(self.threshold, scores[:, 0])))

    def take_slope(self, step: float) -> None:
        moved = self.threshold - step
        self.threshold = min(max(moved, -LARGEST_THRESHOLD), LARGEST_THRESHOLD)

    def novelty(self, encoded: Encoded, scores: Array) -> Array:
        """By how much each score is below the threshold that there was before its record, shape (n,)."""
        return np.asarray(encoded.before[:, 0] - scores[:, 0])

    def state(self) -> State:
        return checked({"threshold": self.threshold, "n_flagged": self.n_flagged}, self.rules)

    def load_state(self, state: State) -> None:
        checked(state, self.rules)
        self.threshold = number(state, "threshold")
        self.n_flagged = whole(state, "n_flagged")

    def forget(self) -> None:
        self.threshold = 0.0
        self.n_flagged = 0
