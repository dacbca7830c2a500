"""Pass-through columns: values of a record that its output line repeats, in addition to prediction and target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

ColumnType: TypeAlias = Literal["str", "int", "float", "bool", "timestamp"]
"""The type of a column's values."""


class PassedColumn(NamedTuple):
    """A pass-through column: its name in the source, its name in the line, and its type.

    Without a type, values stay as they are in the source: text in CSV, any JSON value in JSON.
    """

    column: str
    name: str
    type: ColumnType | None = None


class SourceMessage(NamedTuple):
    """Key, headers and timestamp (milliseconds since 1970) of a record's Kafka message."""

    key: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int


class Passed(NamedTuple):
    """The pass-through columns of a record by their names in the line, and its message if that passes, too."""

    columns: dict[str, Any]
    message: SourceMessage | None = None


class MessageLine(dict[str, Any]):
    """A line with the source message that gives the written one its key, headers or timestamp.

    Examples
    --------
    >>> line = MessageLine({"prediction": 1}, SourceMessage(b"k", (), 0))
    >>> line, line.message.key
    ({'prediction': 1}, b'k')

    """

    __slots__ = ("message",)

    def __init__(self, line: Mapping[str, Any], message: SourceMessage) -> None:
        super().__init__(line)
        self.message = message
