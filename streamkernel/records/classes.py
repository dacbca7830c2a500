"""The encoder of class labels for losses of many classes: each label has a column of scores."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from river.optim.losses import MultiClassLoss

from streamkernel.fields import state_mismatch, untagged, whole
from streamkernel.losses import softmax
from streamkernel.records.labels import PLAIN_LABELS, plain_label
from streamkernel.records.targets import Encoded, Targets
from streamkernel.state import Array, State, tag

_PLAIN_OR_NONE = {*PLAIN_LABELS, type(None)}


class Classes(Targets):
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
