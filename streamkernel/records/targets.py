"""The interface of the encoders of targets, the encoded targets that they return, and the check of what a loss gives.

There is one for each kind of loss: `classes.Classes`, `two_sides.TwoSides` and `numbers.Numbers`. Those of several
targets at once, `several_numbers.SeveralNumbers` and `several_labels.SeveralLabels`, have a column of scores for each.
"""

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkernel.state import Array, State, excerpt, instead_of_label, tag, untag

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
_NUMBERS = "biufO"


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
            numbers = np.asarray(given, np.float64) if given.dtype.kind in _NUMBERS else None
        except (TypeError, ValueError):
            numbers = None
        if numbers is None or answer is None:
            raise TypeError(f"{what} {excerpt(answer)} {wanted}")
        if numbers.shape != shape:
            raise TypeError(f"{what} an array of shape {numbers.shape} {wanted}")
        return numbers
