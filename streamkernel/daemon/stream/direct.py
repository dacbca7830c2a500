"""The stage of a source whose records bring their targets: each is predicted, and learned at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

from streamkernel.connectors.ports import Fault, Label, Record
from streamkernel.daemon.base.events import Events
from streamkernel.daemon.stream.chunk_result import ChunkResult, Scored
from streamkernel.daemon.stream.learned import Learned, part_of
from streamkernel.estimators.base import AdvanceResult

__all__ = ["DirectStage", "KeylessStage"]


class DirectStage:
    """The stage without late labels: each usable record is one event, predicted and, with a target, learned."""

    taken = 0

    def begin(self, records: Sequence[Record], done: ChunkResult) -> Sequence[Record]:  # noqa: ARG002
        return records

    def events(self, items: Sequence[Record]) -> Events:
        usable = [record for record in items if record.fault is None and not record.blank]
        return Events(items, [record.x for record in usable], [record.y for record in usable])

    def settle(self, events: Events, learned: Learned, done: ChunkResult) -> int:
        records, result, others = events.of, learned.result, learned.others
        n_taken = len(records)
        if learned.refused or len(result.predictions) < n_taken:
            n_taken, records, chosen = self._sort_out(records, learned, done)
            result, others = part_of(result, chosen), {name: part_of(one, chosen) for name, one in others.items()}
        done.add_predictions(records, result, others)
        done.counts.learned = self._score(records, result, done)
        for name, one in others.items():
            self._score(records, one, done.others.setdefault(name, Scored()))
        done.counts.consumed += n_taken
        if n_taken:
            done.next = events.of[n_taken - 1].next
        return n_taken

    def quarantine(self, record: Record, fault: Fault, done: ChunkResult) -> None:
        done.counts.consumed += 1
        done.add_dead_letter(record, *fault, done.counts.consumed)
        done.next = record.next

    def close(self, done: ChunkResult) -> bool:
        done.counts.unlabeled = done.counts.predicted - done.counts.learned
        return False

    def rows(self, record: Record) -> list[tuple[dict[str, Any], Label | None]]:
        return [(record.x, record.y)]

    def to_json(self) -> dict[str, int]:
        return {}

    def _sort_out(
        self, records: Sequence[Record], learned: Learned, done: ChunkResult
    ) -> tuple[int, list[Record], list[bool]]:
        """Part the records with a prediction from the others, which are counted, up to where the model was stopped.

        Return how many are done with, those with a prediction, and which events are theirs.
        """
        left = len(learned.result.predictions)
        predicted: list[Record] = []
        chosen: list[bool] = []
        for n_before, record in enumerate(records):
            fault: tuple[str, str] | None = record.fault
            if fault is None and not record.blank:
                if len(chosen) == left:
                    return n_before, predicted, chosen
                fault = learned.refused.get(len(chosen))
                chosen.append(fault is None)
            if record.blank:
                done.counts.skipped += 1
            elif fault is None:
                predicted.append(record)
            else:
                done.add_dead_letter(record, *fault, n_before + 1)
        return len(records), predicted, chosen

    def _score(self, records: Sequence[Record], result: AdvanceResult, scored: Scored) -> int:
        """Add the predictions of records that have a target to what the report metrics compare; return how many."""
        targets: list[Any] = [record.y for record in records]
        if None in targets:
            labeled = [target is not None for target in targets]
            targets, result = list(compress(targets, labeled)), part_of(result, labeled)
        # There is one pass a chunk: nothing was added before.
        scored.targets, scored.predictions, scored.probabilities = targets, result.predictions, result.probabilities
        scored.deviations = result.deviations
        scored.add_losses(result.losses.tolist(), targets, result.predictions, result.probabilities)
        return len(targets)


class KeylessStage(DirectStage):
    """A direct stage for a model that was learned from late labels: the field that joined them is no input of it."""

    def __init__(self, key: str) -> None:
        self.key = key

    def begin(self, records: Sequence[Record], done: ChunkResult) -> Sequence[Record]:
        for record in records:
            record.x.pop(self.key, None)
        return super().begin(records, done)

    def rows(self, record: Record) -> list[tuple[dict[str, Any], Label | None]]:
        return [({name: value for name, value in record.x.items() if name != self.key}, record.y)]
