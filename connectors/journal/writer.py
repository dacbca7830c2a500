"""Appends records to a journal: groups of requests at once, each durable before it is acknowledged."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import Enum
from itertools import pairwise
from pathlib import Path

from streamkernel.connectors.durable import sync_folder
from streamkernel.connectors.file_system import make_folder, open_regular
from streamkernel.connectors.files.locking import lock
from streamkernel.connectors.journal.ids import RecentIds
from streamkernel.connectors.journal.layout import (
    COMMITTED,
    LOCK,
    Segment,
    committed_bytes,
    identity_of,
    is_place_of,
    make_identity,
    parse_committed,
    segments,
)
from streamkernel.connectors.journal.lines import JournalEntry, digest_of, parse_line, to_line
from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import SinkError

__all__ = ["JournalWriter", "Refusal"]

# Of a full journal, so that room comes back piece by piece; and what is read in one go when it is opened.
_SEGMENTS, _LARGEST_SEGMENT = 16, 2**26


class Refusal(Enum):
    """Why nothing of a request was appended: there is no room, or an exact entry has the id of another record."""

    FULL = "full"
    OTHER = "other"


class JournalWriter:
    """The one writer of a journal.

    A group is written, made durable, and only then published as committed, so that no reader sees what might be taken
    back. One that fails is taken back as a whole.

    Parameters
    ----------
    folder
        Of the journal; it is made where it is missing.
    max_bytes
        The most bytes that its segments may have. Readers make room by deleting those they are done with.
    remembered_ids
        How many ids are remembered, at least.

    Examples
    --------
    >>> import tempfile
    >>> writer = JournalWriter(Path(tempfile.mkdtemp()), max_bytes=2**24, remembered_ids=100)
    >>> writer.open()
    >>> writer.append([[JournalEntry(b'{"a":1}', "one")], [JournalEntry(b'{"a":1}', "one")]])
    [[True], [False]]
    >>> writer.close()

    """

    def __init__(self, folder: Path, max_bytes: int, remembered_ids: int) -> None:
        self.folder = folder
        self._place = folder.absolute()
        self.max_bytes = max_bytes
        self._segment_bytes = min(max_bytes // _SEGMENTS, _LARGEST_SEGMENT)
        self._remembered = remembered_ids
        self._descriptors: list[int] = []

    def open(self) -> None:
        """Lock the journal, cut off what a killed writer left half written, and publish the rest.

        Raises
        ------
        SinkError
            Where it cannot be written, is damaged, or another process writes it.

        """
        try:
            self._open()
        except (OSError, ValueError) as error:
            self.close()
            reason = os_reason(error) if isinstance(error, OSError) else error
            raise SinkError(f"{self.folder}: the journal cannot be opened for writing: {reason}") from error
        except SinkError:
            self.close()
            raise

    def _open(self) -> None:
        make_folder(self.folder, 0o700)
        self._descriptors = [open_regular(self.folder / LOCK, os.O_RDWR | os.O_CREAT)]
        lock(self._descriptors[0], self.folder)
        if identity_of(self.folder) is None:
            make_identity(self.folder)
        self._watermark = open_regular(self.folder / COMMITTED, os.O_RDWR | os.O_CREAT)
        self._descriptors.append(self._watermark)
        published = parse_committed(os.pread(self._watermark, 64, 0)) or 0
        found = segments(self.folder)
        for one, following in pairwise(found):
            if one.base + one.path.stat().st_size != following.base:
                raise ValueError(f"{one.path.name} does not end where {following.path.name} begins")
        self._active = found[-1] if found else Segment.at(self.folder, published)
        self._first = found[0].base if found else published
        self._file = open_regular(self._active.path, os.O_RDWR | os.O_CREAT)
        self._descriptors.append(self._file)
        self._ids = RecentIds(self._remembered)
        self._ids.load(self.folder, self._active)
        self._own_ids, length = _whole_lines(self._file, published - self._active.base)
        self._ids.add(self._own_ids)
        self.committed = self._active.base + length
        if self.committed < published:
            raise ValueError(f"{self._active.path.name} is shorter than what was committed")
        os.ftruncate(self._file, length)
        os.fsync(self._file)
        sync_folder(self.folder)
        self._publish(self.committed)
        self._torn = False

    @property
    def size(self) -> int:
        """How many bytes the segments have that are still there."""
        found = segments(self.folder)
        self._first = found[0].base if found else self._active.base
        return self.committed - self._first

    def append(self, requests: Sequence[Sequence[JournalEntry]]) -> list[list[bool] | Refusal]:
        """Append a group of requests durably.

        Parameters
        ----------
        requests
            The entries of each, which are taken together or not at all.

        Returns
        -------
        answers
            For each request whether each entry is new, and not a repeat; or why nothing of it was appended.

        Raises
        ------
        OSError
            Where nothing of the group could be made durable; it may be tried again.

        """
        self._require_place()
        self._take_back()
        if self.committed - self._active.base >= self._segment_bytes:
            self._rotate()
        answers: list[list[bool] | Refusal] = []
        lines: list[bytes] = []
        ids: dict[str, str] = {}
        n_bytes = 0
        for request in requests:
            fresh: dict[str, str] = {}
            new = self._new_ones(request, ids, fresh)
            if new is None:
                answers.append(Refusal.OTHER)
                continue
            added = [to_line(entry) for entry, is_new in zip(request, new, strict=True) if is_new]
            size = sum(map(len, added))
            if size and not self._has_room(n_bytes + size):
                answers.append(Refusal.FULL)
                continue
            lines += added
            n_bytes += size
            ids |= fresh
            answers.append(new)
        if lines:
            self._write(b"".join(lines))
            self._own_ids |= ids
            self._ids.add(ids)
        return answers

    def _require_place(self) -> None:
        """Raise OSError where the files that are open are no longer the journal: nobody would read what is appended."""
        if not is_place_of(self._place, self._watermark) or not os.fstat(self._file).st_nlink:
            raise OSError(errno.ESTALE, "it was removed or replaced since: put it back, or start this service again")

    def _new_ones(
        self, request: Sequence[JournalEntry], group: Mapping[str, str], fresh: dict[str, str]
    ) -> list[bool] | None:
        """Return whether each entry of a request is new, and add the ids of those to `fresh`, with their digests.

        None where an exact entry has the id of another record. `group` has the new ids of the requests before.
        """
        new = []
        for entry in request:
            known = None
            if entry.id is not None:
                known = fresh.get(entry.id) or group.get(entry.id) or self._ids.digest(entry.id)
                if known is None:
                    fresh[entry.id] = digest_of(entry.record)
                elif entry.exact and known != digest_of(entry.record):
                    return None
            new.append(known is None)
        return new

    def _has_room(self, n_bytes: int) -> bool:
        # Readers only make room: what was known before is at most too large.
        if self.committed - self._first + n_bytes <= self.max_bytes:
            return True
        return self.size + n_bytes <= self.max_bytes

    def _write(self, data: bytes) -> None:
        """Append bytes, make them durable and publish them; take them back where that fails."""
        at = self.committed - self._active.base
        self._torn = True
        try:
            view = memoryview(data)
            while view:
                written = os.pwrite(self._file, view, at)
                view, at = view[written:], at + written
            os.fdatasync(self._file)
            self._publish(self.committed + len(data))
        except OSError:
            with suppress(OSError):  # it is tried again before the next group
                self._take_back()
            raise
        self.committed += len(data)
        self._torn = False

    def _take_back(self) -> None:
        """Cut off what is not committed, where the last group failed."""
        if self._torn:
            os.ftruncate(self._file, self.committed - self._active.base)
            self._publish(self.committed)
            self._torn = False

    def _publish(self, committed: int) -> None:
        os.pwrite(self._watermark, committed_bytes(committed), 0)

    def _rotate(self) -> None:
        """Begin a new segment, once the ids of this one are kept: from then on a reader may delete it."""
        self._ids.finish(self._active, self._own_ids)
        following = Segment.at(self.folder, self.committed)
        descriptor = open_regular(following.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        try:
            sync_folder(self.folder)
        except OSError:
            os.close(descriptor)
            raise
        os.close(self._file)
        self._descriptors[-1] = self._file = descriptor
        self._active, self._own_ids = following, {}

    def close(self) -> None:
        """Let go of the journal; closing twice does nothing."""
        while self._descriptors:
            os.close(self._descriptors.pop())


def _whole_lines(descriptor: int, published: int) -> tuple[dict[str, str], int]:
    """Return the ids in a segment with the digests of their records, and the length of the lines in it that are whole.

    What was published before stays whatever it holds; after it, a power failure may have left anything.
    """
    data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    ids: dict[str, str] = {}
    length = 0
    for line in data.split(b"\n")[:-1]:  # what is after the last line end is torn
        entry = parse_line(line)
        if length >= published and (entry is None or b"\0" in line):
            break
        length += len(line) + 1
        if entry is not None and entry.id is not None:
            ids[entry.id] = digest_of(entry.record)
    return ids, length
