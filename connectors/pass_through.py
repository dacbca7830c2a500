"""What passes from a record of a source to the line that is written for it, besides inputs and target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

ColumnType: TypeAlias = Literal["str", "int", "float", "bool", "timestamp"]
"""What the values of a column are read as."""


class PassedColumn(NamedTuple):
    """A column of the source that passes through: its name there, its name in the line, and its type.

    Without a type its values stay as the source has them: text in CSV, any value of JSON in JSON.
    """

    column: str
    name: str
    type: ColumnType | None = None


class SourceMessage(NamedTuple):
    """Key, headers and timestamp (milliseconds since 1970) of the message of Kafka that a record came in."""

    key: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int


class Passed(NamedTuple):
    """The columns of a record that pass through, by their names in the line, and its message where that passes."""

    columns: dict[str, Any]
    message: SourceMessage | None = None


class MessageLine(dict[str, Any]):
    """A line, with the message of the source from which the written one takes over key, headers or timestamp.

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
