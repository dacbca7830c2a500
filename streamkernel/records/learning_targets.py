"""Encoders of targets that learn from scores, in addition to the coefficients of the machine: a threshold, or means."""

import abc
import math
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from streamkernel.fields import Rules, array, checked, number, whole, within
from streamkernel.losses import KLDensityRatio, NoveltyHinge
from streamkernel.records.targets import PLAIN_LABELS, Encoded, Targets, plain_label
from streamkernel.state import Array, State, excerpt


class LearningTargets(Targets):
    """An encoder of targets with something of its own to learn from the scores of each mini-batch."""

    def observe(self, y: Array, scores: Array, weights: Array) -> None:
        """Take in a mini-batch before its step; arguments as for `observed`."""
        self.take_observed(len(y), self.observed(y, scores, weights))

    def take_step(self, size: float, scores: Array, weights: Array) -> None:
        """Take a step as `take_slope` does; arguments as for `slope`."""
        self.take_slope(size * (self.slope(scores, weights) / len(scores)))

    @abc.abstractmethod
    def observed(self, y: Array, scores: Array, weights: Array) -> Array:
        """What there is to be taken in of some rows, as sums over them, float64; nothing is changed.

        - y: Encoded targets, float64 of shape (B,).
        - scores: The scores of the records before they are learned, float64 of shape (B, 1).
        - weights: The records' weights, float64 of shape (B,).
        """

    @abc.abstractmethod
    def take_observed(self, n: int, sums: Array) -> None:
        """Take in a mini-batch of n records, of which `observed` gave the sums, before its step."""

    @abc.abstractmethod
    def slope(self, scores: Array, weights: Array) -> float:
        """The sum of the weighted derivatives of the loss by all that it depends on except the scores.

        - scores, weights: As for `observed`; of several blocks a step, the scores after those before.
        """

    @abc.abstractmethod
    def take_slope(self, step: float) -> None:
        """Take a gradient step of this length in all that the loss depends on except the scores.

        - step: The mean derivative times the step size by which the coefficients decay in the same step, times the
          largest k(x, x).
        """


#: The threshold is cut here, as coefficients are.
LARGEST_THRESHOLD = 1e30


class OneClass(LearningTargets):
    """The encoder of records without labels, with the threshold tau below which a score is that of a novelty.

    - loss: The one-class hinge loss of thresholds and scores.
    - threshold: tau.
    - n_flagged: Records learned whose score had been below the threshold.
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


#: No sum of weights is larger, nor is any mean of exp of the largest `clip` of the loss.
MOST = 1e30


class TwoSamples(LearningTargets):
    """The encoder of the samples p and q: 1 and 0, each record counted by 1 over the share of its sample.

    Shares and means are exponentially weighted: a record's weight falls by 1 - 1 / window with each later one, in the
    means with each of its sample.

    - loss: The loss of sides and scores.
    - p, q: The labels of the samples.
    - window: The records that the averages look back.
    - counts: Records of q and p by their weights, those that the shares follow from, float64 of shape (2,).
    - sizes, means: Records of q and p, and the means of exp(f) over q and of f over p, each score taken before its
      record was learned; float64 of shape (2,).
    """

    rules: ClassVar[Rules] = {
        "sample_counts": within(0.0, MOST),
        "sample_sizes": within(0.0, MOST),
        "sample_means": within(-MOST, MOST),
    }

    def __init__(self, loss: KLDensityRatio, p: Hashable, q: Hashable, window: int) -> None:
        super().__init__(loss)
        self.p, self.q = p, q
        self._sides: dict[Any, float] = {None: math.nan, q: 0.0, p: 1.0}
        self._memory = 1.0 - 1.0 / window

    @property
    def shares(self) -> Array:
        """The shares of q and p, float64 of shape (2,); they sum to 1, and neither is 0."""
        return np.asarray((self.counts + 1.0) / (self.counts.sum() + 2.0))

    @property
    def divergence(self) -> float:
        """E_p f - E_q exp f + 1; NaN before there were records of both."""
        of_q, of_p = self.means.tolist()
        return of_p - of_q + 1.0 if self.sizes.all() else math.nan

    @property
    def donsker_varadhan(self) -> float:
        """E_p f - log E_q exp f; NaN before there were records of both."""
        of_q, of_p = self.means.tolist()
        # No mean of exp f is below exp(-clip), but rounding may leave less.
        return of_p - math.log(max(of_q, math.exp(-self.loss.clip))) if self.sizes.all() else math.nan

    def prepare(self, ys: Sequence[Any]) -> tuple[list[Any], int]:
        labels = [plain_label(y) for y in ys]
        for label in labels:
            if label not in self._sides:
                raise ValueError(
                    f"the sample is {excerpt(label)}, and this model has the samples p={excerpt(self.p)} and "
                    f"q={excerpt(self.q)}: use one of them, or None if it is not known"
                )
        return labels, 0

    def known(self, y: Any) -> float | None:
        return None if y is None or type(y) not in PLAIN_LABELS else self._sides.get(y)

    def admit(self, ys: Sequence[Any]) -> Encoded:
        return Encoded(np.array([self._sides[y] for y in ys], np.float64), np.zeros((len(ys), 2)))

    def losses(self, encoded: Encoded, scores: Array) -> Array:
        # From below only: past `clip` the loss continues as a tangent.
        f = np.maximum(scores[:, 0], -self.loss.clip)
        values = np.asarray(self.loss(encoded.y == 1.0, f), np.float64)
        return np.where(encoded.labeled, values, np.nan)

    def gradient(self, y: Array, scores: Array) -> Array:
        slopes = np.asarray(self.loss.gradient(y, scores[:, 0]), np.float64)
        return np.asarray(slopes / self.shares[y.astype(np.int64)])[:, None]

    def observed(self, y: Array, scores: Array, weights: Array) -> Array:
        sums = []
        clipped = self.log_ratios(scores)
        for side, values in enumerate((np.exp(clipped), clipped)):
            own = y == side
            sums += [own.sum(), weights[own].sum(), weights[own] @ (values[own] - self.means[side])]
        return np.array(sums, np.float64)

    def take_observed(self, n: int, sums: Array) -> None:
        self.counts *= self._memory**n
        for side, (count, total, delta) in enumerate(sums.reshape(2, 3).tolist()):
            self.counts[side] += total
            if total:
                size = self.sizes[side] * self._memory ** int(count) + total
                self.means[side] += delta / size
                self.sizes[side] = size

    def slope(self, scores: Array, weights: Array) -> float:  # noqa: ARG002 - nothing but f is learned by steps
        return 0.0

    def take_slope(self, step: float) -> None:
        """Nothing but f is learned by steps."""

    def log_ratios(self, scores: Array) -> Array:
        """log p/q by scores (n, 1), shape (n,), from -clip to clip of the loss."""
        return np.asarray(np.clip(scores[:, 0], -self.loss.clip, self.loss.clip))

    def state(self) -> State:
        fields = {
            "sample_counts": self.counts.copy(),
            "sample_sizes": self.sizes.copy(),
            "sample_means": self.means.copy(),
        }
        return checked(fields, self.rules)

    def load_state(self, state: State) -> None:
        checked(state, self.rules)
        self.counts, self.sizes, self.means = (
            array(state, f"sample_{name}", np.float64, 2) for name in ("counts", "sizes", "means")
        )

    def forget(self) -> None:
        self.counts, self.sizes, self.means = np.zeros(2), np.zeros(2), np.zeros(2)
