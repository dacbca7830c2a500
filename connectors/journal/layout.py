"""The files of a journal: segments of JSON lines, its identity, and how far it is committed.

A record is known by its offset, in bytes from the beginning of the first segment that ever was. A segment is called
like the offset it begins at, so the one that holds an offset is found by name, also where older ones were deleted. What
is after the committed offset may be half written or taken back, and is nobody's business but the writer's.
"""

from __future__ import annotations

import json
import os
import re
import uuid
import zlib
from pathlib import Path
from typing import NamedTuple

from streamkernel.connectors.durable import sync_folder
from streamkernel.connectors.file_system import open_regular

__all__ = [
    "COMMITTED",
    "LOCK",
    "Segment",
    "bytes_before",
    "committed_bytes",
    "identity_of",
    "is_place_of",
    "make_identity",
    "parse_committed",
    "segments",
]

COMMITTED, LOCK = "committed", "lock"
_IDENTITY = "journal.json"
_SEGMENT = re.compile(r"(\d{20})\.jsonl")
_COMMITTED = re.compile(rb"(\d{20}) ([0-9a-f]{8})\n")


class Segment(NamedTuple):
    """A segment: the offset it begins at, and its file."""

    base: int
    path: Path

    @classmethod
    def at(cls, folder: Path, base: int) -> Segment:
        """Return the segment that begins at an offset, whether it is there or not.

        Examples
        --------
        >>> Segment.at(Path("journal"), 4096).path.name
        '00000000000000004096.jsonl'

        """
        return cls(base, folder / f"{base:020d}.jsonl")

    @property
    def ids(self) -> Path:
        """The file with the ids of its records, which outlives it."""
        return self.path.with_suffix(".ids")


def segments(folder: Path) -> list[Segment]:
    """Return the segments of a journal, the oldest first; none where there is no such folder."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    found = (_SEGMENT.fullmatch(name) for name in names)
    return sorted(Segment(int(match[1]), folder / match[0]) for match in found if match is not None)


def bytes_before(folder: Path, offset: int, most: int) -> bytes | None:
    """Return the last bytes before an offset, of one segment and at most so many; None where the segment is gone."""
    found = [one for one in segments(folder) if one.base < offset]
    if not found:
        return None
    begin = max(found[-1].base, offset - most)
    descriptor = open_regular(found[-1].path, os.O_RDONLY)
    try:
        return os.pread(descriptor, offset - begin, begin - found[-1].base)
    finally:
        os.close(descriptor)


def identity_of(folder: Path) -> str | None:
    """Return what tells a journal from any other, None where there is no journal yet; ValueError for a damaged one."""
    try:
        text = (folder / _IDENTITY).read_bytes()
    except FileNotFoundError:
        return None
    identity = json.loads(text)["id"]
    if not isinstance(identity, str):
        raise ValueError(text)
    return identity


def make_identity(folder: Path) -> str:
    """Give a new journal its identity, durably, and return it."""
    identity = uuid.uuid4().hex
    aside = folder / f".{_IDENTITY}"
    descriptor = open_regular(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        os.write(descriptor, json.dumps({"id": identity}).encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    aside.rename(folder / _IDENTITY)
    sync_folder(folder)
    return identity


def committed_bytes(offset: int) -> bytes:
    """Return the contents of the file with the committed offset, always of the same length.

    Examples
    --------
    >>> parse_committed(committed_bytes(4096))
    4096

    """
    digits = f"{offset:020d}".encode()
    return b"%s %08x\n" % (digits, zlib.crc32(digits))


def parse_committed(contents: bytes) -> int | None:
    """Return the committed offset; None where it is being written at this moment, or never was."""
    match = _COMMITTED.fullmatch(contents)
    return int(match[1]) if match is not None and int(match[2], 16) == zlib.crc32(match[1]) else None


def is_place_of(folder: Path, watermark: int) -> bool:
    """Return whether the file with the committed offset that is open is the one in a folder."""
    try:
        there = os.stat(folder / COMMITTED)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return os.path.samestat(there, os.fstat(watermark))
