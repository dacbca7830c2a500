"""The probabilities of labels for many records, as a table."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from streamkernel.state import Array


class LabelDistributions(Sequence[dict[Any, float]]):
    """The probabilities of the labels that were known before each of n records: a sequence of dicts, made when asked.

    - labels: The labels in the order of their columns, K of them.
    - table: float64 of shape (n, K), 0 for a label that was not known yet.
    - known: How many labels were known before each record, int64 of shape (n,).
    - complete: Whether each record knew all of the labels.
    """

    def __init__(self, labels: Sequence[Any], table: Array, known: Array) -> None:
        K = min(int(known.max(initial=0)), table.shape[1])
        self.labels = list(labels[:K])
        self.known = np.minimum(known, K)
        self.complete = bool((self.known == K).all())
        # A copy: a machine may go on to use the memory of its predictions.
        self.table = np.array(table[:, :K])
        if not self.complete:
            self.table[np.arange(K) >= self.known[:, None]] = 0.0

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, place: Any) -> Any:
        return dict(zip(self.labels, self.table[place, : self.known[place]].tolist(), strict=False))

    def __iter__(self) -> Iterator[dict[Any, float]]:
        labels = [self.labels[:n] for n in range(len(self.labels) + 1)]
        for n, row in zip(self.known.tolist(), self.table.tolist(), strict=True):
            yield dict(zip(labels[n], row, strict=False))

    def part(self, rows: Any) -> "LabelDistributions":
        """Those of some rows."""
        return LabelDistributions(self.labels, self.table[rows], self.known[rows])

    @cached_property
    def columns(self) -> Array:
        """The column of the most probable label of each record, the first of equals, int64 of shape (n,)."""
        if not self.labels:
            return np.zeros(len(self), np.int64)
        columns: Array = self.table.argmax(axis=1)
        # Python's order, in which nothing is less or more than NaN.
        for row in np.flatnonzero(np.isnan(self.table).any(axis=1) & (self.known > 0)):
            columns[row] = max(range(self.known[row]), key=self.table[row].__getitem__)
        return columns

    def most_probable(self) -> list[Any]:
        """The most probable label of each record; None where none was known."""
        labels = list(map([*self.labels, None].__getitem__, self.columns.tolist()))
        if not self.complete or not self.labels:
            labels = [label if n else None for label, n in zip(labels, self.known.tolist(), strict=True)]
        return labels

    def columns_of(self, labels: Sequence[Any]) -> Array:
        """The column of one label of each record; K for a label that has none yet, int64 of shape (n,)."""
        places = {label: column for column, label in enumerate(self.labels)}
        try:
            columns = np.fromiter(map(places.__getitem__, labels), np.int64, len(labels))
        except KeyError:
            columns = np.array([places.get(label, len(places)) for label in labels], np.int64)
        return np.where(columns < self.known, columns, len(places))

    def at(self, columns: Array) -> Array:
        """The probability of one column of each record, float64 of shape (n,); 0 past the last one."""
        K = len(self.labels)
        found = self.table[np.arange(len(columns)), np.minimum(columns, K - 1)] if K else np.zeros(len(columns))
        return np.where(columns < K, found, 0.0)
