"""Counts the messages within a Protobuf message before it is parsed: two bytes may stand for kilobytes of memory."""

from __future__ import annotations

from typing import Any

from streamkernel.connectors.decode import UndecodableError
from streamkernel.connectors.registry.plain import MOST_VALUES

__all__ = ["MessageCounter"]

# A parsed message takes memory for each field its type has.
_DEEPEST = 100
_DEEPEST_TYPE = 200


class MessageCounter:
    """Bounds what a message of a type may hold: the fields of all messages within it, by their wire format.

    Messages whose type has none within it need no count. Raises `UndecodableError` for types that are too deep within
    one another, before the library recurses through them.
    """

    def __init__(self, message: Any) -> None:
        self._within: dict[str, tuple[int, dict[int, str]]] = {}
        self._name: str = message.full_name
        self._add(message)
        path = [iter(message.fields)]
        while path:
            for field in path[-1]:
                if field.message_type is not None and field.message_type.full_name not in self._within:
                    self._add(field.message_type)
                    path.append(iter(field.message_type.fields))
                    break
            else:
                path.pop()
            if len(path) > _DEEPEST_TYPE:
                raise UndecodableError("nested", f"its types are more than {_DEEPEST_TYPE} within one another")
        self._needed = bool(self._within[self._name][1])
        self._most_fields = max(fields for fields, _ in self._within.values())

    def _add(self, message: Any) -> None:
        inner = {
            field.number: field.message_type.full_name for field in message.fields if field.message_type is not None
        }
        self._within[message.full_name] = len(message.fields) + 1, inner

    def check(self, payload: bytes) -> None:
        """Raise `UndecodableError` where a payload holds too much."""
        if self._needed:
            try:
                self._count(payload, 0, len(payload), self._name, MOST_VALUES, 0)
            except IndexError:
                raise UndecodableError("schema", "the bytes of the Protobuf message end too soon") from None

    def _count(self, data: bytes, at: int, end: int, name: str, left: int, depth: int) -> int:
        """Return how many more values may be there, after the message between two places."""
        fields, inner = self._within[name]
        left -= fields
        if left < 0 or depth > _DEEPEST:
            raise UndecodableError("nested", f"the message holds more than {MOST_VALUES:,} values, or is too deep")
        while at < end:
            tag, at = _varint(data, at)
            kind = tag & 7
            if kind == 0:
                at = _varint(data, at)[1]
            elif kind in (1, 5):
                at += 8 if kind == 1 else 4
            elif kind == 2:
                length, at = _varint(data, at)
                if length > end - at:
                    raise IndexError
                below = inner.get(tag >> 3)
                if below is not None:
                    left = self._count(data, at, at + length, below, left, depth + 1)
                at += length
            else:
                # A group, with which nobody writes any more: the parser takes those it knows, at a byte each.
                left -= self._most_fields
                if left < 0:
                    raise UndecodableError("nested", f"the message holds more than {MOST_VALUES:,} values")
        return left


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7
        if shift > 63:
            raise UndecodableError("schema", "a number in the Protobuf message has more than 10 bytes")
