"""What is known of the rows of a partition once they are scored, and chunks as a source hands them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from streamkernel.batch.chunk import BatchChunk
from streamkernel.batch.rows import BatchMachine, ScoredBatch
from streamkernel.connectors.ports import Position, Record
from streamkernel.spark.score_sums import ScoreSums

__all__ = ["DeadRow", "Partials", "SourceChunk"]


class DeadRow(NamedTuple):
    """A row that cannot be used: where it was, what it held, and why."""

    position: Position
    following: Position
    raw: bytes
    reason: str
    detail: str

    @property
    def record(self) -> Record:
        """The row as a record without inputs."""
        return Record({}, None, self.position, self.following, self.raw)


@dataclass(frozen=True)
class SourceChunk:
    """Rows as a source hands them out.

    Attributes
    ----------
    chunk
        Those that a model can be shown.
    records
        The record of each of them, so that one that the model refuses becomes a dead row; empty: that ends the batch.
    dead
        Those that could not be decoded.
    n_skipped
        Empty ones.
    ends
        Where each partition of the source continues.

    """

    chunk: BatchChunk
    records: Sequence[Record] = ()
    dead: tuple[DeadRow, ...] = ()
    n_skipped: int = 0
    ends: Mapping[int, Position] = field(default_factory=dict)


@dataclass(frozen=True)
class Partials:
    """What is known of the rows of some partitions.

    Attributes
    ----------
    batch
        What the step asks for.
    sums
        What was predicted.
    dead, n_skipped, ends
        As `SourceChunk` has them.

    """

    batch: ScoredBatch
    sums: ScoreSums
    dead: tuple[DeadRow, ...] = ()
    n_skipped: int = 0
    ends: Mapping[int, Position] = field(default_factory=dict)

    @classmethod
    def total(cls, machine: BatchMachine, parts: Sequence[Self]) -> Self:
        """What is known of all rows; sums are added in this order."""
        ends: dict[int, Position] = {}
        for part in parts:
            for partition, place in part.ends.items():
                if partition not in ends or place.offset > ends[partition].offset:
                    ends[partition] = place
        return cls(
            ScoredBatch.total(machine, [part.batch for part in parts]),
            ScoreSums.total([part.sums for part in parts]),
            tuple(row for part in parts for row in part.dead),
            sum(part.n_skipped for part in parts),
            ends,
        )
