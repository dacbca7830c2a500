"""The ports in memory: for tests, and for a caller who has the records already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from streamkernel.connectors.ports import Label, Mark, Position, Record, Sink, SinkError, Source, SourceError


class MemorySource(Source):
    """Hand out records that are held in memory.

    Parameters
    ----------
    records
        Either pairs (x, y) or whole `Record` objects. Whatever positions a `Record` has are replaced by its number.

    Examples
    --------
    >>> source = MemorySource([({"a": 1.0}, True), ({"a": 2.0}, None)])
    >>> source.open()
    >>> [(record.x, record.y, record.next.offset) for record in source.poll(10, timeout=0)]
    [({'a': 1.0}, True, 1), ({'a': 2.0}, None, 2)]
    >>> source.exhausted
    True

    """

    STREAM = "memory"

    def __init__(self, records: Iterable[Record | tuple[Mapping[str, Any], Label | None]]) -> None:
        self._records = [self._placed(record, number) for number, record in enumerate(records)]
        self._next = 0

    def _placed(self, record: Record | tuple[Mapping[str, Any], Label | None], number: int) -> Record:
        start, end = Position(self.STREAM, 0, number), Position(self.STREAM, 0, number + 1)
        if isinstance(record, Record):
            return record._replace(position=start, next=end)
        x, y = record
        return Record(dict(x), y, start, end, orjson.dumps([x, y], default=str, option=orjson.OPT_NON_STR_KEYS))

    def open(self, positions: Mapping[int, Position] | None = None) -> None:
        """Open at the first record, or at the record number of ``positions[0]``; see `Source.open`."""
        self._next = 0
        for position in (positions or {}).values():
            if position.stream != self.STREAM or position.offset > len(self._records):
                raise SourceError(
                    f"the position {tuple(position)} is not one of these {len(self._records)} records in memory"
                )
            self._next = position.offset

    def poll(self, max_records: int, timeout: float) -> list[Record]:  # noqa: ARG002 - nothing ever has to be awaited
        """Hand out the next records at once; see `Source.poll`."""
        records = self._records[self._next : self._next + max_records]
        self._next += len(records)
        return records

    @property
    def exhausted(self) -> bool:
        """Whether every record was handed out."""
        return self._next == len(self._records)

    @property
    def resumable(self) -> bool:
        """True: the records are held."""
        return True

    @property
    def total(self) -> tuple[int, str]:
        """The number of records."""
        return len(self._records), "records"

    def describe(self) -> str:
        """Return a phrase such as ``"5 records in memory"``."""
        return f"{len(self._records)} records in memory"

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class MemorySink(Sink):
    """Keep lines in memory: those made durable by a flush in `lines`, those a crash would lose in `pending`.

    Examples
    --------
    >>> sink = MemorySink()
    >>> sink.open()
    >>> sink.write([{"prediction": 1}])
    >>> sink.lines
    []
    >>> sink.flush(), sink.lines
    (1, [{'prediction': 1}])

    """

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.pending: list[dict[str, Any]] = []

    def open(self, mark: Mark | None = None) -> None:
        """Keep the first `mark` lines, none by default: they are nobody else's; see `Sink.open`."""
        if mark is not None and (isinstance(mark, dict) or mark > len(self.lines)):
            raise SinkError(f"the sink in memory holds {len(self.lines)} lines, fewer than the {mark} recorded")
        del self.lines[mark or 0 :]
        self.pending.clear()

    def write(self, lines: Sequence[Mapping[str, Any]], positions: Sequence[Position] = ()) -> None:  # noqa: ARG002
        """Take lines; see `Sink.write`."""
        self.pending.extend(dict(line) for line in lines)

    def flush(self) -> int:
        """Move the pending lines to `lines` and return how many there are; see `Sink.flush`."""
        self.lines += self.pending
        self.pending.clear()
        return len(self.lines)

    @property
    def exactly_once(self) -> bool:
        """True: a flush keeps each line once."""
        return True

    def close(self) -> None:
        """Flush."""
        self.flush()


class NullSink(Sink):
    """Drop every line.

    Examples
    --------
    >>> with NullSink() as sink:
    ...     sink.open()
    ...     sink.write([{"prediction": 1}])

    """

    def open(self, mark: Mark | None = None) -> None:
        """Do nothing."""

    def write(self, lines: Sequence[Mapping[str, Any]], positions: Sequence[Position] = ()) -> None:
        """Drop the lines."""

    def flush(self) -> None:
        """Return None: there is nothing to record."""

    @property
    def exactly_once(self) -> bool:
        """True: where nothing is written, nothing is missing or double."""
        return True

    def close(self) -> None:
        """Do nothing."""
