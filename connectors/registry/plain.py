"""JSON forms of bytes and decimals, which Avro and Protobuf have and JSON has not."""

from __future__ import annotations

import base64
from typing import Any, Protocol

__all__ = ["PayloadDecoder", "base64_text", "decimal_number"]


class PayloadDecoder(Protocol):
    """A decoder of the values of one schema."""

    def decode(self, value: bytes) -> Any:
        """Return a whole value, with its frame, as JSON would have it.

        Raises `UndecodableError` if the bytes do not fit the schema.
        """


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
