"""CSV records that span physical lines: a quoted field may hold line ends.

A quote that is never closed must not swallow the rest of the file. Where it stays open beyond the record limit, or
to the end of the file, only the line it stands on is given up, and the next line begins a record of its own.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import pairwise, repeat
from typing import NamedTuple

from connectors.files.bytes import ByteStream
from connectors.files.lines import NOTHING, Chunk, Lines
from connectors.ports import Position, SourceError

LINES_AHEAD = 256


class _Line(NamedTuple):
    raw: bytes
    position: Position
    next: Position
    too_long: int
    lines: int = 1


class _UndecidedError(Exception):
    """The record goes on in lines that have not arrived."""


class JoinedLines(Lines):
    """The records of a CSV file whose quoted fields may hold line ends, joined up to `max_record_bytes`."""

    def __init__(
        self, stream: ByteStream, max_record_bytes: int, delimiter: str, encoding: str, partition: int = 0
    ) -> None:
        super().__init__(stream, max_record_bytes, partition)
        self._delimiter = delimiter
        self._encoding = encoding
        # Physical lines, and how many of them were handed out.
        self._ahead: list[_Line] = []
        self._used = 0

    @property
    def done(self) -> bool:
        """Whether nothing will ever follow."""
        return self._used == len(self._ahead) and super().done

    def take(self, limit: int, deadline: float) -> Chunk:
        """Return the next records; see `Lines.take`."""
        del self._ahead[: self._used]
        self._used = 0
        if not self._ahead:
            chunk = super().take(limit, deadline)
            if not any(b'"' in line for line in chunk.lines):
                return chunk
            self._add(chunk)
        records: list[_Line] = []
        while len(records) < limit:
            try:
                # Once there is something to hand out, nothing is worth waiting for.
                line = self._record(0.0 if records else deadline)
            except SourceError:
                if records:
                    # The stream fails again at the next call, once these are handed out.
                    break
                raise
            if line is None or (line.too_long and records):
                break
            self._used += line.lines
            records.append(line)
            if line.too_long:
                break
        if not records:
            return NOTHING
        positions = [record.position for record in records]
        return Chunk([record.raw for record in records], [*positions, records[-1].next], records[0].too_long)

    def _add(self, chunk: Chunk) -> bool:
        self._ahead += map(_Line, chunk.lines, chunk.positions, chunk.positions[1:], repeat(chunk.too_long))
        return bool(chunk.lines)

    def _has(self, index: int, deadline: float) -> bool:
        """Read on until there is a physical line of that index; False where there is none now."""
        return index < len(self._ahead) or self._add(super().take(LINES_AHEAD, deadline))

    def _record(self, deadline: float) -> _Line | None:
        """Return the next record, a line or several joined; None where it is not there yet."""
        if not self._has(self._used, deadline):
            return None
        line = self._ahead[self._used]
        if line.too_long or b'"' not in line.raw:
            return line
        try:
            return self._joined(self._end(deadline))
        except _UndecidedError:
            return None

    def _end(self, deadline: float) -> int:
        """Return the index behind the last physical line of the next record."""
        index = self._used

        def texts() -> Iterator[str]:
            nonlocal index
            size = 0
            while self._has(index, deadline):
                line = self._ahead[index]
                size += len(line.raw) + 1
                if size > self._limit + 1 or line.too_long:
                    return
                index += 1
                yield line.raw.decode(self._encoding, "surrogateescape") + "\n"
            if not super(JoinedLines, self).done:
                raise _UndecidedError

        try:
            next(csv.reader(texts(), delimiter=self._delimiter, strict=True))
        except csv.Error:
            return self._used + 1
        return index

    def _joined(self, end: int) -> _Line:
        lines = self._ahead[self._used : end]
        pieces = [lines[0].raw]
        for before, line in pairwise(lines):
            line_end = before.next.offset - before.position.offset - len(before.raw)
            pieces += [b"\r\n" if line_end == 2 else b"\n", line.raw]
        return _Line(b"".join(pieces), lines[0].position, lines[-1].next, 0, len(lines))
