"""The key and the headers of a line: who wrote it, and for which record."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache

from streamkernel.connectors.ports import Position

__all__ = ["OFFSET", "PARTITION", "STREAM", "WRITER", "Provenance", "origin"]

STREAM, PARTITION, OFFSET, WRITER = "source.stream", "source.partition", "source.offset", "writer"
"""The headers of a line. All are text; the numbers are decimal."""


class Provenance:
    """Makes the keys and the headers of a writer's lines.

    The key is ``b"writer:stream:partition:offset"``, where the stream is shown by the first 8 hexadecimal digits of its
    SHA-256. No two lines share one, whoever writes to the topic and whichever of a daemon's sources the record is of: a
    topic that is compacted keeps every line, and a consumer that stores lines by their key has each once.

    The writer is the same from a fresh start on through all restarts, and nobody else.

    Examples
    --------
    >>> provenance = Provenance("a1b2c3d4")
    >>> provenance.key(Position("cluster/clicks/number", 3, 70))
    b'a1b2c3d4:39feccac:3:70'
    >>> for header in provenance.headers(Position("cluster/clicks/number", 3, 70)):
    ...     print(header)
    ('source.stream', b'cluster/clicks/number')
    ('source.partition', b'3')
    ('writer', b'a1b2c3d4')
    ('source.offset', b'70')

    """

    def __init__(self, writer: str) -> None:
        self._writer = writer

    def key(self, position: Position) -> bytes:
        """Return the key of the line for a record."""
        stream, partition, offset = position
        return b"%b%d" % (_in_common(self._writer, stream, partition)[0], offset)

    def headers(self, position: Position) -> list[tuple[str, bytes]]:
        """Return the headers of the line for a record."""
        stream, partition, offset = position
        return [*_in_common(self._writer, stream, partition)[1], (OFFSET, b"%d" % offset)]


@lru_cache(maxsize=64)
def _in_common(writer: str, stream: str, partition: int) -> tuple[bytes, list[tuple[str, bytes]]]:
    """Return the beginning of the keys, and the headers, that all lines of a partition of a source have."""
    name, by = stream.encode("utf-8", "surrogatepass"), writer.encode()
    prefix = b"%b:%b:%d:" % (by, hashlib.sha256(name).hexdigest()[:8].encode(), partition)
    return prefix, [(STREAM, name), (PARTITION, b"%d" % partition), (WRITER, by)]


def origin(headers: Iterable[tuple[str, bytes | None]], writer: str | None) -> Position | None:
    """Return the position of the record that a line in a topic was written for; None where another one wrote it.

    Anybody may have written headers there. A `writer` of None stands for anybody.

    Examples
    --------
    >>> place = Position("s", 0, 12)
    >>> origin(Provenance("me").headers(place), "me"), origin(Provenance("you").headers(place), "me")
    (Position(stream='s', partition=0, offset=12), None)

    """
    found = dict(headers)
    if writer is not None and found.get(WRITER) != writer.encode():
        return None
    try:
        stream, partition, offset = found[STREAM], found[PARTITION], found[OFFSET]
        assert stream is not None
        return Position(stream.decode("utf-8", "surrogatepass"), int(partition or b""), int(offset or b""))
    except (LookupError, ValueError, AssertionError):
        return None
