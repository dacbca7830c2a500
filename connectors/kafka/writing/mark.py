"""The state of an output topic that a checkpoint keeps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from streamkernel.connectors.kafka.writing.written_lines import Runs
from streamkernel.connectors.ports import SinkError

__all__ = ["OutputMark", "Producer"]

# Far more than ever wait; a file that asks for more is broken, and would fill the memory.
_MOST_WRITTEN = 10_000_000


@dataclass(frozen=True)
class Producer:
    """The producer id (`number`) and epoch that the broker gave an idempotent producer."""

    number: int
    epoch: int


@dataclass(frozen=True)
class OutputMark:
    """The place of an output topic at a checkpoint, from which a later run goes on.

    Attributes
    ----------
    stream
        The topic: ``"cluster/topic/number"``.
    writer
        What the lines of this run, and of those it goes on from, are signed with.
    ends
        By partition, the offset after the last line that is acknowledged: the next ones are looked for from here on.
    producer
        Who wrote the lines.
    transactional_id
        That of the configuration.
    written
        Lines before the ends that belong to records after the checkpoint, because a run that was killed had come
        further than this one has.
    sequences
        By partition, the number of the producer's next line; empty where that is not known.
    passed
        By partition of a source, the offset of the last record whose line was there when lines before it were removed.
    existing
        By partition of a source, how many lines of unknown runs stood there when the topic was first written to, where
        it is not decided yet what that means.

    """

    stream: str
    writer: str
    ends: dict[int, int]
    producer: Producer
    transactional_id: str | None = None
    written: Runs = field(default_factory=list)
    sequences: dict[int, int] = field(default_factory=dict)
    passed: dict[tuple[str, int], int] = field(default_factory=dict)
    existing: dict[tuple[str, int], int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the mark as a checkpoint has it.

        Examples
        --------
        >>> mark = OutputMark("c/t/n", "me", {0: 17}, Producer(4, 0))
        >>> OutputMark.from_json(mark.to_json()) == mark
        True

        """
        return {
            "stream": self.stream,
            "writer": self.writer,
            "ends": {str(partition): offset for partition, offset in self.ends.items()},
            "producer": [self.producer.number, self.producer.epoch],
            "transactional_id": self.transactional_id,
            "written": self.written,
            "sequences": {str(partition): number for partition, number in self.sequences.items()},
            "passed": [[*place, offset] for place, offset in self.passed.items()],
            "existing": [[*place, count] for place, count in self.existing.items()],
        }

    @classmethod
    def from_json(cls, mark: Any) -> OutputMark:
        """Return the mark that `to_json` returned; raises `SinkError` where it is none."""
        try:
            producer, transactional_id = mark["producer"], mark["transactional_id"]
            made = cls(
                str(mark["stream"]),
                str(mark["writer"]),
                {int(partition): _offset(offset) for partition, offset in mark["ends"].items()},
                Producer(int(producer[0]), int(producer[1])),
                None if transactional_id is None else str(transactional_id),
                [[str(stream), int(partition), _ascending(runs)] for stream, partition, runs in mark["written"]],
                {int(partition): _offset(number) for partition, number in mark["sequences"].items()},
                _by_place(mark["passed"]),
                _by_place(mark["existing"]),
            )
            if sum(last - first + 1 for _, _, runs in made.written for first, last in runs) > _MOST_WRITTEN:
                raise ValueError
        except (LookupError, TypeError, ValueError, AttributeError):
            raise SinkError("its mark in the checkpoint is not from a topic: start over with --fresh") from None
        return made


def _offset(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def _ascending(runs: Any) -> list[list[int]]:
    """Check runs of offsets: each forwards, and after the one before it."""
    found: list[list[int]] = []
    for first, last in runs:
        if not (found[-1][1] if found else -1) < _offset(first) <= _offset(last):
            raise ValueError
        found.append([first, last])
    return found


def _by_place(rows: Any) -> dict[tuple[str, int], int]:
    return {(str(stream), int(partition)): _offset(number) for stream, partition, number in rows}
