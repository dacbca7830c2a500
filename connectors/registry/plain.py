"""Values as JSON has them, of what Avro and Protobuf have beside: bytes, decimals and times."""

from __future__ import annotations

import base64
from typing import Any, Protocol

from streamkernel.connectors.decode import UndecodableError

__all__ = ["MOST_VALUES", "PayloadDecoder", "base64_text", "decimal_number"]

MOST_VALUES = 100_000
"""How many values one record may hold: of empty ones, a few bytes can announce any number."""

# 154 decimal digits: more than any database has.
_LONGEST_DECIMAL = 64


class PayloadDecoder(Protocol):
    """Decodes the values of one schema."""

    def decode(self, value: bytes) -> Any:
        """Return a whole value, with what stands before its payload, as JSON would have it.

        Raises `UndecodableError` where the schema does not fit.
        """

    @property
    def size(self) -> int:
        """How many characters the schema has, with all that it refers to."""


def base64_text(data: bytes) -> str:
    """Return bytes as text, as the JSON of Protobuf has them.

    Examples
    --------
    >>> base64_text(b"\\xff\\x00")
    '/wA='

    """
    return base64.b64encode(data).decode()


def decimal_number(unscaled: bytes, scale: int) -> int | float:
    """Return a decimal number, of a two's-complement integer and the number of digits after the point.

    Examples
    --------
    >>> decimal_number((1250).to_bytes(2, "big"), 2), decimal_number(b"\\xff", 0)
    (12.5, -1)

    """
    if len(unscaled) > _LONGEST_DECIMAL:
        raise UndecodableError("schema", f"a decimal has {len(unscaled):,} bytes, more than {_LONGEST_DECIMAL}")
    number = int.from_bytes(unscaled, "big", signed=True)
    return number if scale == 0 else float(f"{number}e{-scale}")
