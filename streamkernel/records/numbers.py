"""The encoder of regression targets: numbers are standardized, and scores brought back to their units."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from river.optim.losses import RegressionLoss

from streamkernel.compute.moments import LARGEST, MEAN, are_moments, deviation, drawn_in, standardize
from streamkernel.compute.moments import SIZE as MOMENTS
from streamkernel.fields import Rules, array, checked, whole
from streamkernel.records.targets import Encoded, Targets
from streamkernel.state import Array, State, excerpt, instead_of_number, real

_NUMBERS = {float, int}


def in_variances(squared: Array, variances: Array) -> Array:
    """Squared errors (n,) in variances of the targets so far: 0 before two differ, the largest float on overflow."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        losses = np.minimum(squared / variances, np.finfo(np.float64).max)
    return np.where(variances == 0, 0.0 * squared, losses)  # NaN stays NaN


class Numbers(Targets):
    """The encoder of regression targets, standardized by their running mean and deviation.

    Targets past `LARGEST` are cut there, and counted in `n_limited`. One that is past 100 deviations from the mean
    counts the less the farther it is.

    - loss: A loss of (n,) standardized targets and (n,) scores.
    - moments: The running moments of the targets, float64 of shape (`compute.moments.SIZE`,).
    """

    rules: ClassVar[Rules] = {"target_moments": are_moments}

    def __init__(self, loss: RegressionLoss) -> None:
        super().__init__(loss)

    def prepare(self, ys: Sequence[Any]) -> tuple[list[Any], int]:
        if _NUMBERS.issuperset(map(type, ys)) and all(-LARGEST <= y <= LARGEST for y in ys):
            return [*map(float, ys)], 0
        numbers = [None if y is None else plain_number(y) for y in ys]
        n_clipped = sum(y is not None and abs(y) > LARGEST for y in numbers)
        return [None if y is None else min(max(y, -LARGEST), LARGEST) for y in numbers], n_clipped

    def known(self, y: Any) -> float | None:
        """A plain number as a float; None for anything else."""
        return float(y) if type(y) in _NUMBERS and -LARGEST <= y <= LARGEST else None

    def value_of(self, value: float) -> float:
        """The target for which `known` returned a value."""
        return value

    def admit_known(self, value: float) -> float:
        return float(self.admit([value]).y[0])

    def admit(self, ys: Sequence[Any]) -> Encoded:
        encoded = np.empty(len(ys))
        before = np.empty((len(ys), 2))
        standardize(np.array(ys, np.float64), self.moments, encoded, before)  # None is NaN
        return Encoded(encoded, before)

    @property
    def deviation(self) -> float:
        """The running standard deviation of the targets; 0 before two differ."""
        return float(deviation(self.moments))

    def as_of_now(self, values: Array) -> Array:
        """Prepared targets, (n,), standardized by the current moments, which are not updated; outliers drawn in."""
        spread = self.deviation
        standardized = (values - self.moments[MEAN]) / (spread if spread > 0 else 1.0)
        return np.array([drawn_in(number, bounded=True) for number in standardized.tolist()])

    def losses(self, encoded: Encoded, scores: Array) -> Array:
        return self.answer("__call__", encoded.y, scores[:, 0])

    def values(self, encoded: Encoded, scores: Array) -> list[float]:
        """Predictions in the targets' units, by the moments before each record."""
        values: list[float] = (encoded.means + encoded.deviations * scores[:, 0]).tolist()
        return values

    def numbers(self, scores: Array) -> Array:
        """Predictions in the targets' units, by the current moments, shape (n,)."""
        return np.asarray(self.moments[MEAN] + self.deviation * scores[:, 0])

    def state(self) -> State:
        fields = {"target_moments": self.moments.copy(), "n_clipped_targets": self.n_limited}
        return checked(fields, self.rules)

    def load_state(self, state: State) -> None:
        checked(state, self.rules)
        self.moments = array(state, "target_moments", np.float64, MOMENTS)
        self.n_limited = whole(state, "n_clipped_targets")

    def forget(self) -> None:
        self.moments = np.zeros(MOMENTS)


def plain_number(y: Any) -> float:
    """Return a target as a float.

    ValueError: It is no finite number.
    """
    value = real(y)
    if value is not None and math.isfinite(value):
        return value
    instead = instead_of_number(y)
    advice = f"; instead of a date or a time, use {instead}" if instead else ""
    raise ValueError(f"the target {excerpt(y)} is not a finite number: use one, or None if it is not known{advice}")
