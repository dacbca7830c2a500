"""From bytes to records with their positions, in bounded memory: physical lines, or those of CSV with its quotes.

A line ends with a line feed, or a carriage return and a line feed; the last one may lack its end. A record beyond the
limit comes alone and cut, whatever its length.
"""

from __future__ import annotations

import csv
from codecs import BOM_UTF8
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from streamkernel.connectors.files.fields import csv_rows, n_lines_of_record
from streamkernel.connectors.files.stream import ByteStream
from streamkernel.connectors.ports import Offsets, Position, SourceError

REACH = 2**23
# With long records, the few hundred that the daemon asks for would fill the memory.
MOST_BYTES = 2**24
# Up to this number, positions are made at once.
_FEW = 8
# A byte order mark and a carriage return do not count: their bytes over the limit leave it undecided.
_UNDECIDED = len(BOM_UTF8) + 1


class Chunk(NamedTuple):
    """Consecutive records without their line ends.

    Attributes
    ----------
    lines
        The records.
    positions
        Where each begins, and where the one after the last would: one more than there are records.
    too_long
        The whole length in bytes of a record that is over the limit and cut to it; it is alone in its chunk. Else 0.
    n_lines
        How many physical lines a record has that is alone in its chunk.

    """

    lines: list[bytes]
    positions: Sequence[Position]
    too_long: int = 0
    n_lines: int = 1


NOTHING = Chunk([], [])


class Lines:
    """The lines of a byte stream, from its offset on, whole up to `max_record_bytes` without their end.

    Parameters
    ----------
    stream
        What to split.
    max_record_bytes
        The longest line.
    partition
        The partition of the positions.

    """

    def __init__(self, stream: ByteStream, max_record_bytes: int, partition: int = 0) -> None:
        self._stream = stream
        self._partition = partition
        self._limit = max_record_bytes
        # The most bytes of a line that are held.
        self._held = max_record_bytes + _UNDECIDED
        # Lines that were read, the index of the first that was not handed out, and where that begins.
        self._lines: list[bytes] = []
        self._next = 0
        self._start = stream.offset
        # The line without an end so far, how long it is and where it begins.
        self._tail = bytearray()
        self._tail_length = 0
        self._tail_start = stream.offset
        # The whole length of a line that is held in part, by where it begins.
        self._cut: dict[int, int] = {}
        self._carriage = False
        # How long a line end is: 0 for the last line of the stream.
        self._line_end = 1

    @property
    def done(self) -> bool:
        """Whether nothing will ever follow; the last piece of a torn stream is no line."""
        read = self._stream.ended and self._next == len(self._lines)
        return read and (not self._tail_length or self._stream.torn)

    @property
    def unended(self) -> bool:
        """Whether the last line was read, and has no line end."""
        return self._line_end == 0

    def at_end(self) -> bool:
        """Return whether nothing will ever follow, and read on where that is not known yet."""
        while self._next == len(self._lines) and self._fill():
            pass
        return self.done

    def take(self, limit: int) -> Chunk:
        """Return the next records, at most `limit`; none where there are none now."""
        return self._chunk(self._peek(limit))

    def give_back(self, chunk: Chunk, index: int) -> None:
        """Hand out the last chunk once more, from an index on."""
        self._next -= len(chunk.lines) - index + chunk.n_lines - 1
        self._start = chunk.positions[index].offset

    def _peek(self, limit: int) -> list[bytes]:
        """Return the next lines, with the carriage returns before their ends."""
        while self._next == len(self._lines):
            if not self._fill():
                return []
        with suppress(SourceError):  # it fails again once these are handed out
            while len(self._lines) < self._next + limit and self._stream.offset - self._start < MOST_BYTES:
                if not self._fill():
                    break
        return self._lines[self._next : self._next + limit]

    def _chunk(self, lines: list[bytes]) -> Chunk:
        """Hand out the next lines up to one over the limit, or that one alone."""
        if not lines:
            return NOTHING
        if max(map(len, lines)) > self._limit:
            over = (index for index, line in enumerate(lines) if len(line) - line.endswith(b"\r") > self._limit)
            lines = lines[: next(over, len(lines))]
            if not lines:
                return self._record(1)
        self._next += len(lines)
        positions = self._positions(map(len, lines))
        if self._carriage:
            lines = [line.removesuffix(b"\r") for line in lines]
        return Chunk(lines, positions)

    def _record(self, n_lines: int) -> Chunk:
        """Hand out the next lines as one record, cut to the limit."""
        lines = self._lines[self._next : self._next + n_lines]
        length = self._cut.pop(self._start, sum(map(len, lines)) + n_lines - 1)
        raw = bytearray()
        for line in lines:
            raw += line + b"\n"
            if len(raw) > self._limit + 2:
                break
        record = bytes(raw[:-1]).removesuffix(b"\r")
        self._next += n_lines
        too_long = length if len(record) > self._limit else 0
        return Chunk([record[: self._limit]], self._positions([length]), too_long, n_lines)

    def _fill(self) -> bool:
        """Read one block; return False where there is none now."""
        block = self._stream.read()
        if block:
            *lines, rest = block.split(b"\n")
        elif self._tail_length and self._stream.ended and not self._stream.torn:
            lines, rest, self._line_end = [b""], b"", 0
        else:
            return False
        if lines:
            self._keep(lines[0])
            lines[0] = bytes(self._tail)
            length, start = self._tail_length, self._tail_start
            if start == 0 and lines[0].startswith(BOM_UTF8):
                self._start = start = len(BOM_UTF8)
                lines[0] = lines[0][start:]
                length -= start
            if length > len(lines[0]):
                self._cut[start] = length
            self._carriage = self._carriage or b"\r" in block or lines[0].endswith(b"\r")
            del self._lines[: self._next]
            self._lines += lines
            self._next = 0
            self._tail.clear()
            self._tail_length = 0
            self._tail_start = self._stream.offset - len(rest)
        self._keep(rest)
        return True

    def _keep(self, piece: bytes) -> None:
        """Add to the line that has no end yet."""
        self._tail += piece[: max(0, self._held - len(self._tail))]
        self._tail_length += len(piece)

    def _positions(self, lengths: Iterable[int]) -> Sequence[Position]:
        """Return where the next lines of these lengths begin, and where the line after them does."""
        sizes = np.fromiter(lengths, np.int64)
        offsets = np.empty(len(sizes) + 1, np.int64)
        offsets[0] = self._start
        np.cumsum(sizes + 1, out=offsets[1:])
        offsets[1:] += self._start
        # Lines before it may have been read with the last one, to find the end of a quote.
        unended = not self._line_end and self._next == len(self._lines)
        offsets[-1] -= unended
        self._start = int(offsets[-1])
        name = self._stream.name_at(int(offsets[0]))
        if len(sizes) > _FEW and not unended and self._stream.name_at(self._start) == name:
            return Offsets(name, self._partition, offsets)
        positions = [Position(self._stream.name_at(offset), self._partition, offset) for offset in offsets.tolist()]
        if unended:
            positions[-1] = positions[-1]._replace(known={"unended": True})
        return positions


