"""The wire format of schema registries, and the JSON form of bytes and decimals."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Sequence

from streamkernel.connectors.decode import UndecodableError

__all__ = ["HEAD_BYTES", "base64_text", "decimal_number", "frame", "message_head", "schema_number"]

HEAD_BYTES = 5
"""The length of the zero byte and the id."""

_HEAD = struct.Struct(">BI")


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


def message_head(path: Sequence[int]) -> bytes:
    """Return the bytes between the id and a Protobuf message: its index in the file, after those around it.

    Examples
    --------
    >>> message_head([0]), message_head([1, 0]), message_head([64])
    (b'\\x00', b'\\x04\\x02\\x00', b'\\x02\\x80\\x01')

    """
    return b"\0" if list(path) == [0] else bytes(byte for number in (len(path), *path) for byte in _varint(2 * number))


def _varint(number: int) -> Iterator[int]:
    while number > 0x7F:
        yield number & 0x7F | 0x80
        number >>= 7
    yield number


def base64_text(data: bytes) -> str:
    """Return bytes as base64 text, as Protobuf's JSON does.

    Examples
    --------
    >>> base64_text(b"\\xff\\x00")
    '/wA='

    """
    return base64.b64encode(data).decode()


def decimal_number(unscaled: bytes, scale: int) -> int | float:
    """Return a decimal as a number, from its two's-complement integer and its digits after the point.

    Examples
    --------
    >>> decimal_number((1250).to_bytes(2, "big"), 2), decimal_number(b"\\xff", 0)
    (12.5, -1)

    """
    number = int.from_bytes(unscaled, "big", signed=True)
    return number if scale == 0 else float(f"{number}e{-scale}")
