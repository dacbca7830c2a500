"""The encoder of a density ratio: which of two samples a record belongs to, with their shares and divergence."""

import math
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from streamkernel.fields import Rules, array, checked, within
from streamkernel.losses import KLDensityRatio
from streamkernel.records.labels import PLAIN_LABELS, plain_label
from streamkernel.records.learning_targets import LearningTargets
from streamkernel.records.targets import Encoded
from streamkernel.state import Array, State, excerpt

#: No sum of weights is larger, nor is any mean of exp of the largest `clip` of the loss.
MOST = 1e30


class TwoSamples(LearningTargets):
    """The encoder of the samples p and q: 1 and 0, each record counted by 1 over the share of its sample.

    Shares and means are exponentially weighted: a record's weight falls by 1 - 1 / window with each later one, in the
    means with each of its sample.

    Parameters
    ----------
    loss
        The loss of sides and scores.
    p, q
        The labels of the samples.
    window
        The records that the averages look back.

    Attributes
    ----------
    counts
        Records of q and p by their weights, those that the shares follow from, float64 of shape (2,).
    sizes, means
        Records of q and p, and the means of exp(f) over q and of f over p, each score taken before its record was
        learned; float64 of shape (2,).

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
