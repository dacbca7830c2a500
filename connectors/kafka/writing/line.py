"""A line of a topic: its value, the key and the headers that name its record, and how a checkpoint stores it."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from streamkernel.connectors.ports import Position

__all__ = ["Copied", "Line", "Provenance", "pack", "size_of", "unpack", "varint"]

_OVERHEAD_BYTES = 250
_CODEC = ("utf-8", "surrogateescape")


class Copied(NamedTuple):
    """Key (where `keyed`), headers, and timestamp in milliseconds since 1970 or None for the time of sending."""

    keyed: bool
    key: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp: int | None

    @property
    def size(self) -> int:
        """How many bytes key and headers take."""
        return len(self.key or b"") + sum(len(name) + len(value) for name, value in self.headers)


class Line(NamedTuple):
    """The bytes of a line, the position of its record, and what it copies from the message of that record."""

    value: bytes
    position: Position
    copied: Copied | None = None


def size_of(lines: Sequence[Line]) -> int:
    """Return how many bytes of memory lines take, about."""
    sizes = [len(value) if copied is None else len(value) + copied.size for value, _, copied in lines]
    return sum(sizes) + _OVERHEAD_BYTES * len(sizes)


@lru_cache(maxsize=2**14)
def varint(number: int) -> bytes:
    """Return a number as the records of a batch have it."""
    left, written = number << 1 ^ number >> 63, bytearray()
    while left > 127:
        written.append(left & 127 | 128)
        left >>= 7
    return bytes([*written, left])


def _with_length(part: bytes | None) -> bytes:
    return varint(-1) if part is None else varint(len(part)) + part


class Provenance:
    """Makes the keys and the headers of a writer's lines.

    The key is ``b"writer:stream:partition:offset"``, with the first 8 hexadecimal digits of the SHA-256 of the stream.
    No two lines share a key: a compacted topic keeps every line, and a consumer can store lines by their key.

    The writer is one name from a fresh start on, through all restarts.

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
        stream, partition, offset, _ = position
        return b"%b%d" % (_in_common(self._writer, stream, partition)[0], offset)

    def headers(self, position: Position) -> list[tuple[str, bytes]]:
        """Return the headers of the line for a record."""
        stream, partition, offset, _ = position
        return [*_in_common(self._writer, stream, partition)[1], ("source.offset", b"%d" % offset)]

    def record(self, line: Line) -> bytes:
        """Return key, value and headers of a line as a record of a batch has them."""
        value, (stream, partition, offset, _), copied = line
        prefix, headers, common = _in_common(self._writer, stream, partition)
        number, more = b"%d" % offset, b""
        key: bytes | None = prefix + number
        n_headers = len(headers) + 1
        if copied is not None:
            key = copied.key if copied.keyed else key
            n_headers += len(copied.headers)
            more = b"".join(_with_length(part) for name, one in copied.headers for part in (name.encode(), one))
        parts = _with_length(key), _with_length(value), varint(n_headers), more, common, _with_length(number)
        return b"".join(parts)

    def message(self, line: Line) -> dict[str, Any]:
        """Return a line as arguments of ``KafkaProducer.send``."""
        value, position, copied = line
        sent: dict[str, Any] = {"value": value, "key": self.key(position), "headers": self.headers(position)}
        if copied is not None:
            sent["headers"] = [*copied.headers, *self.headers(position)]
            sent["timestamp_ms"] = copied.timestamp
            if copied.keyed:
                sent["key"] = copied.key
        return sent


@lru_cache(maxsize=64)
def _in_common(writer: str, stream: str, partition: int) -> tuple[bytes, list[tuple[str, bytes]], bytes]:
    """Return the beginning of keys, headers, and the bytes of headers that the lines of a partition share."""
    name, by = stream.encode("utf-8", "surrogatepass"), writer.encode()
    prefix = b"%b:%b:%d:" % (by, hashlib.sha256(name).hexdigest()[:8].encode(), partition)
    headers = [("source.stream", name), ("source.partition", b"%d" % partition), ("writer", by)]
    written = [_with_length(key.encode()) + _with_length(value) for key, value in headers]
    return prefix, headers, b"".join([*written, _with_length(b"source.offset")])


def pack(lines: Sequence[Line]) -> str:
    """Return lines as a text for a checkpoint.

    Examples
    --------
    >>> lines = [Line(b"{}", Position("s", 0, 7)), Line(b"!", Position("s", 1, 2), Copied(True, b"k", (), 1500))]
    >>> unpack(pack(lines)) == lines
    True

    """
    if not lines:
        return ""
    rows = [
        (_text(value), position[:3], copied and (copied.keyed, _text(copied.key), copied.headers, copied.timestamp))
        for value, position, copied in lines
    ]
    try:
        text = orjson.dumps(rows, default=_text)
    except TypeError:  # bytes that are not UTF-8
        text = json.dumps(rows, separators=(",", ":"), default=_text).encode()
    return base64.b64encode(zlib.compress(text, 1)).decode()


def unpack(text: str) -> list[Line]:
    """Return the lines of a text from `pack`; raises `ValueError` or `TypeError` where it is none."""
    if not text:
        return []
    try:
        rows: Iterable[Any] = json.loads(zlib.decompress(base64.b64decode(text, validate=True)))
    except zlib.error as error:
        raise ValueError(str(error)) from None
    return [
        Line(value.encode(*_CODEC), Position(str(stream), int(partition), int(offset)), copied and _copied(*copied))
        for value, (stream, partition, offset), copied in rows
    ]


def _copied(keyed: object, key: str | None, headers: Iterable[tuple[object, str]], timestamp: Any) -> Copied:
    return Copied(
        bool(keyed),
        None if key is None else key.encode(*_CODEC),
        tuple((str(name), value.encode(*_CODEC)) for name, value in headers),
        None if timestamp is None else int(timestamp),
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(*_CODEC)
