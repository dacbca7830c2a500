"""The bytes of one file in order, with the names of the places in it."""

from __future__ import annotations

from codecs import BOM_UTF8

from streamkernel.connectors.files.bytes import BLOCK_BYTES, ByteStream, File, PlainFile
from streamkernel.connectors.files.places import LONGEST_HEAD, TAIL_BYTES, FilePlace, Head, identity, resume_offset
from streamkernel.connectors.ports import Position

# Counting line ends in 256 MiB takes less than a second.
_MOST_COUNTED = 2**28
# Twice the bytes of one poll: the tail of a longer record is not known.
MOST_RECENT = 2**25


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
        """Continue at `offset`; see `ByteStream.seek`."""
        self._head = Head(self._file.read_at(0, min(offset, LONGEST_HEAD)))
        # The bytes read last. The file may be truncated before a checkpoint is due, so they cannot be read again then.
        self._recent = bytearray(self._file.read_before(offset, TAIL_BYTES))
        # An offset and the bytes before it, which are known even when a long record follows.
        self._kept = offset, bytes(self._recent)
        self._file.seek(offset)
        self.offset = offset
        self.ended = False

    def read(self, deadline: float) -> bytes:
        """Return the next bytes; see `ByteStream.read`."""
        block = self._file.read(deadline)
        self._note(block)
        self.ended = self._file.ended
        return block

    def _note(self, block: bytes) -> None:
        """Note bytes that are handed out."""
        self._head.add(block)
        self._recent += block
        del self._recent[:-MOST_RECENT]
        self.offset += len(block)

    @property
    def size(self) -> int | None:
        """The length of a plain file in bytes; None for a compressed one."""
        return self._file.size if isinstance(self._file, PlainFile) else None

    def name_at(self, offset: int) -> str:
        """Return the identity of those bytes of the head that are before `offset`."""
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
        """Forget the bytes that no place from `offset` on needs."""
        self._kept = offset, self._before(offset)
        superfluous = offset - TAIL_BYTES - (self.offset - len(self._recent))
        if superfluous > 0:
            del self._recent[:superfluous]

    def _before(self, offset: int) -> bytes:
        """Return the last bytes before `offset`: `TAIL_BYTES`, or as many as are there and known."""
        if offset == self._kept[0]:
            return self._kept[1]
        end = offset - (self.offset - len(self._recent))
        return bytes(self._recent[max(0, end - TAIL_BYTES) : max(0, end)])

    def lasting(self, position: Position) -> Position:
        """Return a position, of those not forgotten, with all by which it is known again."""
        place = FilePlace.parse(position.stream)
        tail = self._before(position.offset)
        if place is None or place.tail or not tail:
            return position
        return position._replace(stream=str(place._replace(tail=identity(tail), inode=self._inode)))

    def starting_position(self) -> Position:
        """Return the position at the beginning, known by the part of the head that is there now."""
        # NUL bytes at its end are reserved space that is not written yet.
        head = Head(self._file.read_at(0, LONGEST_HEAD).rstrip(b"\0")).data
        return Position(str(FilePlace(identity(head), inode=self._inode)), 0, 0)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
