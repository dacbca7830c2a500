"""A line of a topic: its value, the key and the headers that name its record, and how a checkpoint stores it."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, chain, groupby, pairwise, repeat
from typing import Any, NamedTuple, TypeAlias

from streamkernel.connectors.ports import Position

__all__ = ["Copied", "Line", "LineParts", "Provenance", "pack", "size_of", "unpack"]

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
        size = len(self.key or b"")
        return size + sum(len(name) + len(value) for name, value in self.headers) if self.headers else size


LineParts: TypeAlias = tuple[bytes | None, bytes, bytes, int]
"""What the record of a line consists of: its key, its value, its headers with their lengths, and how many they are."""


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
def _varint(number: int) -> bytes:
    """Return a number as the records of a batch have it."""
    left, written = number << 1 ^ number >> 63, bytearray()
    while left > 127:
        written.append(left & 127 | 128)
        left >>= 7
    return bytes([*written, left])


def _with_length(part: bytes | None) -> bytes:
    return _varint(-1) if part is None else _varint(len(part)) + part


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

    def parts(self, lines: Iterable[Line]) -> Iterator[LineParts]:
        """Yield what the record of each line consists of."""
        known: tuple[str, int] | None = None
        for value, (stream, partition, offset, _), copied in lines:
            if known != (stream, partition):
                known = stream, partition
                prefix, own, common = _in_common(self._writer, stream, partition)
                n_own = len(own) + 1
            number = b"%d" % offset
            headers = common + _with_length(number)
            if copied is None:
                yield prefix + number, value, headers, n_own
                continue
            more = [_with_length(part) for name, one in copied.headers for part in (name.encode(), one)]
            key = copied.key if copied.keyed else prefix + number
            yield key, value, b"".join([*more, headers]), n_own + len(copied.headers)


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
    values, positions, all_copied = zip(*lines, strict=True)
    streams, partitions, offsets, _ = zip(*positions, strict=True)
    copied = [one and (one.keyed, _text(one.key), one.headers, one.timestamp) for one in all_copied]
    columns = [list(map(len, values)), *(_runs(column) for column in (streams, partitions)), offsets, _runs(copied)]
    head = json.dumps(columns, separators=(",", ":"), default=_text).encode()
    return base64.b64encode(zlib.compress(head + b"\n" + b"".join(values), 1)).decode()


def _runs(column: Iterable[Any]) -> list[tuple[Any, int]]:
    """Return each value that is not the one before, and how often it comes."""
    return [(value, len(list(same))) for value, same in groupby(column)]


def unpack(text: str) -> list[Line]:
    """Return the lines of a text from `pack`.

    For any other text, it raises `ArithmeticError`, `AttributeError`, `RecursionError`, `TypeError` or `ValueError`.
    """
    if not text:
        return []
    try:
        head, _, values = zlib.decompress(base64.b64decode(text, validate=True)).partition(b"\n")
    except zlib.error as error:
        raise ValueError(str(error)) from None
    sizes, streams, partitions, offsets, copied = json.loads(head)
    ends = [0, *accumulate(sizes)]
    if ends[-1] != len(values) or min(sizes) < 0:
        raise ValueError("its lines are cut off")
    columns = (chain.from_iterable(repeat(value, n) for value, n in runs) for runs in (streams, partitions, copied))
    return [
        Line(values[begin:end], Position(str(stream), int(partition), int(offset)), _copied(one))
        for (begin, end), stream, partition, one, offset in zip(pairwise(ends), *columns, offsets, strict=True)
    ]


def _copied(one: Any) -> Copied | None:
    if one is None:
        return None
    keyed, key, headers, timestamp = one
    if timestamp is not None and not 0 <= timestamp < 2**63:
        raise ValueError("its timestamp is none of a message")
    return Copied(
        bool(keyed),
        None if key is None else key.encode(*_CODEC),
        tuple((str(name), value.encode(*_CODEC)) for name, value in headers),
        None if timestamp is None else int(timestamp),
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(*_CODEC)
