"""From bytes to records with their positions, in bounded memory: physical lines, or those of CSV with its quotes.

A line ends with a line feed, or a carriage return and a line feed; the last one may lack its end. A record beyond the
limit comes alone and cut, whatever its length.
"""

from __future__ import annotations

import csv
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

import numpy as np

from streamkernel.compute.jit import Array
from streamkernel.connectors.files.fields import csv_rows, n_lines_of_record
from streamkernel.connectors.files.stream import ByteStream
from streamkernel.connectors.ports import Offsets, Position, Raws, SourceError

REACH = 2**23
# With long records, the few hundred that the daemon asks for would fill the memory.
MOST_BYTES = 2**24
# Up to this number, lines and positions are made at once.
_FEW = 8
# A byte order mark and a carriage return do not count: their bytes over the limit leave it undecided.
_UNDECIDED = len(BOM_UTF8) + 1
_FEED, _RETURN = b"\n\r"


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

    lines: Sequence[bytes]
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
        # Whole lines that were read, the place before the first and that of each line's end in them, the number of the
        # first line that was not handed out, and where that begins in the stream.
        self._data = bytearray()
        self._bounds = np.full(1, -1)
        self._next = self._n_lines = 0
        self._start = stream.offset
        # The line without an end so far, how long it is and where it begins.
        self._tail = bytearray()
        self._tail_length = 0
        self._tail_start = stream.offset
        # The whole length of a line that is held in part, by where it begins.
        self._cut: dict[int, int] = {}
        # How long a line end is: 0 for the last line of the stream.
        self._line_end = 1

    @property
    def done(self) -> bool:
        """Whether nothing will ever follow; the last piece of a torn stream is no line."""
        read = self._stream.ended and self._next == self._n_lines
        return read and (not self._tail_length or self._stream.torn)

    @property
    def unended(self) -> bool:
        """Whether the last line was read, and has no line end."""
        return self._line_end == 0

    def at_end(self) -> bool:
        """Return whether nothing will ever follow, and read on where that is not known yet."""
        while self._next == self._n_lines and self._fill():
            pass
        return self.done

    def take(self, limit: int) -> Chunk:
        """Return the next records, at most `limit`; none where there are none now."""
        return self._chunk(self._peek(limit))

    def give_back(self, chunk: Chunk, index: int) -> None:
        """Hand out the last chunk once more, from an index on."""
        self._next -= len(chunk.lines) - index + chunk.n_lines - 1
        self._start = chunk.positions[index].offset

    def _peek(self, limit: int) -> int:
        """Read on for the next lines, and return how many whole ones are there, at most `limit`."""
        while self._next == self._n_lines:
            if not self._fill():
                return 0
        with suppress(SourceError):  # it fails again once these are handed out
            while self._n_lines < self._next + limit and self._stream.offset - self._start < MOST_BYTES:
                if not self._fill():
                    break
        return min(limit, self._n_lines - self._next)

    def _chunk(self, n_lines: int) -> Chunk:
        """Hand out the next lines up to one over the limit, or that one alone."""
        if not n_lines:
            return NOTHING
        bounds = self._bounds[self._next : self._next + n_lines + 1]
        data = bytes(memoryview(self._data)[bounds[0] + 1 : bounds[-1] + 1])
        begins, ends = bounds[:-1] - bounds[0], bounds[1:] - bounds[0] - 1
        sizes = ends - begins
        # The byte before the end of an empty line is not its own.
        ends -= (np.frombuffer(data, np.uint8)[ends - 1] == _RETURN) & (sizes > 0)
        if len(over := np.flatnonzero(ends - begins > self._limit)):
            n_lines = int(over[0])
            if not n_lines:
                return self._record(1)
        self._next += n_lines
        lines: Sequence[bytes] = Raws(data, begins[:n_lines], ends[:n_lines])
        if n_lines <= _FEW:
            lines = [data[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)][:n_lines]
        return Chunk(lines, self._positions(sizes[:n_lines]))

    def _record(self, n_lines: int) -> Chunk:
        """Hand out the next lines as one record, cut to the limit."""
        first, stop = int(self._bounds[self._next]) + 1, int(self._bounds[self._next + n_lines])
        length = self._cut.pop(self._start, stop - first)
        record = bytes(self._data[first : min(stop, first + self._limit + 2)]).removesuffix(b"\r")
        self._next += n_lines
        too_long = length if len(record) > self._limit else 0
        return Chunk([record[: self._limit]], self._positions(np.array([length])), too_long, n_lines)

    def _fill(self) -> bool:
        """Read one block; return False where there is none now."""
        block = self._stream.read()
        if not block:
            if not (self._tail_length and self._stream.ended and not self._stream.torn):
                return False
            block, self._line_end = b"\n", 0
        first, end, rest = block.find(b"\n"), block.rfind(b"\n") + 1, block
        if end:
            rest = block[end:]
            self._keep(block[:first])
            self._add(block[first:end])
            self._tail_start = self._stream.offset - len(rest)
        self._keep(rest)
        return True

    def _add(self, lines: bytes) -> None:
        """Add the line that has no end yet, and what follows of it, to the whole lines."""
        length, start = self._tail_length, self._tail_start
        if start == 0 and self._tail.startswith(BOM_UTF8):
            self._start = start = len(BOM_UTF8)
            del self._tail[:start]
            length -= start
        if length > len(self._tail):
            self._cut[start] = length
        first = int(self._bounds[self._next]) + 1
        del self._data[:first]
        self._data += self._tail
        stops = np.flatnonzero(np.frombuffer(lines, np.uint8) == _FEED) + len(self._data)
        self._data += lines
        self._bounds = np.concatenate([self._bounds[self._next :] - first, stops])
        self._next, self._n_lines = 0, len(self._bounds) - 1
        self._tail.clear()
        self._tail_length = 0

    def _keep(self, piece: bytes) -> None:
        """Add to the line that has no end yet."""
        self._tail += piece[: max(0, self._held - len(self._tail))]
        self._tail_length += len(piece)

    def _positions(self, sizes: Array) -> Sequence[Position]:
        """Return where the next lines of these sizes begin, and where the line after them does."""
        offsets = np.empty(len(sizes) + 1, np.int64)
        offsets[0] = self._start
        np.cumsum(sizes + 1, out=offsets[1:])
        offsets[1:] += self._start
        # Lines before it may have been read with the last one, to find the end of a quote.
        unended = not self._line_end and self._next == self._n_lines
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
        n_lines = self._peek(limit)
        if self._data.find(b'"', self._bounds[self._next] + 1, self._bounds[self._next + n_lines]) < 0:
            return self._chunk(n_lines)
        if self.waits_at is None and (n_alone := self._n_alone(n_lines)):
            return self._chunk(n_alone)
        n_lines = self._n_of_first()
        return self._record(n_lines) if n_lines else NOTHING

    def _texts(self) -> Iterator[str]:
        """Make what the csv module needs of each line that waits to find where its record ends."""
        begin = int(self._bounds[self._next]) + 1
        for stop in self._bounds[self._next + 1 :].data:
            if self._data.find(b'"', begin, stop) < 0:
                yield ""
            else:
                yield self._data[begin:stop].removeprefix(BOM_UTF8).decode(self._encoding, "surrogateescape")
            begin = stop + 1

    def _n_alone(self, n_lines: int) -> int:
        """Return how many of the next lines, from the first on, are a record each."""
        # A quote that is open at the end of the last line takes the empty one after it.
        texts = [*islice(self._texts(), n_lines), ""]
        with suppress(csv.Error):
            if len(list(csv_rows(texts, self._delimiter))) == len(texts):
                return n_lines
        rows = csv_rows(texts, self._delimiter)
        for number in range(1, len(texts)):
            with suppress(csv.Error):
                next(rows)
            if rows.line_num > number:
                return number - 1
        return n_lines

    def _n_of_first(self) -> int:
        """Return how many lines the record has that opens a quote in the next line; 0: not known yet."""
        self.waits_at = self._start
        n_lines = 0
        while not n_lines:
            n_waiting = self._n_lines - self._next
            if n_waiting > self._n_looked:
                self._n_looked = n_waiting
                n_lines = n_lines_of_record(self._texts(), self._delimiter)
                last = self._next + n_lines if n_lines else -1
                if self._bounds[last] - self._bounds[self._next] > self.reach:
                    n_lines = 1
            # Twice as much is read before it is looked at once more.
            elif not self._read_lines(2 * n_waiting):
                if not self._stream.ended:
                    return 0
                n_lines = 1
        self.waits_at, self._n_looked = None, 0
        return n_lines

    def _read_lines(self, wanted: int) -> bool:
        """Read until this many lines wait, or no more are there now; return whether any was read."""
        known = self._n_lines - self._next
        while self._n_lines - self._next < wanted and self._fill():
            pass
        return self._n_lines - self._next > known
