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
    - learned: The column of the label that each record brought, float64 of shape (n,), NaN without; None: not kept.
    - complete: Whether each record knew all of the labels.
    """

    def __init__(self, labels: Sequence[Any], table: Array, known: Array, learned: Array | None = None) -> None:
        K = min(int(known.max()) if len(known) else 0, table.shape[1])
        self.labels = list(labels[:K])
        self.known = known
        self.learned = learned
        self.complete = not len(known) or int(known.min()) >= K
        # A copy: a machine may go on to use the memory of its predictions.
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
        learned = None if self.learned is None else self.learned[rows]
        return LabelDistributions(self.labels, self.table[rows], self.known[rows], learned)

    @cached_property
    def columns(self) -> Array:
        """The column of the most probable label of each record, the first of equals, int64 of shape (n,)."""
        if not self.labels:
            return np.zeros(len(self), np.int64)
        columns: Array = self.table.argmax(axis=1)
        if np.isnan(self.table).any():  # in Python's order, nothing is less or more than NaN
            for row in np.flatnonzero(self.known > 0):
                columns[row] = max(range(len(self[row])), key=self.table[row].__getitem__)
        return columns

    @cached_property
    def most_probable(self) -> list[Any]:
        """The most probable label of each record; None where none was known."""
        if self.complete and self.labels:
            return list(map(self.labels.__getitem__, self.columns.tolist()))
        chosen = zip(self.columns.tolist(), self.known.tolist(), strict=True)
        return [self.labels[column] if n and self.labels else None for column, n in chosen]

    def columns_of(self, labels: Sequence[Any]) -> Array:
        """The column of the label of each record; K for one that had none before it, int64 of shape (n,)."""
        if self.learned is not None and not np.isnan(self.learned).any():
            columns = self.learned.astype(np.int64)
        else:
            places = {label: column for column, label in enumerate(self.labels)}
            columns = np.array([places.get(label, len(places)) for label in labels], np.int64)
        return np.where(columns < np.minimum(self.known, len(self.labels)), columns, len(self.labels))

    def at(self, columns: Array) -> Array:
        """The probability of one column of each record, float64 of shape (n,); 0 past the last one."""
        K = len(self.labels)
        if not K:
            return np.zeros(len(columns))
        found: Array = self.table[np.arange(len(columns)), np.minimum(columns, K - 1)]
        found[columns == K] = 0.0
        return found
