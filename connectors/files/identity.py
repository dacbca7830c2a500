"""The identity of a file: a hash of its beginning, and one of the bytes just before a place in it.

Both are hashes of bytes that stand before the place, so they depend neither on how far the file has grown nor on how it
was read, and two runs give the same record the same name.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode, b64encode
from typing import NamedTuple, Self

HEAD_BYTES = 4096
# Files of one program have one header, which may be longer than that: the head reaches into the records after it.
BEHIND_FIRST_LINE = 2048
LONGEST_FIRST_LINE = 2**20
LONGEST_HEAD = LONGEST_FIRST_LINE + BEHIND_FIRST_LINE
TAIL_BYTES = 4096

_IDENTITY = r"\d{1,7}:[0-9a-f]{64}"
_PLACE = re.compile(
    rf"({_IDENTITY})(?:;tail=({_IDENTITY}))?(;unended)?(?:;inode=(\d{{1,20}}))?(?:;header=([A-Za-z0-9+/]+={{0,2}}))?",
    re.ASCII,
)


def identity(data: bytes | bytearray) -> str:
    """Return the length of some bytes, and their SHA-256.

    Examples
    --------
    >>> identity(b"x,y")[:12]
    '3:968e772cf1'

    """
    return f"{len(data)}:{hashlib.sha256(data).hexdigest()}"


class FilePlace(NamedTuple):
    """A place in a file as `Position.stream` names it.

    Parameters
    ----------
    head
        The identity of the first bytes.
    tail
        That of the last bytes before the place, at most 4096; None at the beginning, and where nobody is to go on.
    unended
        Whether the record before the place is the last line of a file, which had no line end when it was read.
    inode
        The number of a followed file in its directory: it tells which of two files that began alike was read.
    header
        The header of the records, where the file does not begin with it: it was truncated after it was copied.

    """

    head: str
    tail: str | None = None
    unended: bool = False
    inode: int | None = None
    header: bytes | None = None

    @classmethod
    def parse(cls, stream: str) -> Self | None:
        """Read what `str` gives; None for the name of anything but a file.

        Examples
        --------
        >>> place = FilePlace(identity(b"x,y"), identity(b"y"), unended=True, inode=12, header=b"x,y")
        >>> FilePlace.parse(str(place)) == place, FilePlace.parse("synth.SEA{}")
        (True, None)

        """
        match = _PLACE.fullmatch(stream)
        if match is None:
            return None
        head, tail, unended, inode, header = match.groups()
        try:
            raw = None if header is None else b64decode(header, validate=True)
        except ValueError:
            return None
        place = cls(head, tail, unended is not None, None if inode is None else int(inode), raw)
        return place if place.head_length <= LONGEST_HEAD and place.tail_length <= TAIL_BYTES else None

    def __str__(self) -> str:
        tail = "" if self.tail is None else f";tail={self.tail}"
        inode = "" if self.inode is None else f";inode={self.inode}"
        header = "" if self.header is None else f";header={b64encode(self.header).decode()}"
        return self.head + tail + (";unended" if self.unended else "") + inode + header

    @property
    def head_length(self) -> int:
        """How many bytes the head covers."""
        return int(self.head.partition(":")[0])

    @property
    def tail_length(self) -> int:
        """How many bytes the tail covers."""
        return 0 if self.tail is None else int(self.tail.partition(":")[0])


class Head:
    """The first bytes of a file, as far as they were read, and the identities they give.

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
        self._length: int | None = None
        self._whole = ""
        self.add(data)

    @property
    def data(self) -> bytes:
        """The bytes that are known of it."""
        return bytes(self._data)

    def add(self, block: bytes) -> None:
        """Add what follows, as far as it belongs to the head."""
        if self._whole:
            return
        known = len(self._data)
        self._data += block[: LONGEST_HEAD - known]
        if self._length is None:
            end = self._data.find(b"\n", known, LONGEST_FIRST_LINE) + 1
            if end or len(self._data) >= LONGEST_FIRST_LINE:
                self._length = max(HEAD_BYTES, (end or LONGEST_FIRST_LINE) + BEHIND_FIRST_LINE)
        if self._length is not None and len(self._data) >= self._length:
            del self._data[self._length :]
            self._whole = identity(self._data)

    def identity_at(self, offset: int) -> str:
        """Return the identity at `offset`, which was read already: of all bytes before it, or of the whole head."""
        if self._whole and offset >= len(self._data):
            return self._whole
        return identity(self._data[:offset])
