"""What a written message takes over from the message of the source: its key, its headers, its timestamp."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from kafka import errors

from streamkernel.connectors.kafka.writing.provenance import OFFSET, PARTITION, STREAM, WRITER
from streamkernel.connectors.pass_through import MessageLine, SourceMessage

__all__ = ["TOO_LARGE", "KeyOf", "Passing", "TakeOver", "TakenOver", "take_over"]

TOO_LARGE = (errors.MessageSizeTooLargeError, errors.RecordListTooLargeError)
"""How a message is refused as too large."""

KeyOf: TypeAlias = Literal["position", "source"]
"""What the key of a message is: that of `provenance`, or the one in the source."""

Passing: TypeAlias = Literal["headers", "timestamp"]
"""What else a message takes over."""

_OWN = frozenset({STREAM, PARTITION, OFFSET, WRITER})


class TakenOver(NamedTuple):
    """Key (where `keyed`), headers, and timestamp in milliseconds since 1970 or None for the time of sending."""

    keyed: bool
    key: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp: int | None

    @property
    def size(self) -> int:
        """How many bytes key and headers take."""
        return len(self.key or b"") + sum(len(name) + len(value) for name, value in self.headers)

    def without_refused(self, error: Exception) -> TakenOver | None:
        """Return what may still pass where the topic refused the message with an error; None where nothing helps.

        Examples
        --------
        >>> taken = TakenOver(True, None, (), 1500)
        >>> taken.without_refused(errors.InvalidTimestampError())
        TakenOver(keyed=True, key=None, headers=(), timestamp=None)
        >>> taken.without_refused(errors.InvalidRecordError("Compacted topic cannot accept message without key"))
        TakenOver(keyed=False, key=None, headers=(), timestamp=1500)

        """
        if isinstance(error, TOO_LARGE):
            return self.shorter()
        if not isinstance(error, errors.InvalidTimestampError | errors.InvalidRecordError):
            return None
        keyless = self.keyed and self.key is None
        # Of several messages with such timestamps in one batch, only the text of the error tells.
        if self.timestamp is not None and ("imestamp" in str(error) or not keyless):
            return self._replace(timestamp=None)
        return self._replace(keyed=False) if keyless else None

    def shorter(self) -> TakenOver | None:
        """Return what is left without the headers, or else without the key; None where there are neither."""
        if self.headers:
            return self._replace(headers=())
        return self._replace(keyed=False, key=None) if self.key else None


class TakeOver:
    """Says what a line takes over from the message of its record: None where nothing of it passes."""

    def __init__(self, key: KeyOf = "position", passing: Collection[Passing] = ()) -> None:
        self._key: KeyOf = key
        self._passing = frozenset(passing)

    def __call__(self, line: Mapping[str, Any]) -> TakenOver | None:
        return take_over(line.message, self._key, self._passing) if isinstance(line, MessageLine) else None


def take_over(message: SourceMessage, key: KeyOf, passing: Collection[Passing]) -> TakenOver:
    """Return what is taken over from a message.

    Headers by which lines are known again are not: they say which record a line is for. Kafka's client writes no header
    without a value, it becomes an empty one.

    Examples
    --------
    >>> message = SourceMessage(b"k", (("trace", b"1"), ("writer", b"me"), ("empty", None)), 1500)
    >>> take_over(message, "source", ["headers"])
    TakenOver(keyed=True, key=b'k', headers=(('trace', b'1'), ('empty', b'')), timestamp=None)

    """
    headers = message.headers if "headers" in passing else ()
    return TakenOver(
        key == "source",
        message.key if key == "source" else None,
        tuple((name, value or b"") for name, value in headers if name not in _OWN),
        message.timestamp if "timestamp" in passing and message.timestamp >= 0 else None,
    )
