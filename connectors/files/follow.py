"""Following a file that grows and is rotated: ``follow: true``.

Three ways of rotating are understood. *Rename and create*: the file is renamed and a new one made under its name; the
old one is read to its end, then the new one from its beginning. *Copy and truncate*: the file is copied and cut to
nothing; that shows in its length or in its first bytes, and the rest is read from the copy. *Compression* of a
finished part: a restart finds its place in the .gz or .zst file as well.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

from connectors.files.bytes import File, PlainFile
from connectors.files.compressed import SUFFIXES, open_file
from connectors.files.identity import HEAD_BYTES
from connectors.files.resuming import matches
from connectors.files.rotation import Part, find_part, successor
from connectors.files.stream import FileStream
from connectors.ports import Position, SourceError

CHECK_SECONDS = 0.05
# Looking through the earlier parts opens each of them.
PARTS_SECONDS = 1.0

log = logging.getLogger(__name__)


class FollowedFile(FileStream):
    """One file of the log that is written at `path`, which ends only when another one has taken its place.

    It goes on at `position`, else at the beginning of `file`, by default the one that has the name now. Raises
    SourceError where that cannot be opened, or neither it nor an earlier part of the log is the one of `position`.
    """

    def __init__(self, path: Path, position: Position | None = None, file: File | None = None) -> None:
        if path.suffix in SUFFIXES:
            raise SourceError(f"{path}: a compressed file cannot be followed: set follow to false or name a plain file")
        self.path = path
        self._parts_looked_at = 0.0
        super().__init__(file or _open_part(path, position), position)

    @property
    def _inode(self) -> int:  # type: ignore[override]
        return self._file.stat().st_ino

    def read(self, deadline: float) -> bytes:
        """Return what was appended, waiting for it until `deadline`; see `ByteStream.read`."""
        while not self.ended:
            block = self._file.read(deadline)
            if self._truncated(len(block)):
                self._move_to_copy()
                continue
            if not block and self.is_replaced():
                # What was appended to the old file before the new one was begun.
                block = self._file.read(deadline)
                self.ended = not block
            if block:
                self._note(block)
                return block
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                break
            time.sleep(min(CHECK_SECONDS, remaining))
        return b""

    def _truncated(self, unverified: int) -> bool:
        file = self._file
        if not isinstance(file, PlainFile):
            return False
        # It may have grown beyond the old length since it was truncated.
        head, tail = self._head.data[:HEAD_BYTES], self._recent.before(self.offset)
        return (
            file.size < self.offset + unverified
            or file.read_at(0, len(head)) != head
            or file.read_before(self.offset, len(tail)) != tail
        )

    def _move_to_copy(self) -> None:
        """Go on in the copy that was made before the file was truncated, where there is one."""
        copy = find_part(self.path, self._here)
        if copy is None:
            log.warning(
                "%s was truncated at byte %d and no copy of what it held is there: what was not read yet is lost",
                self.path,
                self.offset,
            )
            self.ended = self.torn = True
            return
        copy.seek(self.offset)
        self._file.close()
        self._file = copy

    @property
    def _here(self) -> Position:
        return self.lasting(Position(self.name_at(self.offset), 0, self.offset))

    def is_replaced(self) -> bool:
        """Tell whether the log goes on in another file.

        A new file that is still empty does not count: until its first byte the writer may not have let go of the old
        one.
        """
        newest = Part.at(self.path)
        if newest is not None and (newest.inode == self._inode or newest.size > 0):
            return newest.inode != self._inode
        now = time.monotonic()
        if now < self._parts_looked_at + PARTS_SECONDS:
            return False
        self._parts_looked_at = now
        return self._successor() != self.path

    def _successor(self) -> Path:
        return successor(self.path, self._file, self._here)

    def following(self) -> FollowedFile | None:
        """Return the next file of the log once this one has ended; None while it cannot be opened."""
        while True:
            path = self.path if self.torn else self._successor()
            try:
                file = open_file(path)
            except SourceError:
                return None
            # Another rotation between the choice and the opening would have moved the names along.
            named = Part.at(path)
            if self.torn or (self._successor() == path and named and named.inode == file.stat().st_ino):
                return FollowedFile(self.path, file=file)
            file.close()


def _open_part(path: Path, position: Position | None) -> File:
    """Open the part of a log to go on in: the one in which `position` was taken."""
    try:
        file = PlainFile(path)
    except SourceError:
        # Between the renaming and the making of the new file there is none.
        part = find_part(path, position) if position else None
        if part is None:
            raise
        return part
    if position is None:
        return file
    try:
        # Where the new file began just like the old one, the inode tells which of them was read.
        part = find_part(path, position, renamed=matches(file, position))
    except SourceError:
        file.close()
        raise
    if part is None:
        return file
    file.close()
    return part
