"""Copies from the message of the source to the message of a line, as far as the topic accepts that."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Collection
from typing import Literal, TypeAlias

from streamkernel.connectors.kafka.writing.line import Copied, Line
from streamkernel.connectors.kafka.writing.topic import OutputTopic
from streamkernel.connectors.pass_through import SourceMessage

__all__ = ["CopyLimits", "KeyOf", "Passing", "copied", "room"]

KeyOf: TypeAlias = Literal["position", "source"]
"""The key of a message: one made of the position of its record, or the key in the source."""

Passing: TypeAlias = Literal["headers", "timestamp"]
"""What else a message copies."""

_log = logging.getLogger(__name__)

# They name the record of a line: those of the source would name another one.
_OWN = frozenset({"source.stream", "source.partition", "source.offset", "writer"})
_PAUSE_SECONDS = 60.0
# The default limit of Kafka, and what a message takes in addition to its value and its copied parts.
_DEFAULT_BYTES = 2**20
_ABOUT_BYTES = 4096


def copied(message: SourceMessage | None, keyed: bool, passing: Collection[Passing]) -> Copied | None:
    """Return what a line copies from the message of its record; None if it has none.

    Kafka's client writes no header without a value: such a header becomes an empty one.

    Examples
    --------
    >>> message = SourceMessage(b"k", (("trace", b"1"), ("writer", b"me"), ("empty", None)), 1500)
    >>> copied(message, keyed=True, passing=["headers"])
    Copied(keyed=True, key=b'k', headers=(('trace', b'1'), ('empty', b'')), timestamp=None)

    """
    if message is None:
        return None
    own: tuple[tuple[str, bytes], ...] = ()
    if message.headers and "headers" in passing:
        own = tuple((name, value or b"") for name, value in message.headers if name not in _OWN)
    timestamp = message.timestamp if "timestamp" in passing and message.timestamp >= 0 else None
    return Copied(keyed, message.key if keyed else None, own, timestamp)


def room(largest: int | None) -> int:
    """Return how many bytes value and copied parts of a line may have, for a topic with a known or unknown limit.

    Examples
    --------
    >>> room(1_000_000), room(1000), room(None)
    (995904, 500, 1044480)

    """
    return _DEFAULT_BYTES - _ABOUT_BYTES if largest is None else max(largest - _ABOUT_BYTES, largest // 2)


class CopyLimits:
    """Leaves out of lines what the settings of their topic refuse, and logs how often.

    Parameters
    ----------
    place
        The topic in a log line.

    Attributes
    ----------
    topic
        The settings of the topic.

    Examples
    --------
    >>> from streamkernel.connectors.ports import Position
    >>> limits = CopyLimits("topic t")
    >>> limits.topic = OutputTopic("c/t/1", 1, null_keys=False)
    >>> limits.fit(Line(b"{}", Position("s", 0, 0), Copied(True, None, (), None))).copied
    Copied(keyed=False, key=None, headers=(), timestamp=None)

    """

    def __init__(self, place: str) -> None:
        self.topic = OutputTopic("", 0)
        self._place = place
        self._counts: Counter[str] = Counter()
        self._next: dict[str, float] = {}

    def fit(self, line: Line) -> Line:
        """Return a line without what its topic refuses."""
        copied, topic = line.copied, self.topic
        if copied is None:
            return line
        if copied.keyed and copied.key is None and not topic.null_keys:
            copied = self._without("key", line, copied._replace(keyed=False))
        at = copied.timestamp
        if at is not None and not -topic.behind <= at - 1000 * time.time() <= topic.ahead:
            copied = self._without("timestamp", line, copied._replace(timestamp=None))
        most = room(topic.largest) - len(line.value) if copied.key or copied.headers else 0
        if copied.headers and copied.size > most:
            copied = self._without("headers", line, copied._replace(headers=()))
        if copied.key and copied.size > most:
            copied = self._without("key", line, copied._replace(keyed=False, key=None))
        return line if copied is line.copied else line._replace(copied=copied)

    def _without(self, part: str, line: Line, rest: Copied) -> Copied:
        """Count a part that is left out, log it now and then, and return the rest."""
        self._counts[part] += 1
        now = time.time()
        if now >= self._next.get(part, -math.inf):
            self._next[part] = now + _PAUSE_SECONDS
            _log.warning(
                "%s: the topic does not accept the %s of source messages (the last at partition %d, offset %d): %s "
                "lines were written without it so far",
                *(self._place, part, line.position.partition, line.position.offset, f"{self._counts[part]:,}"),
            )
        return rest
