"""The encoders of class labels: a column of scores for each label or, for margin losses, two sides of one score."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from river.optim.losses import BinaryLoss, MultiClassLoss
from scipy import special

from streamkernel.fields import state_mismatch, untagged, whole
from streamkernel.losses import softmax
from streamkernel.records.results import LabelDistributions
from streamkernel.records.targets import PLAIN_LABELS, Encoded, Targets, plain_label
from streamkernel.state import Array, State, excerpt, tag

_PLAIN_OR_NONE = {*PLAIN_LABELS, type(None)}


class Classes(Targets):
    """The encoder of class labels: one column of scores each, in the order of arrival.

    - loss: A loss of (n,) columns and (n, K) scores.
    - max_classes: The most labels. Records of any other are predicted only, and counted in `n_limited`.
    - labels: The labels in the order of their columns.
    """

    labels: list[Hashable]
    _columns: dict[Hashable, float]
    limit_warning = "classes past max_classes are not learned, counted in n_ignored_labels"

    def __init__(self, loss: MultiClassLoss, max_classes: int) -> None:
        super().__init__(loss)
        self.max_classes = max_classes

    @property
    def n_outputs(self) -> int:
        return len(self.labels)

    def prepare(self, ys: Sequence[Any]) -> tuple[list[Any], int]:
        labels = list(ys) if _PLAIN_OR_NONE.issuperset(map(type, ys)) else [plain_label(y) for y in ys]
        if self._columns.keys() >= set(labels):
            return labels, 0
        seen = dict.fromkeys(self.labels)
        n_ignored = 0
        prepared: list[Any] = []
        for label in labels:
            if label is not None and label not in seen:
                if len(seen) < self.max_classes:
                    tag(label)  # a label that no state could hold is refused before anything is learned
                    seen[label] = None
                else:
                    label = None
                    n_ignored += 1
            prepared.append(label)
        return prepared, n_ignored

    def is_new(self, label: Hashable) -> bool:
        """Whether a label has no column yet."""
        return label not in self._columns

    def are_known(self, labels: Sequence[Any]) -> bool:
        """Whether each label has a column; None is none."""
        return self._columns.keys() >= set(labels)

    def known(self, y: Any) -> float | None:
        """The column of a plain label that has one; None for anything else."""
        return self._columns.get(y) if type(y) in PLAIN_LABELS else None

    def value_of(self, value: float) -> Hashable:
        """The label for which `known` returned a value."""
        return self.labels[int(value)]

    def admit(self, ys: Sequence[Any]) -> Encoded:
        before = np.zeros((len(ys), 2))
        before[:, 0] = len(self.labels)
        if not self._columns.keys() >= set(ys):
            for i, label in enumerate(ys):
                before[i, 0] = len(self.labels)
                if label not in self._columns:
                    self._columns[label] = len(self.labels)
                    self.labels.append(label)
        return Encoded(np.array([*map(self._columns.__getitem__, ys)], np.float64), before)

    def losses(self, encoded: Encoded, scores: Array) -> Array:
        out = np.full(len(encoded.y), np.nan)
        rows = encoded.labeled
        known = np.where(rows, np.fmax(encoded.n_classes, encoded.y + 1), 0).astype(np.int64)
        # Cut to the classes known: numpy's sums change their last bits with the number of terms, even of zeros.
        for n_classes in np.unique(known[rows]):
            alike = known == n_classes
            out[alike] = self.answer("__call__", encoded.y[alike].astype(np.int64), scores[alike, :n_classes])
        return out

    def gradient(self, y: Array, scores: Array) -> Array:
        return self.answer("gradient", y.astype(np.int64), scores)

    def probabilities(self, encoded: Encoded, scores: Array) -> LabelDistributions:
        """The probabilities of each record, of the labels that were known before it."""
        known = encoded.n_classes
        if len(known) and known[0] == known[-1]:  # the most frequent case
            return LabelDistributions(self.labels, softmax(scores[:, : known[0]]), known)
        table = np.zeros((len(known), int(known.max(initial=0))))
        for n_classes in set(known[known > 0].tolist()):
            rows = known == n_classes
            table[rows, :n_classes] = softmax(scores[rows, :n_classes])
        return LabelDistributions(self.labels, table, known)

    def distribution(self, scores: Array) -> tuple[list[Any], Array]:
        """The labels known by now, and their probabilities for each row of scores, shape (n, K)."""
        return list(self.labels), softmax(scores) if self.labels else scores

    def are_encoded(self, y: Array) -> bool:
        return y.ndim == 1 and bool(np.isin(y, np.arange(len(self.labels))).all())

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
        # Of None too, which is no label: NaN.
        self._columns = {None: math.nan}


class TwoSides(Targets):
    """The encoder of two labels under a margin loss, which are False and True until others arrive.

    A label that is neither takes the place of one not seen yet; a third is an error.

    - loss: A loss of (n,) sides, 0 or 1, and (n,) scores.
    - labels, seen: The labels of sides 0 and 1, and whether each was seen.
    """

    labels: list[Hashable]
    seen: list[bool]

    def __init__(self, loss: BinaryLoss) -> None:
        super().__init__(loss)

    def prepare(self, ys: Sequence[Any]) -> tuple[list[Any], int]:
        labels, seen = list(self.labels), list(self.seen)
        prepared = [plain_label(y) for y in ys]
        for label in prepared:
            if label is not None:
                _take_side(label, labels, seen)
        return prepared, 0

    def known(self, y: Any) -> float | None:
        return float(self.labels.index(y)) if type(y) in PLAIN_LABELS and all(self.seen) and y in self.labels else None

    def admit(self, ys: Sequence[Any]) -> Encoded:
        y = np.full(len(ys), np.nan)
        before = np.zeros((len(ys), 2))
        for i, label in enumerate(ys):
            before[i] = self.seen
            if label is not None:
                y[i] = _take_side(label, self.labels, self.seen)
        return Encoded(y, before)

    def probabilities(self, encoded: Encoded, scores: Array) -> LabelDistributions | list[dict[Any, float]]:
        """The sigmoid of each score as probabilities of both labels; only one, if seen alone and no boolean, has 1."""
        # What replaces a label not seen yet has no column of its own: each label that arrives begins another table.
        cuts = np.flatnonzero((encoded.before[1:] != encoded.before[:-1]).any(axis=1)) + 1
        parts = [
            LabelDistributions(labels, table, np.full(len(table), len(labels)))
            for seen, part in zip(encoded.before[[0, *cuts][: len(scores)]], np.split(scores, cuts), strict=False)
            for labels, table in [self._distribution(seen.astype(bool).tolist(), part)]
        ]
        return parts[0] if len(parts) == 1 else [one for part in parts for one in part]

    def distribution(self, scores: Array) -> tuple[list[Any], Array]:
        """The labels that have a probability by now, and these for each row of scores, shape (n, 2) or (n, 1)."""
        return self._distribution(self.seen, scores)

    def _distribution(self, seen: Sequence[bool], scores: Array) -> tuple[list[Any], Array]:
        sides, positive = self._sides(seen), special.expit(scores[:, 0])
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


def _take_side(label: Hashable, labels: list[Hashable], seen: list[bool]) -> int:
    """The side of a label, 0 or 1; a new one takes the place of a label not seen yet."""
    if label in labels:
        side = labels.index(label)
    elif all(seen):
        raise ValueError(
            f"label {excerpt(label)} is a third class after {excerpt(labels[0])} and {excerpt(labels[1])}, and this "
            "loss supports two: use loss=None (softmax) or wrap the model in river.multiclass.OneVsRestClassifier"
        )
    else:
        side = seen.index(False)
    if not seen[side]:
        tag(label)  # a label that no state could hold is refused before anything is learned
        labels[side] = label
        seen[side] = True
    return side
