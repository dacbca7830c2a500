"""A place in a file as a checkpoint stores it, and the check that a file is the one in which it was taken.

A file is known by a hash of its first bytes and one of the bytes just before the place. Both depend only on bytes
before the place. So two runs give the same record the same name, however far the file has grown.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, Self

from pydantic import TypeAdapter

from streamkernel.connectors.decode import shown
from streamkernel.connectors.files.bytes import File
from streamkernel.connectors.ports import Position, SourceError

HEAD_BYTES = 4096
# Files of one program have one header, which may be longer than that: the head reaches into the records after it.
AFTER_FIRST_LINE = 2048
LONGEST_FIRST_LINE = 2**20
LONGEST_HEAD = LONGEST_FIRST_LINE + AFTER_FIRST_LINE
TAIL_BYTES = 4096

_IDENTITY = re.compile(r"\d{1,7}:[0-9a-f]{64}", re.ASCII)
_LINE_BYTES = 200
_BLOCK_BYTES = 2**20


def identity(data: bytes | bytearray) -> str:
    """Return the length of some bytes, and their SHA-256.

    Examples
    --------
    >>> identity(b"x,y")[:12]
    '3:968e772cf1'

    """
    return f"{len(data)}:{hashlib.sha256(data).hexdigest()}"


class FinishedFile(NamedTuple):
    """A file that was read to its end: when it was modified, in ns since 1970, its path, and its size in bytes."""

    modified: int
    path: str
    size: int


@dataclass(frozen=True)
class FileOrder:
    """The files of a source that are chosen, in their order.

    Parameters
    ----------
    files
        Their paths.
    first
        The number of the first of them; those before are finished.
    columns
        The names of the columns that the files have, in the order of the first file; None: there are none.
    reordered
        Whether a file had the columns in another order.
    finished
        Of a directory that is watched, the files that were finished last.
    watermark
        When the newest of the finished files was modified that are not known by name any more, and its path; None:
        all are.

    """

    files: tuple[str, ...] = ()
    first: int = 0
    columns: tuple[str, ...] | None = None
    reordered: bool = False
    finished: tuple[FinishedFile, ...] = ()
    watermark: tuple[int, str] | None = None

    @property
    def end(self) -> int:
        """The number after that of the last file."""
        return self.first + len(self.files)


@dataclass(frozen=True)
class FilePlace:
    """What a checkpoint knows of a place in a file, in addition to the identity of the file's first bytes.

    It is `Position.known`, as JSON without what is the default.

    Parameters
    ----------
    tail
        The identity of the last bytes before the place, at most 4096; empty where there are none.
    unended
        Whether the record before the place is the last line of a file, which had no line end when it was read.
    inode
        The number of a followed file in its directory: it tells which of two files that began alike was read.
    header
        The header of the records, as Latin-1, where the file does not begin with it: it was truncated after it was
        copied.
    order
        The order of several files; None: there is only one.
    at_end
        Whether the one of several files was read to its end.

    Examples
    --------
    >>> place = FilePlace(inode=12, order=FileOrder(("a.csv", "b.csv")))
    >>> place.known
    {'inode': 12, 'order': {'files': ['a.csv', 'b.csv']}}
    >>> FilePlace.of(Position("", 0, 0, place.known)) == place, FilePlace.of(Position("synth.SEA{}", 0, 0))
    (True, None)

    """

    tail: str = ""
    unended: bool = False
    inode: int | None = None
    header: str | None = None
    order: FileOrder | None = None
    at_end: bool = False

    @classmethod
    def of(cls, position: Position) -> Self | None:
        """Return the place of a position; None where it was not taken from a file."""
        try:
            place: Self = _PLACE.validate_python(position.known or {})
        except ValueError:
            return None
        known = _IDENTITY.fullmatch(position.stream) and _IDENTITY.fullmatch(place.tail or position.stream)
        return place if known or (place.order is not None and not position.stream) else None

    @property
    def known(self) -> Mapping[str, Any] | None:
        """The place as `Position.known` has it."""
        return _PLACE.dump_python(self, mode="json", exclude_defaults=True) or None


_PLACE: TypeAdapter[Any] = TypeAdapter(FilePlace)


class Head:
    """The first bytes that were read of a file, and the identities they give.

    It begins with the bytes up to where reading begins, or the first `LONGEST_HEAD` of them.

    Examples
    --------
    >>> head = Head()
    >>> for _ in range(1000):
    ...     head.add(b"1,2,3,4\\n")
    >>> [head.identity_at(offset).partition(":")[0] for offset in (0, 8, 4088, 4096, 8000)]
    ['0', '8', '4088', '4096', '4096']

    """

    def __init__(self, data: bytes = b"") -> None:
        self._data = bytearray()
        self._length = LONGEST_HEAD
        self._whole = ""
        self.add(data)

    @property
    def data(self) -> bytes:
        """The bytes that are known of it."""
        return bytes(self._data)

    def add(self, block: bytes) -> None:
        """Add the bytes that follow, up to the end of the head."""
        if self._whole:
            return
        known = len(self._data)
        self._data += block[: LONGEST_HEAD - known]
        end = self._data.find(b"\n", known, LONGEST_FIRST_LINE) + 1
        if end and self._length == LONGEST_HEAD:
            self._length = max(HEAD_BYTES, end + AFTER_FIRST_LINE)
        if len(self._data) >= self._length:
            del self._data[self._length :]
            self._whole = identity(self._data)

    def identity_at(self, offset: int) -> str:
        """Return the identity at `offset`, which was read already: of all bytes before it, or of the whole head."""
        if self._whole and offset >= len(self._data):
            return self._whole
        return identity(self._data[:offset])


def matches(file: File, position: Position) -> bool:
    """Return whether this is the file, and still as long, in which `position` was taken."""
    place = FilePlace.of(position)
    return place is not None and _difference(file, position, place) is None


def repeats(file: File, head: bytes) -> bool | None:
    """Return whether a file repeats another one that began with `head`; None: not known yet.

    A first line in common does not count: it may be a header.
    """
    beginning = file.read_at(0, len(head)).rstrip(b"\0")
    whole_lines = zip(head.split(b"\n")[:-1], beginning.split(b"\n")[:-1], strict=False)
    if beginning == head or [one == other for one, other in islice(whole_lines, 2)] == [True, True]:
        return True
    return None if head.startswith(beginning) else False


def holds_end(file: File, end: bytes) -> bool:
    """Return whether a file has, anywhere, the last whole lines that were read of another: two or more.

    Line ends do not count: a program that changes them writes the same lines again.
    """
    lines = end.replace(b"\r\n", b"\n").split(b"\n")[1:-1]  # the first may be cut, the last may have no end yet
    if len(lines) < 2:
        return False
    wanted, at, before = b"\n".join(lines), 0, b""
    while block := file.read(at, _BLOCK_BYTES):
        at += len(block)
        before += block
        if wanted in before.replace(b"\r\n", b"\n"):
            return True
        before = before[-2 * len(wanted) :]
    return False


def resume_offset(file: File, position: Position) -> int:
    """Return the offset to continue at: the position, or after a line end that was missing when it was taken.

    Raises SourceError, saying why, where the file does not match the position, or its last line was learned as it stood
    at the end of the file and has grown since.
    """
    place = FilePlace.of(position)
    if place is None or not position.stream:
        raise SourceError(
            f"{file.path}: the position to resume at was not taken from a file ({position.stream:.200}): "
            "use the source it came from, or start over with --fresh"
        )
    difference = _difference(file, position, place)
    if difference is not None:
        raise SourceError(f"{file.path}: {difference}: put the old file back, or start over with --fresh")
    return _after_line_end(file, position.offset) if place.unended else position.offset


def _difference(file: File, position: Position, place: FilePlace) -> str | None:
    offset = position.offset
    head_length, tail_length = (int("0" + one.partition(":")[0]) for one in (position.stream, place.tail))
    head = file.read_at(0, head_length)
    if len(head) == head_length and identity(head) != position.stream:
        return f"the file was replaced since the checkpoint, its first {len(head):,} bytes differ"
    wanted = min(offset, tail_length or 1)
    tail = file.read_before(offset, wanted)
    if len(head) < head_length or len(tail) < wanted:
        return (
            f"the file is shorter than the position to resume at, {offset:,} bytes; "
            "it was truncated or replaced since the checkpoint"
        )
    if place.tail and identity(tail) != place.tail:
        return (
            "the file was replaced since the checkpoint, "
            f"its {tail_length:,} bytes before byte {offset:,}, where reading continues, differ"
        )
    return None


def _after_line_end(file: File, offset: int) -> int:
    """Return the offset after the line end at `offset`, where one came since; SourceError where more of the line."""
    following = file.read_at(offset, 2)
    for end in (b"\n", b"\r\n"):
        if following.startswith(end):
            return offset + len(end)
    if following in (b"", b"\r"):
        return offset
    before = file.read_before(offset, _LINE_BYTES).rpartition(b"\n")[2]
    line = before + file.read_at(offset, _LINE_BYTES).partition(b"\n")[0]
    raise SourceError(
        f"{file.path}: the last line was learned without its line end, as {_text(before)}, and is now "
        f"{_text(line)}: add a line end at byte {offset:,}, or start over with --fresh (with follow: true, the "
        "daemon reads a line only with its line end)"
    )


def _text(line: bytes) -> str:
    return shown(line.decode("utf-8", "replace").rstrip("\r"))
