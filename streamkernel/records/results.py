"""The result of a batch: what a machine predicted of its records before it learned them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from streamkernel.records.targets import Encoded
from streamkernel.state import Array


class LabelDistributions(Sequence[dict[Any, float]]):
    """The probabilities of the labels that were known before each of n records: a sequence of dicts, made when asked.

    - labels: The labels in the order of their columns, K of them.
    - table: float64 of shape (n, K), 0 for a label that was not known yet.
    - known: How many labels were known before each record, int64 of shape (n,).
    - complete: Whether each record knew all of the labels.
    """

    def __init__(self, labels: Sequence[Any], table: Array, known: Array) -> None:
        K = min(int(known.max()) if len(known) else 0, table.shape[1])
        self.labels = list(labels[:K])
        self.known = known
        self.complete = not len(known) or int(known.min()) >= K
        # A copy: a machine may continue to use the memory of its predictions.
        self.table = np.array(table[:, :K])
        if not self.complete:
            self.table[np.arange(K) >= known[:, None]] = 0.0

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, place: Any) -> Any:
        return dict(zip(self.labels, self.table[place, : self.known[place]].tolist(), strict=False))

    def __iter__(self) -> Iterator[dict[Any, float]]:
        for n, row in zip(self.known.tolist(), self.table.tolist(), strict=True):
            yield dict(zip(self.labels if self.complete else self.labels[:n], row, strict=False))

    def part(self, rows: Any) -> "LabelDistributions":
        """Those of some rows."""
        return LabelDistributions(self.labels, self.table[rows], self.known[rows])

    @cached_property
    def most_probable(self) -> list[Any]:
        """The most probable label of each record, the first of equals; None where none was known."""
        if not self.labels:
            return [None] * len(self.table)
        columns = self.table.argmax(axis=1)
        if np.isnan(self.table).any():  # in Python's order, nothing is less or more than NaN
            for row in np.flatnonzero(self.known > 0):
                columns[row] = max(range(len(self[row])), key=self.table[row].__getitem__)
        labels = list(map(self.labels.__getitem__, columns.tolist()))
        if not self.complete:
            labels = [label if n else None for label, n in zip(labels, self.known.tolist(), strict=True)]
        return labels

    def given(self, labels: Sequence[Any], rows: slice = slice(None)) -> Array:
        """The probability of a label of each record of some rows, float64; -1 for one that was not known before it."""
        K, known = len(self.labels), self.known[rows]
        places = defaultdict(lambda: K, zip(self.labels, range(K), strict=True))
        columns = np.fromiter(map(places.__getitem__, labels), np.int64, len(labels))
        unknown = columns >= np.minimum(known, K)
        columns[unknown] = 0
        found: Array = self.table[rows][np.arange(len(columns)), columns] if K else np.empty(len(columns))
        found[unknown] = -1.0
        return found


@dataclass(frozen=True)
class BatchResult:
    """The predictions of a batch, each made before its record was learned, and their losses.

    Attributes
    ----------
    targets
        The encoded targets, with what was known before each.
    predictions
        Scores f(x) of a growing machine, (n, K); of an adaptive one probabilities, (n, K), or numbers, (n, 1).
    losses
        The loss of each, float64 of shape (n,); NaN where there is no target.
    deviations
        Of the errors of adaptive predictions of numbers, float64 of shape (n,); else None.

    """

    targets: Encoded
    predictions: Array
    losses: Array
    deviations: Array | None = None


def padded(scores: Array, n_outputs: int) -> Array:
    """Scores (n, k) with a 0 for each output that came later, (n, n_outputs)."""
    missing = n_outputs - scores.shape[1]
    return np.pad(scores, ((0, 0), (0, missing))) if missing > 0 else scores


def joined_targets(parts: Sequence[Encoded]) -> Encoded:
    """The encoded targets of batches that came one after the other."""
    return type(parts[0]).joined(parts) if parts else Encoded(np.zeros(0), np.zeros((0, 2)))
