"""Following a file that grows and is rotated: ``follow: true``.

Three ways of rotating are understood. *Rename and create*: the file is renamed and a new one made under its name; the
old one is read to its end, then the new one from its beginning. *Copy and truncate*: the file is copied and cut to
nothing; that shows in its length or in its first bytes, and the rest is read from the copy. *Compression* of a
finished part: a restart finds its place in the .gz or .zst file as well.
"""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

from connectors.files.bytes import IDENTITY_BYTES, ByteStream, File, PlainFile, identity
from connectors.files.compressed import SUFFIXES, open_file
from connectors.files.rotation import find_part, successor
from connectors.ports import Position, SourceError

CHECK_SECONDS = 0.05
# Looking through the earlier parts opens each of them.
PARTS_SECONDS = 1.0

log = logging.getLogger(__name__)


class FollowedFile(ByteStream):
    """One file of a log, which ends only when another one has taken its place.

    The identity at an offset covers the first min(4096, offset) bytes, which are there for certain: so it does not
    depend on how far the file happened to have grown when it was read.

    Parameters
    ----------
    path
        The name under which the log is written.
    position
        Where to go on; None: the beginning of the file that has the name now.
    file
        The file to read, where it is known already.

    Raises
    ------
    SourceError
        When the file cannot be opened, or neither it nor an earlier part of the log is the one of `position`.

    """

    def __init__(self, path: Path, position: Position | None = None, file: File | None = None) -> None:
        if path.suffix in SUFFIXES:
            raise SourceError(f"{path}: a compressed file cannot be followed: set follow to false or name a plain file")
        self.path = path
        self._file = file or self._found(position)
        self._beginning = bytearray()
        self._name = ""
        self._parts_looked_at = 0.0
        try:
            self.seek(position.offset if position else 0)
        except SourceError:
            self.close()
            raise

    def _found(self, position: Position | None) -> File:
        try:
            file = PlainFile(self.path)
        except SourceError:
            # Between the renaming and the making of the new file there is none.
            part = find_part(self.path, position) if position else None
            if part is None:
                raise
            return part
        if position is None or file.matches(position):
            return file
        part = find_part(self.path, position)
        if part is not None:
            file.close()
            return part
        try:
            file.verify(position)
        except SourceError:
            file.close()
            raise
        return file

    def seek(self, offset: int) -> None:
        """Go on at `offset`; see `ByteStream.seek`."""
        self._beginning[:] = self._file.beginning(min(offset, IDENTITY_BYTES))
        self._file.seek(offset)
        self.offset = offset
        self.ended = False

    def name_at(self, offset: int) -> str:
        """Return the identity over the first min(4096, `offset`) bytes."""
        if offset < IDENTITY_BYTES:
            return identity(bytes(self._beginning[:offset]))
        if not self._name:
            self._name = identity(bytes(self._beginning))
        return self._name

    def read(self, deadline: float) -> bytes:
        """Return what was appended, waiting for it until `deadline`; see `ByteStream.read`."""
        while not self.ended:
            block = self._file.read(deadline)
            if self._truncated(len(block)):
                self._move_to_copy()
                continue
            if not block and self._replaced():
                # What was appended to the old file before the new one was begun.
                block = self._file.read(deadline)
                self.ended = not block
            if block:
                self._beginning += block[: IDENTITY_BYTES - len(self._beginning)]
                self.offset += len(block)
                return block
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                break
            time.sleep(min(CHECK_SECONDS, remaining))
        return b""

    def _truncated(self, unverified: int) -> bool:
        if not isinstance(self._file, PlainFile):
            return False
        if not self._file.reaches(self.offset + unverified):
            return True
        return self._file.beginning(len(self._beginning)) != self._beginning

    def _move_to_copy(self) -> None:
        """Go on in the copy that was made before the file was truncated, where there is one."""
        copy = find_part(self.path, self._position())
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

    def _position(self) -> Position:
        return Position(self.name_at(self.offset), 0, self.offset)

    def _replaced(self) -> bool:
        """Tell whether the log goes on in another file.

        A new file that is still empty does not count: until its first byte the writer may not have let go of the old
        one.
        """
        try:
            status = os.stat(self.path)
            if os.path.samestat(status, self._file.stat()):
                return False
            if status.st_size > 0:
                return True
        except OSError:
            pass
        now = time.monotonic()
        if now < self._parts_looked_at + PARTS_SECONDS:
            return False
        self._parts_looked_at = now
        return self._successor() != self.path

    def _successor(self) -> Path:
        return successor(self.path, self._file, bytes(self._beginning))

    def following(self) -> FollowedFile | None:
        """Return the next file of the log once this one has ended; None while it cannot be opened."""
        while True:
            path = self.path if self.torn else self._successor()
            try:
                file = open_file(path)
            except SourceError:
                return None
            if self.torn:
                return FollowedFile(self.path, file=file)
            # Another rotation between the choice and the opening would have moved the names along.
            if self._successor() == path and _is_at(file, path):
                return FollowedFile(self.path, file=file)
            file.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _is_at(file: File, path: Path) -> bool:
    try:
        return os.path.samestat(file.stat(), os.stat(path))
    except OSError:
        return False
