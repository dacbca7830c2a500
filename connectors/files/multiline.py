"""CSV records that span physical lines: a quoted field may hold line ends.

The lines from an open quote to its end are one record, whatever stands in them. A quote that is never closed must not
swallow the rest of the file: where it is not closed within `REACH` bytes (or `REACH` times what `max_record_bytes` is
over 1 MiB), or by the end of the file, or where something follows the closing quote, only the line it stands on is
given up, and the next line begins a record of its own.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Sequence
from itertools import pairwise, repeat
from typing import NamedTuple

from streamkernel.connectors.files.bytes import ByteStream
from streamkernel.connectors.files.lines import NOTHING, Chunk, Lines
from streamkernel.connectors.files.quotes import Quotes
from streamkernel.connectors.ports import Position, SourceError

LINES_AHEAD = 256
REACH = 2**23


class _Line(NamedTuple):
    raw: bytes
    position: Position
    next: Position
    too_long: int
    n_quotes_cut: int = 0
    # How many physical lines it is, and how many of them are kept.
    n_lines: int = 1
    n_kept: int = 1


class JoinedLines(Lines):
    """The records of a CSV file, those of several physical lines joined up to `max_record_bytes`.

    The end of an open quote is looked for within `reach` bytes.

    Looking for quotes in every line would cost as much as splitting it. So lines are handed out as they stand, and who
    splits them gives them back to `reconsider` from the first one on whose quote is open.

    A record of several lines is alone in its chunk unless `multiline`.
    """

    def __init__(
        self,
        stream: ByteStream,
        max_record_bytes: int,
        delimiter: str,
        encoding: str,
        partition: int = 0,
        *,
        multiline: bool = True,
    ) -> None:
        super().__init__(stream, max_record_bytes, partition)
        self._delimiter = delimiter
        self._encoding = encoding
        self._multiline = multiline
        self.reach = REACH * max(1, max_record_bytes // 2**20)
        # Physical lines, and how many of them were handed out.
        self._ahead: list[_Line] = []
        self._used = 0
        self._begin_record()

    def _begin_record(self) -> None:
        self._quotes = Quotes(self._delimiter)
        # Of the next record: how many lines were looked at, how many of these are kept, the last of the others, and the
        # beginning of the record once it is over the limit.
        self._n_lines = self._n_kept = 0
        self._last_dropped: _Line | None = None
        self._cut: bytes | None = None

    @property
    def done(self) -> bool:
        """Whether nothing will ever follow."""
        return self._used == len(self._ahead) and super().done

    @property
    def waits_at(self) -> int | None:
        """Where the record begins whose open quote has not been closed yet; None: there is none."""
        return self._ahead[self._used].position.offset if self._n_lines else None

    def opens(self, line: bytes) -> bool:
        """Tell whether a quoted field is open at the end of a line."""
        quotes = Quotes(self._delimiter)
        quotes.feed(self._text(line.removeprefix(BOM_UTF8)))
        return quotes.open

    def reconsider(self, chunk: Chunk, index: int) -> None:
        """Take back the lines of the last chunk from an index on, to look at the quotes of each."""
        self._ahead[: self._used] = self._lines_of(chunk)[index:]
        self._used = 0

    def take(self, limit: int, deadline: float) -> Chunk:
        """Return the next records; see `Lines.take`."""
        del self._ahead[: self._used]
        self._used = 0
        if not self._ahead:
            chunk = super().take(limit, deadline)
            if not chunk.too_long or not (chunk.n_quotes_cut or b'"' in chunk.lines[0]):
                return chunk
            self._ahead = self._lines_of(chunk)
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
            alone = line is None or line.too_long or (line.n_lines > 1 and not self._multiline)
            if line is None or (alone and records):
                break
            self._used += line.n_kept
            self._begin_record()
            records.append(line)
            if alone:
                break
        if not records:
            return NOTHING
        first = records[0]
        positions = [*(record.position for record in records), records[-1].next]
        n_lines = 1 if self._multiline else first.n_lines
        return Chunk([record.raw for record in records], positions, first.too_long, n_lines=n_lines, settled=True)

    @staticmethod
    def _lines_of(chunk: Chunk) -> list[_Line]:
        given = chunk.lines, chunk.positions, chunk.positions[1:], repeat(chunk.too_long), repeat(chunk.n_quotes_cut)
        return list(map(_Line, *given))

    def _has(self, index: int, deadline: float) -> bool:
        """Read on until there is a physical line of that index; False where there is none now."""
        if index == len(self._ahead):
            self._ahead += self._lines_of(super().take(LINES_AHEAD, deadline))
        return index < len(self._ahead)

    def _record(self, deadline: float) -> _Line | None:
        """Return the next record, a line or several joined; None where it is not there yet."""
        if not self._has(self._used, deadline):
            return None
        first = self._ahead[self._used]
        if b'"' not in first.raw and not first.n_quotes_cut:
            return first
        while not self._n_lines or self._quotes.open:
            index = self._used + self._n_kept
            if not self._has(index, deadline):
                if not super().done:
                    return None
                return self._stray(first)
            self._look_at(first, index)
            if self._quotes.broken or self._length(first) > self.reach:
                return self._stray(first)
        return self._joined(first)

    def _look_at(self, first: _Line, index: int) -> None:
        """Look at the quotes of the next line of a record, which is kept up to the limit."""
        line = self._ahead[index]
        raw = line.raw if self._n_lines else line.raw.removeprefix(BOM_UTF8)
        self._quotes.feed(self._text(raw))
        self._quotes.skip(line.n_quotes_cut)
        self._n_lines += 1
        over = self._cut is not None or line.position.offset - first.position.offset + len(line.raw) > self._limit
        if self._n_kept and (over or line.too_long):
            if self._cut is None:
                self._cut = _together(self._ahead[self._used : index + 1])[: self._limit]
            self._last_dropped = line
            del self._ahead[index]
        else:
            self._n_kept += 1

    def _last(self) -> _Line:
        return self._last_dropped or self._ahead[self._used + self._n_kept - 1]

    def _length(self, first: _Line) -> int:
        last = self._last()
        return last.position.offset - first.position.offset + (last.too_long or len(last.raw))

    def _joined(self, first: _Line) -> _Line:
        kept = self._ahead[self._used : self._used + self._n_kept]
        raw = _together(kept) if self._cut is None else self._cut
        length = self._length(first)
        too_long = length if length > self._limit else 0
        return _Line(raw, first.position, self._last().next, too_long, 0, self._n_lines, self._n_kept)

    def _stray(self, first: _Line) -> _Line:
        """Return the line of a quote that has no end; the lines after it are records of their own."""
        if self._last_dropped is not None:
            behind = self._ahead[self._used + self._n_kept - 1].next.offset
            if not self._go_back(behind):
                # Standard input cannot be read again: what was dropped is part of this record.
                self._quotes.open = False
                return self._joined(first)
            del self._ahead[self._used + self._n_kept :]
        self._begin_record()
        return first

    def _text(self, line: bytes) -> str:
        return line.decode(self._encoding, "surrogateescape")


def _together(lines: Sequence[_Line]) -> bytes:
    pieces = [lines[0].raw]
    for before, line in pairwise(lines):
        line_end = before.next.offset - before.position.offset - len(before.raw)
        pieces += [b"\r\n" if line_end == 2 else b"\n", line.raw]
    return b"".join(pieces)
