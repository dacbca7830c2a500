"""Following a file that grows and is rotated: ``follow: true``.

Three ways of rotating are understood. *Rename and create*: the file is renamed and a new one made under its name; the
old one is read to its end, then the new one from its beginning. *Copy and truncate*: the file is copied and cut to
nothing; that shows in its length or in its first bytes, and the rest is read from the copy. *Compression* of a
finished part: a restart finds its place in the .gz or .zst file as well.

A file that is none of these was rewritten or replaced. The running source decides as a restart does. Where the file
holds what was read, reading continues after that. A file that repeats only a part of it is an error, so that no
record is learned twice. One thing a restart cannot know: this file was read to its end, so a file that repeats nothing
is the next one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from pathlib import Path

from streamkernel.connectors.files.bytes import SUFFIXES, File, open_file
from streamkernel.connectors.files.changes import Changes
from streamkernel.connectors.files.listing import FileList
from streamkernel.connectors.files.places import (
    HEAD_BYTES,
    LONGEST_HEAD,
    FilePlace,
    Head,
    holds_end,
    identity,
    matches,
    repeats,
    resume_offset,
)
from streamkernel.connectors.files.rotation import Part, find_part, successor
from streamkernel.connectors.files.stream import STANDARD_INPUT, ByteStream, FileStream
from streamkernel.connectors.ports import Position, SourceError

# Looking through the earlier parts opens each of them.
PARTS_SECONDS = 1.0

log = logging.getLogger(__name__)


class FollowedLog(FileList):
    """The parts of a log that is followed, each from its beginning; the last one is the file at the path."""

    finite = False
    # A part that ended, and the one after it.
    _finished: FollowedFile | None = None
    _following: FollowedFile | None = None

    def start(self, positions: Mapping[int, Position]) -> Position | None:
        """Begin at the position of an earlier run; see `FileList.start`."""
        if self.path == STANDARD_INPUT:
            raise SourceError("standard input cannot be followed: it is read until its writer ends; drop follow")
        if Path(self.path).suffix in SUFFIXES:
            raise SourceError(
                f"{self.path}: a compressed file cannot be followed: set follow to false or name a plain file"
            )
        return super().start(positions)

    def __init__(self, path: str) -> None:
        super().__init__([path], alone=True)

    def due(self) -> bool:
        """Return whether there is a part to read, once the one before it has ended."""
        if self._finished is not None and self._following is None:
            self._following = self._finished.following()
        return self._finished is None or self._following is not None

    def wait(self, seconds: float) -> None:
        """Wait until another part may be there."""
        wait = super().wait if self._finished is None else self._finished.wait
        wait(seconds)

    def open(self, position: Position | None) -> ByteStream:
        """Open the part that is due."""
        stream = self._following or FollowedFile(Path(self.path), position)
        if self._finished is not None:
            self._finished.close()
        elif position is None:
            self.starts = {0: stream.starting_position()}
        self._finished = self._following = None
        return stream

    def finish(self, stream: ByteStream | None) -> None:
        """Keep a part that ended open until the next one is there."""
        assert isinstance(stream, FollowedFile)
        self._finished = stream

    def describe(self, kind: str) -> str:
        """Return a phrase such as ``"csv file data.csv, followed"``."""
        return f"{super().describe(kind)}, followed"

    def close(self) -> None:
        """Close a part that ended."""
        for part in (self._finished, self._following):
            if part is not None:
                part.close()
        self._finished = self._following = None


class FollowedFile(FileStream):
    """One file of the log that is written at `path`, which ends only when another one has taken its place.

    It continues at `position`, else at the beginning of `file`, by default the one that has the name now. Raises
    SourceError where that cannot be opened, or neither it nor an earlier part of the log is the one of `position`.

    Attributes
    ----------
    continued
        Whether it continues a file that was truncated: it need not begin with a header.

    """

    def __init__(self, path: Path, position: Position | None = None, file: File | None = None) -> None:
        self.path = path
        self._parts_looked_at = 0.0
        self._changes: Changes | None = None
        super().__init__(file or _open_part(path, position), position)
        # The number of the file under the path: a copy is read in its place once the file itself was truncated.
        self._inode = self.file.stat().st_ino
        place = None if position is None else FilePlace.of(position)
        newest = Part.at(path)
        if place is not None and newest is not None and newest.inode == place.inode:
            self._inode = newest.inode
        self.continued = self.header is not None

    def read(self) -> bytes:
        """Return the bytes that were appended; see `ByteStream.read`."""
        while not self.ended:
            block = self._read_written()
            changed = self._changed(len(block))
            replaced = not changed and not block and self.is_replaced()
            if replaced:
                # The last bytes of the old file, written before the new one was begun.
                block = self._read_written()
            if block and not changed:
                self._note(block)
                return block
            if not (changed or replaced) or not self._settle(changed):
                break
        return b""

    def _read_written(self) -> bytes:
        """Read on up to the NUL bytes at the end of the file: space that is reserved and not written yet."""
        file = self.file
        block = file.read(self.offset)
        reserved = block.endswith(b"\0") and file.plain and file.read_before(file.size, 1) == b"\0"
        return block.rstrip(b"\0") if reserved else block

    def _changed(self, unverified: int) -> bool:
        """Return whether the file has other bytes by now than those that were read."""
        file = self.file
        if not file.plain:
            return False
        # It may have grown beyond the old length since it was truncated.
        head, tail = self._head.data[:HEAD_BYTES], self._before(self.offset)
        return (
            file.size < self.offset + unverified
            or file.read_at(0, len(head)) != head
            or file.read_before(self.offset, len(tail)) != tail
        )

    def _settle(self, changed: bool) -> bool:
        """Decide where to continue once the file was changed or replaced; False: that is not known yet."""
        here = self._here
        if changed:
            copy = find_part(self.path, here)
            if copy is not None:
                self._swap(copy)
                return True
        else:
            path, kept = successor(self.path, self.file, here)
            if kept or path != self.path:
                self.ended = True
                return True
        # No earlier part is the file that was read, so the file at the path decides.
        try:
            newest = open_file(self.path) if self.is_replaced() else self.file
        except SourceError:
            return False
        holds = matches(newest, here)
        try:
            repeated = not holds and repeats(newest, self._head.data)
            if not holds and repeated is False:
                repeated = holds_end(newest, self._before(self.offset))
            if repeated:
                resume_offset(newest, here)  # raises what it would raise at a restart
        finally:
            if newest is not self.file and not holds:
                newest.close()
        if holds and newest is not self.file:
            if self.offset:
                said = "%s: was replaced by a file that begins with what was read: reading continues after that"
                log.warning(said, self.path)
            self._inode = newest.stat().st_ino
            self._swap(newest)
        elif repeated is False and not holds:
            self.ended, self.torn = True, changed
            if changed:
                log.warning(
                    "%s was truncated at byte %d, and there is no copy of its content: unread records are lost",
                    *(self.path, self.offset),
                )
        return repeated is not None

    def _swap(self, file: File) -> None:
        """Continue in another file, at the same place."""
        self.file.close()
        self.file = file

    @property
    def _here(self) -> Position:
        return self.lasting(Position(self.name_at(self.offset), 0, self.offset))

    def is_replaced(self) -> bool:
        """Return whether the log continues in another file.

        A new file that is still empty does not count: until its first byte the writer may still write to the old one.
        """
        newest, inode = Part.at(self.path), self.file.stat().st_ino
        if newest is not None and (newest.inode == inode or newest.size > 0):
            return newest.inode != inode
        now = time.monotonic()
        if now < self._parts_looked_at + PARTS_SECONDS:
            return False
        self._parts_looked_at = now
        return self._successor() != self.path

    def _successor(self) -> Path:
        return successor(self.path, self.file, self._here)[0]

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
                following = FollowedFile(self.path, file=file)
                newest = Part.at(self.path)
                if newest is not None and newest.inode == self._inode:
                    # The file was truncated, and other parts are copies.
                    following.continued, following._inode = True, self._inode
                return following
            file.close()

    def wait(self, seconds: float) -> None:
        """Wait until the file is written to or renamed; see `ByteStream.wait`."""
        if self._changes is None or self._changes.file is not self.file:
            # What was written before counts as no change: the caller looks once more.
            self._watch(Changes(self.path, self.file))
        else:
            self._changes.wait(seconds)

    def _watch(self, changes: Changes | None) -> None:
        if self._changes is not None:
            self._changes.close()
        self._changes = changes

    def close(self) -> None:
        """Close the file, and stop to watch it."""
        self._watch(None)
        super().close()

    def starting_position(self) -> Position:
        """Return the position at the beginning, known by the part of the head that is there now."""
        # NUL bytes at its end are reserved space that is not written yet.
        head = Head(self.file.read_at(0, LONGEST_HEAD).rstrip(b"\0")).data
        return Position(identity(head), 0, 0, FilePlace(inode=self._inode).known)


def _open_part(path: Path, position: Position | None) -> File:
    """Open the part of a log in which `position` was taken."""
    try:
        file = File(path)
    except SourceError:
        # Between the renaming and the making of the new file there is none.
        part = find_part(path, position) if position else None
        if part is None:
            raise
        return part
    try:
        # Where the new file began just like the old one, the inode tells which of them was read.
        part = find_part(path, position, renamed=matches(file, position)) if position else None
    except SourceError:
        file.close()
        raise
    if part is not None:
        file.close()
    return part or file
