"""The interface of the encoders of targets, the encoded targets that they return, and the check of what a loss gives.

There is one for each kind of loss: `classes.Classes`, `two_sides.TwoSides` and `numbers.Numbers`. Those of several
targets at once, `several_numbers.SeveralNumbers` and `several_labels.SeveralLabels`, have a column of scores for each.
"""

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from river.optim.losses import RegressionLoss

from streamkernel.compute.moments import LARGEST, MEAN, are_moments, deviation, drawn_in, standardize
from streamkernel.compute.moments import SIZE as MOMENTS
from streamkernel.fields import Rules, array, checked, whole
from streamkernel.state import Array, State, excerpt, instead_of_label, instead_of_number, real, tag, untag

#: Types of labels that are plain values as they come.
PLAIN_LABELS = {str, bool, int}


def plain_label(y: Any) -> Any:
    """Return a label as a plain Python value; None stays None.

    ValueError: It is NaN, or of a type that is no label.
    """
    if y is None or type(y) in PLAIN_LABELS:
        return y
    if instead := instead_of_label(y):  # before numpy makes a number of it
        kind = type(y).__name__
        raise ValueError(
            f"{excerpt(y)} is of type {kind}: names and labels are strings, booleans or numbers; use {instead}"
        )
    if isinstance(y, np.generic):
        y = y.item()
    if isinstance(y, float) and math.isnan(y):
        raise ValueError("the label is NaN: use a string, a boolean or a number, or None if it is not known")
    return untag(tag(y))


_FLOAT = np.dtype(np.float64)
_KINDS = "biufO"


@dataclass(frozen=True)
class Encoded:
    """Encoded targets of n consecutive records.

    - y: The column of the label, its side (0 or 1) or the standardized number, float64 of shape (n,); NaN where there
      is no target.
    - before: What was known before each record, float64 of shape (n, 2): (number of classes, 0), which of two sides had
      been seen, or the (mean, deviation) of the targets.
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
    def means(self) -> Array:
        """Means of the numbers before each record, float64 of shape (n,)."""
        return self.before[:, 0]

    @property
    def deviations(self) -> Array:
        """Standard deviations of the numbers before each record, float64 of shape (n,)."""
        return self.before[:, 1]

    @classmethod
    def joined(cls, parts: Sequence["Encoded"]) -> "Encoded":
        """Join the encoded targets of one or more parts that came one after the other."""
        return cls(np.concatenate([part.y for part in parts]), np.concatenate([part.before for part in parts]))


class Targets(abc.ABC):
    """The encoder of one kind of target, with its loss.

    - n_limited: Labels ignored because they came past the limit, or numbers cut to the largest there may be.
    - limit_warning: The warning when that happens; empty for none.
    """

    limit_warning = ""

    def __init__(self, loss: Any) -> None:
        self.loss: Any = loss
        self.n_limited = 0
        self.forget()

    @property
    def n_outputs(self) -> int:
        """K, the number of scores that a record has by now."""
        return 1

    @abc.abstractmethod
    def prepare(self, ys: Sequence[Any]) -> tuple[list[Any], int]:
        """Validate targets: plain values, None where a record is not learned, and the number of those past the limit.

        Nothing is changed. ValueError where a value is no target.
        """

    @abc.abstractmethod
    def admit(self, ys: Sequence[Any]) -> Encoded:
        """Encode validated targets one after the other, each with what was known before it; new labels join."""

    @abc.abstractmethod
    def known(self, y: Any) -> Any:
        """The argument of `admit_known` for a plain target that brings no new label; None for any other."""

    def admit_known(self, value: Any) -> Any:
        """Encode one target for which `known` returned a value; of several targets (K,)."""
        return value

    def losses(self, encoded: Encoded, scores: Array) -> Array:
        """The loss of the scores (n, K) of each record before it was learned, (n,); NaN where there is no target."""
        out, rows = np.full(len(encoded.y), np.nan), encoded.labeled
        out[rows] = self.answer("__call__", encoded.y[rows], scores[rows, 0])
        return out

    def gradient(self, y: Array, scores: Array) -> Array:
        """The derivative dl/du of the loss by the scores u (n, K), float64 of shape (n, K)."""
        return self.answer("gradient", y, scores[:, 0])[:, None]

    def are_encoded(self, y: Array) -> bool:
        """Whether an array of a state can be encoded targets of records that wait for a step."""
        return y.ndim == 1

    @abc.abstractmethod
    def state(self) -> State:
        """The fields of the state."""

    @abc.abstractmethod
    def load_state(self, state: State) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""

    @abc.abstractmethod
    def forget(self) -> None:
        """Reset labels or moments; `n_limited` stays."""

    def answer(self, method: str, y: Array, scores: Array) -> Array:
        """Return what a method of the loss gives, as float64.

        TypeError: It is no array of numbers, or of another shape: numpy would broadcast any other without a word. The
        daemon takes a ValueError for that of a record.
        """
        answer = getattr(self.loss, method)(y, scores)
        shape = y.shape if method == "__call__" else scores.shape
        if type(answer) is np.ndarray and answer.dtype == _FLOAT and answer.shape == shape:
            return answer
        what = f"the loss {type(self.loss).__name__} gave"
        wanted = f"in its method `{method}`: it must give an array of numbers of shape {shape}"
        try:
            given = np.asarray(answer)
            numbers = np.asarray(given, np.float64) if given.dtype.kind in _KINDS else None
        except (TypeError, ValueError):
            numbers = None
        if numbers is None or answer is None:
            raise TypeError(f"{what} {excerpt(answer)} {wanted}")
        if numbers.shape != shape:
            raise TypeError(f"{what} an array of shape {numbers.shape} {wanted}")
        return numbers


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

    def values(self, encoded: Encoded, scores: Array) -> Array:
        """Predictions in the targets' units, by the moments before each record, shape (n,)."""
        return np.asarray(encoded.means + encoded.deviations * scores[:, 0])

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
