"""CSV records that span physical lines: a quoted field may hold line ends.

A quote that is never closed must not swallow the rest of the file. Where it stays open beyond the record limit, or
to the end of the file, only the line it stands on is given up, and the next line begins a record of its own.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from connectors.files.lines import NOTHING, Chunk, Chunks
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


class JoinedLines:
    """The records of a CSV file whose quoted fields may hold line ends.

    Parameters
    ----------
    lines
        The physical lines.
    delimiter, encoding
        Of the CSV file.
    max_record_bytes
        The longest record that is joined, in bytes.

    """

    def __init__(self, lines: Chunks, delimiter: str, encoding: str, max_record_bytes: int) -> None:
        self._source = lines
        self._delimiter = delimiter
        self._encoding = encoding
        self._limit = max_record_bytes
        self._lines: list[_Line] = []
        self._next = 0

    @property
    def done(self) -> bool:
        """Whether nothing will ever follow."""
        return self._next == len(self._lines) and self._source.done

    def take(self, limit: int, deadline: float) -> Chunk:
        """Return the next records; see `connectors.files.lines.Chunks`."""
        del self._lines[: self._next]
        self._next = 0
        if not self._lines:
            chunk = self._source.take(limit, deadline)
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
            self._next += line.lines
            if line.too_long:
                return Chunk([line.raw], [line.position, line.next], line.too_long)
            records.append(line)
        if not records:
            return NOTHING
        return Chunk([record.raw for record in records], [record.position for record in records] + [records[-1].next])

    def _add(self, chunk: Chunk) -> None:
        self._lines += map(
            _Line, chunk.lines, chunk.positions, chunk.positions[1:], [chunk.too_long] * len(chunk.lines)
        )

    def _more(self, deadline: float) -> bool:
        chunk = self._source.take(LINES_AHEAD, deadline)
        self._add(chunk)
        return bool(chunk.lines)

    def _record(self, deadline: float) -> _Line | None:
        """Return the next record, a line or several joined; None where it is not there yet."""
        if self._next == len(self._lines) and not self._more(deadline):
            return None
        line = self._lines[self._next]
        if line.too_long or b'"' not in line.raw:
            return line
        try:
            return self._joined(self._span(deadline))
        except _UndecidedError:
            return None

    def _span(self, deadline: float) -> int:
        """Return how many physical lines the next record has."""
        index = self._next

        def texts() -> Iterator[str]:
            nonlocal index
            size = 0
            while True:
                if index == len(self._lines) and not self._more(deadline):
                    if self._source.done:
                        return
                    raise _UndecidedError
                line = self._lines[index]
                size += len(line.raw) + 1
                if size > self._limit + 1 or line.too_long:
                    return
                index += 1
                yield line.raw.decode(self._encoding, "surrogateescape") + "\n"

        try:
            next(csv.reader(texts(), delimiter=self._delimiter, strict=True))
        except csv.Error:
            return 1
        return index - self._next

    def _joined(self, span: int) -> _Line:
        lines = self._lines[self._next : self._next + span]
        pieces = [lines[0].raw]
        for before, line in pairwise(lines):
            end = before.next.offset - before.position.offset - len(before.raw)
            pieces += [b"\r\n" if end == 2 else b"\n", line.raw]
        return _Line(b"".join(pieces), lines[0].position, lines[-1].next, 0, span)
