"""Chunks as a source hands them out, and what is known of the rows of a partition once they are scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from streamkernel.batch.chunk import BatchChunk
from streamkernel.batch.rows import BatchMachine, ScoredBatch
from streamkernel.connectors.ports import Position, Record
from streamkernel.spark.score_sums import ScoreSums

__all__ = ["Partials", "SourceChunk", "ends_of"]


@dataclass(frozen=True)
class SourceChunk:
    """Rows as a source hands them out.

    Attributes
    ----------
    chunk
        The rows for the model.
    records
        The record of each row, so that a row that the model refuses becomes a dead letter. Without them it ends the
        batch.
    dead
        Records with a fault.
    n_skipped
        The number of empty records.
    ends
        Where each partition of the source continues.

    """

    chunk: BatchChunk
    records: Sequence[Record] = ()
    dead: tuple[Record, ...] = ()
    n_skipped: int = 0
    ends: Mapping[int, Position] = field(default_factory=dict)


@dataclass(frozen=True)
class Partials:
    """What is known of the rows of some partitions.

    Attributes
    ----------
    batch
        What the step needs.
    sums
        The predictions.
    dead, n_skipped, ends
        As in `SourceChunk`.

    """

    batch: ScoredBatch
    sums: ScoreSums
    dead: tuple[Record, ...] = ()
    n_skipped: int = 0
    ends: Mapping[int, Position] = field(default_factory=dict)

    @classmethod
    def total(cls, machine: BatchMachine, parts: Sequence[Self]) -> Self:
        """Return what is known of all rows; sums are added in this order."""
        return cls(
            ScoredBatch.total(machine, [part.batch for part in parts]),
            ScoreSums.total([part.sums for part in parts]),
            tuple(record for part in parts for record in part.dead),
            sum(part.n_skipped for part in parts),
            ends_of(place for part in parts for place in part.ends.values()),
        )


def ends_of(places: Iterable[Position]) -> dict[int, Position]:
    """Return the largest of some places by partition."""
    return {place.partition: place for place in sorted(places, key=lambda place: place.offset)}