class CsvLines(Lines):
    """The records of a CSV file; lines within one quoted field are one record, cut to `max_record_bytes`.

    A quote without an end must not swallow the rest of the file: the record is only its own line where

    - the quote is not closed within `REACH` bytes (times `max_record_bytes` in MiB, if that is more), or by the end, or
    - something follows the closing quote.

    The next line then begins a record of its own. A record of several lines is alone in its chunk.

    Attributes
    ----------
    waits_at
        The offset of the record with a quote that is not closed yet; None where there is none.

    """

    def __init__(
        self, stream: ByteStream, max_record_bytes: int, delimiter: str, encoding: str, partition: int = 0
    ) -> None:
        super().__init__(stream, max_record_bytes, partition)
        self._delimiter = delimiter
        self._encoding = encoding
        self.reach = REACH * max(1, max_record_bytes // 2**20)
        self._held = max(self._held, self.reach + _UNDECIDED)
        self.waits_at: int | None = None
        self._n_looked = 0

    @property
    def done(self) -> bool:
        """Whether nothing will ever follow."""
        return self.waits_at is None and super().done

    def take(self, limit: int) -> Chunk:
        """Return the next records; see `Lines.take`."""
        lines = self._peek(limit)
        if b'"' not in b"\n".join(lines):
            return self._chunk(lines)
        if self.waits_at is None and (n_alone := self._n_alone(lines)):
            return self._chunk(lines[:n_alone])
        n_lines = self._n_of_first()
        return self._record(n_lines) if n_lines else NOTHING

    def _text(self, line: bytes) -> str:
        """Return what the csv module needs of a line to find where its record ends."""
        if b'"' not in line:
            return ""
        return line.removeprefix(BOM_UTF8).decode(self._encoding, "surrogateescape")

    def _n_alone(self, lines: Sequence[bytes]) -> int:
        """Return how many of these lines, from the first on, are a record each."""
        # A quote that is open at the end of the last line takes the empty one after it.
        texts = [*map(self._text, lines), ""]
        with suppress(csv.Error):
            if len(list(csv_rows(texts, self._delimiter))) == len(texts):
                return len(lines)
        rows = csv_rows(texts, self._delimiter)
        for number in range(1, len(texts)):
            with suppress(csv.Error):
                next(rows)
            if rows.line_num > number:
                return number - 1
        return len(lines)

    def _n_of_first(self) -> int:
        """Return how many lines the record has that opens a quote in the next line; 0: not known yet."""
        self.waits_at = self._start
        n_lines = 0
        while not n_lines:
            lines = self._lines[self._next :]
            if len(lines) > self._n_looked:
                self._n_looked = len(lines)
                n_lines = n_lines_of_record(map(self._text, lines), self._delimiter)
                whole = lines[:n_lines] if n_lines else lines
                if sum(map(len, whole)) + len(whole) > self.reach:
                    n_lines = 1
            # Twice as much is read before it is looked at once more.
            elif not self._read_lines(2 * len(lines)):
                if not self._stream.ended:
                    return 0
                n_lines = 1
        self.waits_at, self._n_looked = None, 0
        return n_lines

    def _read_lines(self, wanted: int) -> bool:
        """Read until this many lines wait, or no more are there now; return whether any was read."""
        known = len(self._lines) - self._next
        while len(self._lines) - self._next < wanted and self._fill():
            pass
        return len(self._lines) - self._next > known
