"""The bytes of a source in order: those of one file, with the names of the places in it, or of standard input."""

from __future__ import annotations

import os
import select
import time
from abc import ABC, abstractmethod
from codecs import BOM_UTF8
from dataclasses import replace

from streamkernel.connectors.files.bytes import BLOCK_BYTES, File, system_error
from streamkernel.connectors.files.places import LONGEST_HEAD, TAIL_BYTES, FilePlace, Head, identity, resume_offset
from streamkernel.connectors.ports import Position

STANDARD_INPUT = "-"
# Counting line ends in 256 MiB takes less than a second.
_MOST_COUNTED = 2**28
# Twice the bytes of one poll: the tail of a longer record is not known.
MOST_RECENT = 2**25


class ByteStream(ABC):
    """Bytes in order, from a file or a pipe."""

    offset: int = 0
    """How many decompressed bytes precede the next one `read` returns."""
    ended: bool = False
    """Whether no byte will ever follow."""
    torn: bool = False
    """Whether what follows the bytes returned so far was lost, so that a line without its end is not a line."""
    header: str | None = None
    """The header of its records, where the file does not begin with it."""

    @abstractmethod
    def read(self) -> bytes:
        """Return the next bytes, some 100 KB at most; empty where there are none now.

        Raises SourceError when the stream cannot be read on, and again at every later call.
        """

    @abstractmethod
    def name_at(self, offset: int) -> str:
        """Return what `Position.stream` is for a position at `offset`, which was read already."""

    def wait(self, seconds: float) -> None:
        """Wait until more bytes may be there."""
        time.sleep(seconds)

    @abstractmethod
    def close(self) -> None:
        """Release the file."""


class FileStream(ByteStream):
    """A file that is read from its beginning, or from a position in it on; closing the stream closes the file.

    Raises SourceError where the file cannot be read, or is not the one in which the position was taken.
    """

    _inode: int | None = None
    _counted = (0, 0)  # an offset, and the number of line feeds before it

    def __init__(self, file: File, position: Position | None = None) -> None:
        self.file = file
        place = None if position is None else FilePlace.of(position)
        self.header = None if place is None else place.header
        try:
            self.seek(resume_offset(file, position) if position else 0)
        except BaseException:
            self.close()
            raise

    def seek(self, offset: int) -> None:
        """Continue at `offset`."""
        self._head = Head(self.file.read_at(0, min(offset, LONGEST_HEAD)))
        # The bytes read last. The file may be truncated before a checkpoint is due, so they cannot be read again then.
        self._recent = bytearray(self.file.read_before(offset, TAIL_BYTES))
        self.offset = offset
        self.ended = False

    def read(self) -> bytes:
        """Return the next bytes; see `ByteStream.read`."""
        block = self.file.read(self.offset)
        self.ended = not block
        self._note(block)
        return block

    def _note(self, block: bytes) -> None:
        """Note bytes that are handed out."""
        self._head.add(block)
        self._recent += block
        del self._recent[:-MOST_RECENT]
        self.offset += len(block)

    def name_at(self, offset: int) -> str:
        """Return the identity of those bytes of the head that are before `offset`."""
        return self._head.identity_at(offset)

    def line_at(self, offset: int) -> int | None:
        """Return the number of the line at an offset, from 1; None where counting takes long, as in a compressed file.

        Line ends in quotes count, too: that is how an editor counts lines.
        """
        at, n_ends = self._counted if self._counted[0] <= offset else (0, 0)
        if not self.file.plain or offset - at > _MOST_COUNTED:
            return None
        while at < offset and (block := self.file.read(at, min(BLOCK_BYTES, offset - at))):
            at += len(block)
            n_ends += block.count(b"\n")
        self._counted = at, n_ends
        # An offset that is not after a line end belongs to the file before this one.
        begins = offset <= len(BOM_UTF8) or self.file.read_before(offset, 1) == b"\n"
        return n_ends + 1 if at == offset and begins else None

    def forget(self, offset: int) -> None:
        """Forget the bytes that no place from `offset` on needs."""
        del self._recent[: max(0, offset - TAIL_BYTES - (self.offset - len(self._recent)))]

    def _before(self, offset: int) -> bytes:
        """Return the last bytes before `offset`: `TAIL_BYTES`, or as many as are there and known."""
        end = offset - (self.offset - len(self._recent))
        return bytes(self._recent[max(0, end - TAIL_BYTES) : max(0, end)])

    def lasting(self, position: Position) -> Position:
        """Return a position, of those not forgotten, with all by which it is known again."""
        place = FilePlace.of(position)
        if place is None or place.tail:
            return position
        tail = self._before(position.offset)
        place = replace(place, tail=identity(tail) if tail else "", inode=self._inode, header=self.header)
        return position._replace(known=place.known)

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class StandardInput(ByteStream):
    """Standard input, which can be neither sought nor resumed.

    Its end is the end of the stream: as long as a writer holds the pipe open, more may come.
    """

    def read(self) -> bytes:
        """Return what is there; see `ByteStream.read`."""
        try:
            block = os.read(0, BLOCK_BYTES) if self._ready(0.0) else None
        except OSError as error:
            raise system_error("standard input", error) from None
        self.ended = block == b""
        self.offset += len(block or b"")
        return block or b""

    def wait(self, seconds: float) -> None:
        """Wait until more is there."""
        self._ready(seconds)

    def _ready(self, seconds: float) -> bool:
        return bool(select.select([0], [], [], seconds)[0])

    def name_at(self, offset: int) -> str:  # noqa: ARG002 - a pipe has no beginning to know it by
        """Return ``"-"``."""
        return STANDARD_INPUT

    def close(self) -> None:
        """Leave standard input open: it is not ours."""
