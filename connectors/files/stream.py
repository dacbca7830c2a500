"""The bytes of one file in order, with the names of the places in it."""

from __future__ import annotations

from codecs import BOM_UTF8

from streamkernel.connectors.files.bytes import BLOCK_BYTES, ByteStream, File, PlainFile
from streamkernel.connectors.files.identity import LONGEST_HEAD, TAIL_BYTES, FilePlace, Head, identity
from streamkernel.connectors.files.recent import RecentBytes
from streamkernel.connectors.files.resuming import resume_offset
from streamkernel.connectors.ports import Position

# Counting line ends in 256 MiB takes less than a second.
_MOST_COUNTED = 2**28


class FileStream(ByteStream):
    """A file that is read from its beginning, or from a position in it on; closing the stream closes the file.

    Raises SourceError where the file cannot be read, or is not the one in which the position was taken.

    Attributes
    ----------
    header
        The header of its records, where the position holds it, as the file does not begin with it.

    """

    _inode: int | None = None
    _counted = (0, 0)  # an offset, and the number of line feeds before it

    def __init__(self, file: File, position: Position | None = None) -> None:
        self._file = file
        place = None if position is None else FilePlace.parse(position.stream)
        self.header = None if place is None else place.header
        try:
            self.seek(resume_offset(file, position) if position else 0)
        except BaseException:
            self.close()
            raise

    def seek(self, offset: int) -> None:
        """Go on at `offset`; see `ByteStream.seek`."""
        self._head = Head(self._file.read_at(0, min(offset, LONGEST_HEAD)))
        self._recent = RecentBytes(offset, self._file.read_before(offset, TAIL_BYTES))
        self._file.seek(offset)
        self.offset = offset
        self.ended = False

    def go_back(self, offset: int) -> bool:
        """Go on at an offset that was read already, knowing the places before it; see `ByteStream.go_back`."""
        if self.torn:
            return False
        self._head = Head(self._head.data[:offset])
        self._recent.go_back(offset)
        self._file.seek(offset)
        self.offset = offset
        self.ended = False
        return True

    def read(self, deadline: float) -> bytes:
        """Return the next bytes; see `ByteStream.read`."""
        block = self._file.read(deadline)
        self._note(block)
        self.ended = self._file.ended
        return block

    def _note(self, block: bytes) -> None:
        """Note bytes that are handed out."""
        self._head.add(block)
        self._recent.add(block)
        self.offset += len(block)

    def name_at(self, offset: int) -> str:
        """Return the identity of what precedes `offset` of the file's head."""
        return self._head.identity_at(offset)

    def unended_name_at(self, offset: int) -> str:
        """Return the name of the place after a last line without a line end; see `ByteStream.unended_name_at`."""
        return str(FilePlace(self.name_at(offset), unended=True))

    def line_at(self, offset: int) -> int | None:
        """Return the number of the line at an offset, from 1; None where counting takes long, as in a compressed file.

        Line ends in quotes count, too: that is how an editor counts lines.
        """
        at, n_ends = self._counted if self._counted[0] <= offset else (0, 0)
        if not isinstance(self._file, PlainFile) or offset - at > _MOST_COUNTED:
            return None
        while at < offset and (block := self._file.read_at(at, min(BLOCK_BYTES, offset - at))):
            at += len(block)
            n_ends += block.count(b"\n")
        self._counted = at, n_ends
        # An offset that is not after a line end belongs to the file before this one.
        begins = offset <= len(BOM_UTF8) or self._file.read_before(offset, 1) == b"\n"
        return n_ends + 1 if at == offset and begins else None

    def forget(self, offset: int) -> None:
        """Forget what no place from `offset` on needs to be known again."""
        self._recent.forget(offset)

    def lasting(self, position: Position) -> Position:
        """Return a position, of those not forgotten, with all by which it is known again."""
        place = FilePlace.parse(position.stream)
        tail = self._recent.before(position.offset)
        if place is None or place.tail is not None or not tail:
            return position
        return position._replace(stream=str(place._replace(tail=identity(tail), inode=self._inode)))

    def starting_position(self) -> Position:
        """Return the position at the beginning, known by what of the head is there now."""
        # NUL bytes at its end are room for what is yet to be written.
        head = Head(self._file.read_at(0, LONGEST_HEAD).rstrip(b"\0")).data
        return Position(str(FilePlace(identity(head), inode=self._inode)), 0, 0)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
