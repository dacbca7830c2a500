"""The encoders of targets: labels become columns of scores, numbers are standardised, scores become predictions."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from river.optim.losses import BinaryLoss, MultiClassLoss, RegressionLoss
from scipy import special

from streamkernel.compute.moments import LARGEST, MEAN, are_moments, deviation, standardise
from streamkernel.compute.moments import SIZE as MOMENTS
from streamkernel.dates import instead_of_label, instead_of_number
from streamkernel.fields import Rules, array, checked, state_mismatch, untagged, whole
from streamkernel.losses import softmax
from streamkernel.state import Array, State, real, shown, tag, untag


@dataclass(frozen=True)
class Encoded:
    """Encoded targets of n consecutive records.

    Attributes
    ----------
    y
        The column of the label, its side (0 or 1) or the standardised number, float64 of shape (n,); NaN where there is
        no target.
    before
        What was known before each record, float64 of shape (n, 2): (number of classes, 0), which of two sides had been
        seen, or the (mean, deviation) of the targets.

    """

    y: Array
    before: Array

    @property
    def labelled(self) -> Array:
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
        """Validate targets: plain values, None where a record is not learnt, and the number of those past the limit.

        Nothing is changed. ValueError where a value is no target.
        """

    def admit(self, ys: Sequence[Any]) -> Encoded:
        """Encode validated targets one after the other, each with what was known before it; new labels join."""

    def known(self, y: Any) -> float | None:
        """The argument of `admit_known` for a plain target that brings no new label; None for any other."""

    def admit_known(self, value: float) -> float:
        """Encode one target for which `known` returned a value."""

    def losses(self, encoded: Encoded, scores: Array) -> Array:
        """The loss of the scores (n, K) of each record before it was learnt, (n,); NaN where there is no target."""

    def gradient(self, y: Array, scores: Array) -> Array:
        """The derivative dl/du of the loss by the scores u (n, K), float64 of shape (n, K)."""

    def state(self) -> State:
        """The fields of the state."""

    def load_state(self, state: State) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""

    def forget(self) -> None:
        """Reset labels or moments; `n_limited` stays."""


class Classes:
    """The encoder of class labels: one column of scores each, in the order of arrival.

    Parameters
    ----------
    loss
        A loss of (n,) columns and (n, K) scores.
    max_classes
        The most labels. Records of any other are predicted only, and counted in `n_limited`.

    Attributes
    ----------
    labels
        The labels in the order of their columns.

    """

    limit_warning = "classes past max_classes are predicted only, counted in n_ignored_labels"

    def __init__(self, loss: MultiClassLoss, max_classes: int) -> None:
        self.loss: Any = loss
        self.max_classes = max_classes
        self.labels: list[Hashable] = []
        # Of None too, which is no label: NaN.
        self._columns: dict[Hashable, float] = {None: math.nan}
        self.n_limited = 0

    @property
    def n_outputs(self) -> int:
        return len(self.labels)

    def prepare(self, ys: Sequence[Any]) -> tuple[list[Any], int]:
        labels = list(ys) if _PLAIN_OR_NONE.issuperset(map(type, ys)) else [_plain_label(y) for y in ys]
        if self._columns.keys() >= set(labels):
            return labels, 0
        seen = dict.fromkeys(self.labels)
        n_ignored = 0
        prepared: list[Any] = []
        for label in labels:
            if label is not None and label not in seen:
                if len(seen) < self.max_classes:
                    tag(label)  # a label that no state could hold is refused before anything is learnt
                    seen[label] = None
                else:
                    label = None
                    n_ignored += 1
            prepared.append(label)
        return prepared, n_ignored

    def is_new(self, label: Hashable) -> bool:
        """Whether a label has no column yet."""
        return label not in self._columns

    def known(self, y: Any) -> float | None:
        """The column of a plain label that has one; None for anything else."""
        return self._columns.get(y) if type(y) in _PLAIN else None

    def admit_known(self, value: float) -> float:
        return value

    def _encoded(self, labels: Sequence[Any]) -> Array:
        return np.array([*map(self._columns.__getitem__, labels)], np.float64)

    def admit(self, ys: Sequence[Any]) -> Encoded:
        column = self._columns
        before = np.zeros((len(ys), 2))
        if column.keys() >= set(ys):
            before[:, 0] = len(self.labels)
            return Encoded(self._encoded(ys), before)
        y = np.full(len(ys), np.nan)
        for i, label in enumerate(ys):
            before[i, 0] = len(self.labels)
            if label not in column:
                column[label] = len(self.labels)
                self.labels.append(label)
            y[i] = column[label]
        return Encoded(y, before)

    def losses(self, encoded: Encoded, scores: Array) -> Array:
        out = np.full(len(encoded.y), np.nan)
        rows = encoded.labelled
        known = np.where(rows, np.fmax(encoded.n_classes, encoded.y + 1), 0).astype(np.int64)
        # Cut to the classes known: numpy's sums change their last bits with the number of terms, even of zeros.
        for n_classes in np.unique(known[rows]):
            alike = known == n_classes
            out[alike] = self.loss(encoded.y[alike].astype(np.int64), scores[alike, :n_classes])
        return out

    def gradient(self, y: Array, scores: Array) -> Array:
        return np.asarray(self.loss.gradient(y.astype(np.int64), scores), np.float64)

    def probabilities(self, encoded: Encoded, scores: Array) -> list[dict[Any, float]]:
        """The probabilities of each record, by the labels that were known before it."""
        known = encoded.n_classes
        if len(known) and known[0] == known[-1] == len(self.labels) == 2:  # the most frequent case
            first, second = self.labels
            return [{first: p, second: q} for p, q in softmax(scores[:, :2]).tolist()]
        result: list[dict[Any, float]] = [{}] * len(known)
        for n_classes in set(known[known > 0].tolist()):
            rows = np.flatnonzero(known == n_classes)
            labels = self.labels[:n_classes]
            for r, p in zip(rows, softmax(scores[rows, :n_classes]).tolist(), strict=True):
                result[r] = dict(zip(labels, p, strict=True))
        return result

    def distribution(self, scores: Array) -> tuple[list[Any], Array]:
        """The labels known by now, and their probabilities for each row of scores, shape (n, K)."""
        return list(self.labels), softmax(scores) if self.labels else scores

    def state(self) -> State:
        return {"labels": [tag(label) for label in self.labels], "n_ignored_labels": self.n_limited}

    def load_state(self, state: State) -> None:
        self.labels = untagged(state, "labels")
        if len(set(self.labels)) != len(self.labels):
            raise state_mismatch("labels")
        self._columns = {None: math.nan, **{label: i for i, label in enumerate(self.labels)}}
        self.n_limited = whole(state, "n_ignored_labels")

    def forget(self) -> None:
        self.labels = []
        self._columns = {None: math.nan}


class TwoSides:
    """The encoder of two labels under a margin loss, which are False and True until others arrive.

    A label that is neither takes the place of one not seen yet; a third is an error.

    Parameters
    ----------
    loss
        A loss of (n,) sides, 0 or 1, and (n,) scores.

    Attributes
    ----------
    labels, seen
        The labels of sides 0 and 1, and whether each was seen.

    """

    n_outputs = 1
    limit_warning = ""

    def __init__(self, loss: BinaryLoss) -> None:
        self.loss: Any = loss
        self.n_limited = 0
        self.labels: list[Hashable] = []
        self.forget()

    def prepare(self, ys: Sequence[Any]) -> tuple[list[Any], int]:
        labels, seen = list(self.labels), list(self.seen)
        prepared = [_plain_label(y) for y in ys]
        for label in prepared:
            if label is not None:
                _take_side(label, labels, seen)
        return prepared, 0

    def known(self, y: Any) -> float | None:
        return float(self.labels.index(y)) if type(y) in _PLAIN and all(self.seen) and y in self.labels else None

    def admit_known(self, value: float) -> float:
        return value

    def admit(self, ys: Sequence[Any]) -> Encoded:
        y = np.full(len(ys), np.nan)
        before = np.zeros((len(ys), 2))
        for i, label in enumerate(ys):
            before[i] = self.seen
            if label is not None:
                y[i] = _take_side(label, self.labels, self.seen)
        return Encoded(y, before)

    def losses(self, encoded: Encoded, scores: Array) -> Array:
        out = np.full(len(encoded.y), np.nan)
        rows = encoded.labelled
        out[rows] = self.loss(encoded.y[rows], scores[rows, 0])
        return out

    def gradient(self, y: Array, scores: Array) -> Array:
        return np.asarray(self.loss.gradient(y, scores[:, 0]), np.float64)[:, None]

    def probabilities(self, encoded: Encoded, scores: Array) -> list[dict[Any, float]]:
        """The sigmoid of each score as probabilities of both labels; only one, if seen alone and no boolean, has 1."""
        positive = special.expit(scores[:, 0]).tolist()
        result: list[dict[Any, float]] = []
        for p, seen in zip(positive, encoded.sides_seen.tolist(), strict=True):
            sides = self._sides(seen)
            result.append(dict(zip(sides, [1.0 - p, p] if len(sides) == 2 else [1.0], strict=True)))
        return result

    def distribution(self, scores: Array) -> tuple[list[Any], Array]:
        """The labels that have a probability by now, and these for each row of scores, shape (n, 2) or (n, 1)."""
        sides, positive = self._sides(self.seen), special.expit(scores[:, 0])
        return sides, np.stack([1.0 - positive, positive] if len(sides) == 2 else [np.ones(len(scores))], axis=1)

    def _sides(self, seen: Sequence[bool]) -> list[Any]:
        """Both labels, unless only one was seen and it is neither False nor True."""
        sides = [
            label if known else bool(side) for side, (label, known) in enumerate(zip(self.labels, seen, strict=True))
        ]
        only = sides[1 if seen[1] else 0]
        return [only] if sum(seen) == 1 and not isinstance(only, bool) else sides

    def state(self) -> State:
        return {"labels": [tag(label) for label in self.labels], "labels_seen": list(self.seen)}

    def load_state(self, state: State) -> None:
        self.labels = untagged(state, "labels")
        if len(set(self.labels)) != 2:
            raise state_mismatch("labels")
        match state.get("labels_seen"):
            case [bool(negative), bool(positive)]:
                self.seen = [negative, positive]
            case _:
                raise state_mismatch("labels_seen")

    def forget(self) -> None:
        self.labels = [False, True]
        self.seen = [False, False]


class Numbers:
    """The encoder of regression targets, standardised by their running mean and deviation.

    Targets past `LARGEST` are cut there, and counted in `n_limited`. One that is past 100 deviations from the mean
    counts the less the farther it is.

    Parameters
    ----------
    loss
        A loss of (n,) standardised targets and (n,) scores.

    Attributes
    ----------
    moments
        The running moments of the targets, float64 of shape (`compute.moments.SIZE`,).

    """

    n_outputs = 1
    limit_warning = ""
    rules: ClassVar[Rules] = {"target_moments": are_moments}

    def __init__(self, loss: RegressionLoss) -> None:
        self.loss: Any = loss
        self.n_limited = 0
        self.moments = np.zeros(MOMENTS)

    def prepare(self, ys: Sequence[Any]) -> tuple[list[Any], int]:
        if _NUMBERS.issuperset(map(type, ys)) and all(-LARGEST <= y <= LARGEST for y in ys):
            return [*map(float, ys)], 0
        numbers = [None if y is None else plain_number(y) for y in ys]
        n_clipped = sum(y is not None and abs(y) > LARGEST for y in numbers)
        return [None if y is None else min(max(y, -LARGEST), LARGEST) for y in numbers], n_clipped

    def known(self, y: Any) -> float | None:
        """A plain number as a float; None for anything else."""
        return float(y) if type(y) in _NUMBERS and -LARGEST <= y <= LARGEST else None

    def admit_known(self, value: float) -> float:
        return float(self.admit([value]).y[0])

    def admit(self, ys: Sequence[Any]) -> Encoded:
        encoded = np.empty(len(ys))
        before = np.empty((len(ys), 2))
        standardise(np.array(ys, np.float64), self.moments, encoded, before)  # None is NaN
        return Encoded(encoded, before)

    @property
    def deviation(self) -> float:
        """The running standard deviation of the targets; 0 before two differ."""
        return float(deviation(self.moments))

    def losses(self, encoded: Encoded, scores: Array) -> Array:
        return np.asarray(self.loss(encoded.y, scores[:, 0]), np.float64)

    def gradient(self, y: Array, scores: Array) -> Array:
        return np.asarray(self.loss.gradient(y, scores[:, 0]), np.float64)[:, None]

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


def _take_side(label: Hashable, labels: list[Hashable], seen: list[bool]) -> int:
    """The side of a label, 0 or 1; a new one takes the place of a label not seen yet."""
    if label in labels:
        side = labels.index(label)
    elif all(seen):
        raise ValueError(
            f"label {shown(label)} is a third class after {labels[0]!r} and {labels[1]!r}, and this loss knows two: "
            "use loss=None (softmax) or wrap the model in river.multiclass.OneVsRestClassifier"
        )
    else:
        side = seen.index(False)
    if not seen[side]:
        tag(label)  # a label that no state could hold is refused before anything is learnt
        labels[side] = label
        seen[side] = True
    return side


_PLAIN = {str, bool, int}
_PLAIN_OR_NONE = {*_PLAIN, type(None)}
_NUMBERS = {float, int}


def _plain_label(y: Any) -> Any:
    """A label as a plain Python value; None stays None."""
    if y is None or type(y) in _PLAIN:
        return y
    if instead := instead_of_label(y):  # before numpy makes a number of it
        kind = type(y).__name__
        raise ValueError(f"{y!r} is of type {kind}: names and labels are strings, booleans or numbers; give {instead}")
    if isinstance(y, np.generic):
        y = y.item()
    if isinstance(y, float) and math.isnan(y):
        raise ValueError("the label is NaN: give a string, a boolean or a number, or None where it is not known")
    return untag(tag(y))


def plain_number(y: Any) -> float:
    """Return a target as a float.

    Raises
    ------
    ValueError
        It is no finite number.

    """
    value = real(y)
    if value is not None and math.isfinite(value):
        return value
    instead = instead_of_number(y)
    advice = f"; instead of a date or a time, give {instead}" if instead else ""
    raise ValueError(f"the target {shown(y)} is not a finite number: give one, or None where it is not known{advice}")
