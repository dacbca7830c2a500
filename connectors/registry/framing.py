"""The wire format of schema registries: a zero byte, the schema's id, the indexes of a Protobuf message, the value."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from streamkernel.connectors.decode import UndecodableError

__all__ = ["HEAD_BYTES", "frame", "message_indexes", "schema_number", "varint_indexes"]

HEAD_BYTES = 5
"""The length of the zero byte and the id."""

_HEAD = struct.Struct(">BI")
_MOST_INDEXES = 32


def schema_number(value: bytes) -> int:
    """Return the id of the schema of a value; raises `UndecodableError` if the value has another format.

    Examples
    --------
    >>> schema_number(bytes.fromhex("00 00 00 00 07") + b"payload")
    7

    """
    if len(value) < HEAD_BYTES or value[0]:
        what = f"has {len(value)} bytes" if len(value) < HEAD_BYTES else f"begins with the byte {value[0]:02x}"
        raise UndecodableError("schema", f"the value {what}, not with the byte 00 and a schema id of a registry")
    number: int = _HEAD.unpack_from(value)[1]
    return number


def frame(number: int) -> bytes:
    """Return the bytes before a payload.

    Examples
    --------
    >>> frame(7).hex(" ")
    '00 00 00 00 07'

    """
    return _HEAD.pack(0, number)


def message_indexes(value: bytes) -> tuple[tuple[int, ...], int]:
    """Return the path of a Protobuf message in its file, and where its payload begins.

    The path holds the message's index in the file, then the index in each message around it.

    Examples
    --------
    >>> message_indexes(frame(7) + bytes([0]) + b"payload")
    ((0,), 6)
    >>> message_indexes(frame(7) + bytes([4, 2, 0]) + b"payload")
    ((1, 0), 8)

    """
    count, at = _zigzag_number(value, HEAD_BYTES)
    if count == 0:
        return (0,), at
    if not 0 < count <= _MOST_INDEXES:
        raise UndecodableError("schema", f"the value names its message by {count} indexes")
    path = []
    for _ in range(count):
        index, at = _zigzag_number(value, at)
        path.append(index)
    return tuple(path), at


def varint_indexes(path: Sequence[int]) -> bytes:
    """Return the path of a Protobuf message as bytes.

    Examples
    --------
    >>> varint_indexes([0]), varint_indexes([1, 0])
    (b'\\x00', b'\\x04\\x02\\x00')

    """
    data = bytearray()
    for number in [0] if list(path) == [0] else [len(path), *path]:
        left = 2 * number
        while left > 0x7F:
            data.append(left & 0x7F | 0x80)
            left >>= 7
        data.append(left)
    return bytes(data)


def _zigzag_number(value: bytes, at: int) -> tuple[int, int]:
    result = 0
    for place, byte in enumerate(value[at : at + 5]):
        result |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            if result & 1:
                raise UndecodableError("schema", "the value has a negative index of its message")
            return result >> 1, at + place + 1
    raise UndecodableError("schema", "the value ends within the indexes of its message")
