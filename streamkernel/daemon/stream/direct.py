"""The stages of a source whose records bring their targets: each record is predicted and learned at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamkernel.connectors.ports import (
    Fault,
    Label,
    Record,
    RecordColumns,
    at_places,
    unusable_places,
)
from streamkernel.daemon.stream.column_inputs import ColumnInputs
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.stream.record_batch import Labeled, RecordBatch
from streamkernel.daemon.stream.results import part_of

__all__ = ["DirectStage", "KeylessStage", "UnlabeledStage"]


class DirectStage:
    """The stage without late labels: each usable record is one row, predicted and, with a target, learned."""

    taken = 0
    learner: Learner  # of no use here

    def begin(self, records: Sequence[Record]) -> Sequence[Record]:
        return records

    def fill(self, batch: RecordBatch, items: Sequence[Record]) -> None:
        batch.records = items
        if isinstance(items, RecordColumns):
            usable = items.usable
            batch.predicted, batch.inputs, batch.targets = usable, ColumnInputs(usable), usable.targets
        else:
            batch.predicted = [record for record in items if record.fault is None and not record.blank]
            batch.inputs = [record.x for record in batch.predicted]
            batch.targets = [record.y for record in batch.predicted]

    def settle(self, batch: RecordBatch) -> None:
        batch.n_taken = len(batch.records)
        result, others = batch.result, batch.others
        if batch.refused or len(batch.records) > len(result.losses):
            chosen = self._sort_out(batch)
            if not all(chosen):
                result = part_of(result, chosen)
                others = {name: part_of(one, chosen) for name, one in others.items()}
        batch.counts.predicted = len(batch.predicted)
        targets = list(batch.targets) if batch.rows is None else [batch.targets[row] for row in batch.rows]
        batch.labeled = {name: Labeled.of(targets, one) for name, one in {"": result, **others}.items()}
        batch.counts.learned = len(batch.labeled[""].targets)
        batch.counts.unlabeled = batch.counts.predicted - batch.counts.learned
        batch.counts.consumed = batch.n_taken
        if batch.n_taken:
            batch.next = batch.records[batch.n_taken - 1].next

    def quarantine(self, batch: RecordBatch, record: Record, fault: Fault) -> None:
        batch.n_taken = batch.counts.consumed = 1
        batch.add_dead_letter(record, fault, 1)
        batch.next = record.next

    def rows(self, record: Record) -> list[tuple[dict[str, Any], Label | None]]:
        return [(record.x, record.y)]

    def to_json(self) -> dict[str, int]:
        return {}

    def _sort_out(self, batch: RecordBatch) -> list[bool]:
        """Count the records without a prediction, up to where the model stopped; return which rows have one."""
        unusable = unusable_places(batch.records)
        usable = np.delete(np.arange(len(batch.records)), unusable)
        left = len(batch.result.predictions)
        if left < len(usable):
            batch.n_taken = int(usable[left])
        refused = {int(usable[row]): fault for row, fault in batch.refused.items() if row < left}
        for place in sorted({*unusable, *refused}):
            if place >= batch.n_taken:
                break
            record = batch.records[place]
            if record.blank:
                batch.counts.skipped += 1
            else:
                batch.add_dead_letter(record, record.fault or refused[place], place + 1)
        chosen = [row not in batch.refused for row in range(left)]
        batch.predicted = at_places(batch.predicted, np.flatnonzero(chosen))
        batch.rows = np.flatnonzero(chosen).tolist()
        return chosen


class KeylessStage(DirectStage):
    """A direct stage for a model that learned from late labels: the field that joined them is not an input."""

    def __init__(self, key: str) -> None:
        self.key = key

    def begin(self, records: Sequence[Record]) -> Sequence[Record]:
        records = list(records)
        for record in records:
            record.x.pop(self.key, None)
        return records

    def rows(self, record: Record) -> list[tuple[dict[str, Any], Label | None]]:
        return [({name: value for name, value in record.x.items() if name != self.key}, record.y)]


class UnlabeledStage(DirectStage):
    """A direct stage that learns each usable record; the target of a record is only written to its line."""

    def fill(self, batch: RecordBatch, items: Sequence[Record]) -> None:
        super().fill(batch, items)
        batch.targets = [True] * len(batch.inputs)

    def rows(self, record: Record) -> list[tuple[dict[str, Any], Label | None]]:
        return [(record.x, True)]
