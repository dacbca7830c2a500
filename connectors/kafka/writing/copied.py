"""What a written message copies from the message of the source: its key, its headers, its timestamp."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from streamkernel.connectors.pass_through import MessageLine

__all__ = ["Copied", "Copier", "KeyOf", "Passing"]

KeyOf: TypeAlias = Literal["position", "source"]
"""The key of a message: one made of the position of its record, or the key in the source."""

Passing: TypeAlias = Literal["headers", "timestamp"]
"""What else a message copies."""

# They name the record of a line: those of the source would name another one.
_OWN = frozenset({"source.stream", "source.partition", "source.offset", "writer"})


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


class Copier:
    """Copies from the message of a line's record; None where nothing is copied.

    Kafka's client writes no header without a value: such a header becomes an empty one.

    Examples
    --------
    >>> from streamkernel.connectors.pass_through import SourceMessage
    >>> message = SourceMessage(b"k", (("trace", b"1"), ("writer", b"me"), ("empty", None)), 1500)
    >>> Copier("source", ["headers"])(MessageLine({}, message))
    Copied(keyed=True, key=b'k', headers=(('trace', b'1'), ('empty', b'')), timestamp=None)

    """

    def __init__(self, key: KeyOf = "position", passing: Collection[Passing] = ()) -> None:
        self._keyed = key == "source"
        self._passing = frozenset(passing)

    def __call__(self, line: Mapping[str, Any]) -> Copied | None:
        if not isinstance(line, MessageLine):
            return None
        message = line.message
        headers = message.headers if "headers" in self._passing else ()
        return Copied(
            self._keyed,
            message.key if self._keyed else None,
            tuple((name, value or b"") for name, value in headers if name not in _OWN),
            message.timestamp if "timestamp" in self._passing and message.timestamp >= 0 else None,
        )
