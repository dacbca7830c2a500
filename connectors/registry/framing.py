"""The wire format of schema registries: a magic byte, the id of the schema, and what the schema encodes."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from streamkernel.connectors.decode import UndecodableError

__all__ = ["HEAD_BYTES", "frame", "message_indexes", "schema_number", "varint_indexes"]

HEAD_BYTES = 5
"""How many bytes stand before the payload, or before the message indexes of Protobuf."""

_HEAD = struct.Struct(">BI")
# No file nests its messages deeper, and none has more of them.
_MOST_INDEXES, _LARGEST_INDEX = 32, 2**16


def schema_number(value: bytes) -> int:
    """Return the id of the schema of a value; raises `UndecodableError` where it is not in the wire format.

    Examples
    --------
    >>> schema_number(bytes.fromhex("00 00 00 00 07") + b"payload")
    7

    """
    if len(value) < HEAD_BYTES or value[0]:
        what = f"has {len(value)} bytes" if len(value) < HEAD_BYTES else f"begins with the byte {value[0]:02x}"
        raise UndecodableError(
            "schema", f"the value {what}, not with the byte 00 and the id of a schema as a schema registry has it"
        )
    number: int = _HEAD.unpack_from(value)[1]
    return number


def frame(number: int) -> bytes:
    """Return what stands before a payload.

    Examples
    --------
    >>> frame(7).hex(" ")
    '00 00 00 00 07'

    """
    return _HEAD.pack(0, number)


def message_indexes(value: bytes) -> tuple[tuple[int, ...], int]:
    """Return the path of a Protobuf message in its file, and where its payload begins.

    The path holds the number of a message among those of the file, then among those nested in it.

    Examples
    --------
    >>> message_indexes(frame(7) + bytes([0]) + b"payload")
    ((0,), 6)
    >>> message_indexes(frame(7) + bytes([4, 2, 0]) + b"payload")
    ((1, 0), 8)

    """
    count, at = _varint(value, HEAD_BYTES)
    if count == 0:
        return (0,), at
    if count > _MOST_INDEXES:
        raise UndecodableError("schema", f"the value names its message by {count} indexes")
    path = []
    for _ in range(count):
        index, at = _varint(value, at)
        path.append(index)
    return tuple(path), at


def varint_indexes(path: Sequence[int]) -> bytes:
    """Return the path of a Protobuf message as it stands after the id.

    Examples
    --------
    >>> varint_indexes([0]), varint_indexes([1, 0])
    (b'\\x00', b'\\x04\\x02\\x00')

    """
    if list(path) == [0]:
        return b"\0"
    return b"".join(_zigzag(number) for number in (len(path), *path))


def _zigzag(number: int) -> bytes:
    number *= 2
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*data, number])


def _varint(value: bytes, at: int) -> tuple[int, int]:
    result = 0
    for shift in (0, 7, 14, 21):
        if at >= len(value):
            raise UndecodableError("schema", "the value ends within the indexes of its message")
        byte = value[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            number = result >> 1 if not result & 1 else -1
            if not 0 <= number <= _LARGEST_INDEX:
                break
            return number, at
    raise UndecodableError("schema", "an index of the value's message is out of range")
