"""From bytes to physical lines with their positions, in bounded memory.

A line ends with a line feed, or a carriage return and a line feed; the last one may lack its end. A line beyond the
limit comes alone and cut, whatever its length: no more than the limit and one block of it is ever held.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, count, repeat
from operator import add
from typing import NamedTuple, Protocol, cast

from connectors.files.bytes import ByteStream
from connectors.ports import Position

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Chunk(NamedTuple):
    """Consecutive lines.

    Parameters
    ----------
    lines
        The lines without their ends.
    positions
        Where each line begins, and at last where the next one would: one more than there are lines.
    too_long
        0; or, for a line alone in its chunk that is over the limit and cut to it, its whole length in bytes.

    """

    lines: list[bytes]
    positions: list[Position]
    too_long: int = 0


NOTHING = Chunk([], [])


class Chunks(Protocol):
    """What hands out the raw records of a file: `Lines`, or something that joins them."""

    def take(self, limit: int, deadline: float) -> Chunk:
        """Return the next records, at most `limit`, waiting for the first until `deadline`; else an empty chunk."""

    @property
    def done(self) -> bool:
        """Whether nothing will ever follow."""


class Lines:
    """The lines of a byte stream, from where it stands.

    Parameters
    ----------
    stream
        The bytes.
    max_record_bytes
        The longest line that is handed out whole, in bytes without its end.

    """

    def __init__(self, stream: ByteStream, max_record_bytes: int) -> None:
        self._stream = stream
        self._limit = max_record_bytes
        self._start = stream.offset
        self._lines: list[bytes] = []
        self._next = 0
        self._line_end = 1
        self._carriage = False
        self._may_exceed = False
        self._dropped = 0
        self._tail = bytearray()
        self._tail_dropped = 0

    @property
    def done(self) -> bool:
        """Whether nothing will ever follow."""
        return (
            self._stream.ended and self._next == len(self._lines) and (not self._tail or self._stream.torn)
        )  # a torn stream's last piece is no line

    def take(self, limit: int, deadline: float) -> Chunk:
        """Return the next lines; see `Chunks.take`."""
        while self._next == len(self._lines):
            if not self._fill(deadline):
                return NOTHING
        if self._start == 0 and self._lines[0].startswith(BYTE_ORDER_MARK):
            self._start = len(BYTE_ORDER_MARK)
            self._lines[0] = self._lines[0][self._start :]
        lines = self._lines[self._next : self._next + limit]
        if self._may_exceed:
            longest = next((i for i, line in enumerate(lines) if self._exceeds(i, line)), None)
            if longest == 0:
                return self._take_cut()
            lines = lines[:longest]
        self._next += len(lines)
        positions = self._positions(lines)
        self._start = positions[-1].offset
        if self._carriage:
            lines = [line[:-1] if line.endswith(b"\r") else line for line in lines]
        return Chunk(lines, positions)

    def _fill(self, deadline: float) -> bool:
        """Read one block; False where there is none now."""
        block = self._stream.read(deadline)
        if not block:
            if not self._stream.ended or self._stream.torn or not self._tail:
                return False
            self._line_end = 0
            self._set_lines([self._take_tail()], carriage=True)
            return True
        if b"\n" not in block:
            self._keep(block)
            return True
        lines = block.split(b"\n")
        if self._tail:
            self._keep(lines[0])
            lines[0] = self._take_tail()
        else:
            self._dropped = 0
        rest = lines.pop()
        self._set_lines(lines, carriage=b"\r" in block or lines[0].endswith(b"\r"))
        self._keep(rest)
        return True

    def _set_lines(self, lines: list[bytes], carriage: bool) -> None:
        self._lines = lines
        self._next = 0
        self._may_exceed = self._dropped > 0 or max(map(len, lines)) > self._limit
        self._carriage = carriage

    def _keep(self, piece: bytes) -> None:
        """Add to the line that has no end yet, no more than tells whether it is over the limit."""
        # A byte order mark before the line and a carriage return after it do not count: so many bytes more than the
        # limit leave it undecided.
        undecided = len(BYTE_ORDER_MARK) + 1
        room = max(0, self._limit + undecided + 1 - len(self._tail))
        self._tail += piece[:room]
        self._tail_dropped += max(0, len(piece) - room)

    def _take_tail(self) -> bytes:
        line, self._dropped = bytes(self._tail), self._tail_dropped
        self._tail.clear()
        self._tail_dropped = 0
        return line

    def _exceeds(self, index: int, line: bytes) -> bool:
        first = self._next + index == 0
        return (first and self._dropped > 0) or len(line) - line.endswith(b"\r") > self._limit

    def _take_cut(self) -> Chunk:
        line = self._lines[self._next]
        length = len(line) + (self._dropped if self._next == 0 else 0)
        self._next += 1
        start, self._start = self._start, self._start + length + self._line_end
        positions = [self._position(start), self._position(self._start, self._line_end == 0)]
        return Chunk([line[: self._limit]], positions, too_long=length)

    def _position(self, offset: int, unended: bool = False) -> Position:
        name = self._stream.unended_name_at if unended else self._stream.name_at
        return Position(name(offset), 0, offset)

    def _positions(self, lines: list[bytes]) -> list[Position]:
        if self._line_end == 0:
            return [self._position(self._start), self._position(self._start + len(lines[0]), unended=True)]
        offsets = list(map(add, accumulate(map(len, lines), initial=self._start), count()))
        name = self._stream.name_at(offsets[0])
        if self._stream.name_at(offsets[-1]) != name:
            return [self._position(offset) for offset in offsets]
        # The same as calling Position for each offset, at a third of the cost.
        made = map(tuple.__new__, repeat(Position), zip(repeat(name), repeat(0), offsets))
        return list(cast("Iterator[Position]", made))
