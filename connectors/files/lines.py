"""From bytes to physical lines with their positions, in bounded memory.

A line ends with a line feed, or a carriage return and a line feed; the last one may lack its end. A line beyond the
limit comes alone and cut, whatever its length: no more than the limit and one block of it is ever held.
"""

from __future__ import annotations

from bisect import bisect_left
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from itertools import accumulate, count, repeat
from operator import add
from typing import NamedTuple, cast

from streamkernel.connectors.files.bytes import BLOCK_BYTES, ByteStream
from streamkernel.connectors.ports import Position


class Chunk(NamedTuple):
    """Consecutive lines without their ends.

    Attributes
    ----------
    lines
        The lines.
    positions
        Where each line begins, and where the line after the last one would: one more than there are lines.
    too_long
        The whole length in bytes of a line that is over the limit and cut to it; it is alone in its chunk. Else 0.
    n_quotes_cut
        How many quotes such a line has after the cut.
    n_lines
        How many physical lines a joined record has that is alone in its chunk.
    settled
        Whether `QuotedLines` looked at the quotes of each line.

    """

    lines: list[bytes]
    positions: list[Position]
    too_long: int = 0
    n_quotes_cut: int = 0
    n_lines: int = 1
    settled: bool = False


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
        self._restart(stream.offset)

    def _restart(self, offset: int, unread: bytes = b"") -> None:
        """Split from `offset` on: first bytes that were read before, then the rest of the stream."""
        self._unread = memoryview(unread)
        # The last block and where it ends, its lines, the index of the next of them, and where that one begins.
        self._block = b""
        self._block_end = offset
        self._lines: list[bytes] = []
        self._next = 0
        self._start = offset
        # Index and whole length of those over the limit, whether any may end with a carriage return, and how long the
        # line end is: 0 for the last line of the stream.
        self._over: list[tuple[int, int]] = []
        self._carriage = False
        self._line_end = 1
        # The line without an end so far, kept only until it is known to be over the limit.
        self._tail = bytearray()
        self._tail_length = 0
        # How many quotes the dropped part of it has, and that of the first line of the last block.
        self._tail_quotes = 0
        self._first_quotes = 0

    @property
    def done(self) -> bool:
        """Whether nothing will ever follow; the last piece of a torn stream is no line."""
        read = self._stream.ended and not self._unread and self._next == len(self._lines)
        return read and (not self._tail or self._stream.torn)

    @property
    def unended(self) -> bool:
        """Whether the last line was read, and has no line end."""
        return self._line_end == 0

    def at_end(self) -> bool:
        """Return whether nothing will ever follow, and read on where that is not known yet."""
        while self._next == len(self._lines) and self._fill(deadline=0.0):
            pass
        return self.done

    def take(self, limit: int, deadline: float) -> Chunk:
        """Return the next lines, at most `limit`; wait for the first until `deadline`, else return no line."""
        while self._next == len(self._lines):
            if not self._fill(deadline):
                return NOTHING
        begin, end = self._next, self._next + limit
        if self._over:
            over = self._over[bisect_left(self._over, (begin, 0)) :][:1]
            if over and over[0][0] == begin:
                line, length = self._lines[begin], over[0][1]
                self._next += 1
                n_quotes = line.count(b'"', self._limit) + (0 if begin else self._first_quotes)
                return Chunk([line[: self._limit]], self._positions([length]), length, n_quotes)
            end = min(end, *(index for index, _ in over)) if over else end
        lines = self._lines[begin:end]
        self._next += len(lines)
        positions = self._positions(map(len, lines))
        if self._carriage:
            lines = [line.removesuffix(b"\r") for line in lines]
        return Chunk(lines, positions)

    def _fill(self, deadline: float) -> bool:
        """Read one block; return False where there is none now."""
        block = bytes(self._unread[:BLOCK_BYTES]) or self._stream.read(deadline)
        self._unread = self._unread[BLOCK_BYTES:]
        if block:
            *lines, rest = block.split(b"\n")
        elif self._tail and self._stream.ended and not self._stream.torn:
            lines, rest, self._line_end = [b""], b"", 0
        else:
            return False
        self._block = block
        self._block_end += len(block)
        if lines:
            self._keep(lines[0])
            lines[0] = bytes(self._tail)
            self._carriage = b"\r" in block or lines[0].endswith(b"\r")
            self._set_lines(lines, self._tail_length)
            self._first_quotes = self._tail_quotes
            self._tail.clear()
            self._tail_length = self._tail_quotes = 0
        self._keep(rest)
        return True

    def _set_lines(self, lines: list[bytes], first_length: int) -> None:
        """Prepare lines for `take`; the first has this length, though less of it may be kept."""
        if self._start == 0 and lines[0].startswith(BOM_UTF8):
            self._start = len(BOM_UTF8)
            lines[0] = lines[0][self._start :]
            first_length -= self._start
        self._lines = lines
        self._next = 0
        self._over = []
        if first_length > self._limit or max(map(len, lines)) > self._limit:
            lengths = [first_length, *map(len, lines[1:])]
            cut = first_length > len(lines[0])
            self._over = [
                (index, length)
                for index, (line, length) in enumerate(zip(lines, lengths, strict=True))
                if (cut and index == 0) or length - line.endswith(b"\r") > self._limit
            ]

    def _keep(self, piece: bytes) -> None:
        """Add to the line that has no end yet."""
        # A byte order mark and a carriage return do not count: their bytes over the limit leave it undecided.
        undecided = len(BOM_UTF8) + 1
        room = max(0, self._limit + undecided + 1 - len(self._tail))
        self._tail += piece[:room]
        self._tail_length += len(piece)
        if len(piece) > room:
            self._tail_quotes += piece.count(b'"', room)

    def _positions(self, lengths: Iterable[int]) -> list[Position]:
        """Return where the next lines of these lengths begin, and where the line after them does."""
        offsets = list(map(add, accumulate(lengths, initial=self._start), count(step=self._line_end)))
        self._start = offsets[-1]
        name = self._stream.name_at(offsets[0])
        if self._line_end == 0:
            end = self._start
            unended = self._stream.unended_name_at(end)
            return [Position(name, self._partition, offsets[0]), Position(unended, self._partition, end)]
        if self._stream.name_at(offsets[-1]) != name:
            return [Position(self._stream.name_at(offset), self._partition, offset) for offset in offsets]
        # The same as calling Position for each offset, at a third of the cost.
        made = map(tuple.__new__, repeat(Position), zip(repeat(name), repeat(self._partition), offsets))
        return list(cast("Iterator[Position]", made))
