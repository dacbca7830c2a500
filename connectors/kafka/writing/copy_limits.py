"""Keeps lines from copying what their topic refuses, which is counted and logged."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable

from kafka import errors

from streamkernel.connectors.kafka.writing.copied import Copied
from streamkernel.connectors.kafka.writing.line import Line
from streamkernel.connectors.kafka.writing.topic import OutputTopic

__all__ = ["TOO_LARGE", "CopyLimits", "room"]

TOO_LARGE = (errors.MessageSizeTooLargeError, errors.RecordListTooLargeError)
"""How a message is refused as too large."""

_log = logging.getLogger(__name__)

_PAUSE_SECONDS = 60.0
# What Kafka allows by default, and what a message takes in addition to its value and what it copies.
_DEFAULT_BYTES = 2**20
_ABOUT_BYTES = 4096


def room(largest: int | None) -> int:
    """Return how many bytes value and copied parts of a line may have, for a topic with a known or unknown limit.

    Examples
    --------
    >>> room(1_000_000), room(1000), room(None)
    (995904, 500, 1044480)

    """
    return _DEFAULT_BYTES - _ABOUT_BYTES if largest is None else max(largest - _ABOUT_BYTES, largest // 2)


class CopyLimits:
    """What a topic takes of the key, the headers and the timestamp of source messages.

    The topic's settings say that. Where they may not be read, or change later, a refusal says it.

    Parameters
    ----------
    place
        What a log line calls the topic.
    now
        Gives the seconds since 1970.

    """

    def __init__(self, place: str, now: Callable[[], float] = time.time) -> None:
        self._place = place
        self._now = now
        self._topic = OutputTopic("", 0)
        self._refused: set[str] = set()
        self._counts: Counter[str] = Counter()
        self._next = dict.fromkeys(("key", "headers", "timestamp"), -math.inf)

    def set(self, topic: OutputTopic) -> None:
        """Take the settings of the topic."""
        self._topic = topic

    @property
    def largest(self) -> int | None:
        """The longest batch the topic takes, in bytes; None where that is not known, or not yet."""
        return self._topic.largest

    def fit(self, line: Line) -> Line:
        """Return a line without what its topic refuses.

        Examples
        --------
        >>> from streamkernel.connectors.ports import Position
        >>> limits = CopyLimits("topic t")
        >>> limits.set(OutputTopic("c/t/1", 1, null_keys=False))
        >>> limits.fit(Line(b"{}", Position("s", 0, 0), Copied(True, None, (), None))).copied
        Copied(keyed=False, key=None, headers=(), timestamp=None)

        """
        copied = line.copied
        if copied is None:
            return line
        topic = self._topic
        if copied.keyed and copied.key is None and ("key" in self._refused or not topic.null_keys):
            copied = copied._replace(keyed=False)
        if copied.timestamp is not None:
            ahead = copied.timestamp - 1000 * self._now()
            if "timestamp" in self._refused or ahead > topic.ahead or -ahead > topic.behind:
                copied = copied._replace(timestamp=None)
        most = room(topic.largest) - len(line.value)
        if copied.headers and ("headers" in self._refused or copied.size > most):
            copied = copied._replace(headers=())
        if copied.key and copied.size > most:
            copied = copied._replace(keyed=False, key=None)
        return line if copied == line.copied else self._count(line, copied)

    def learns(self, line: Line, error: Exception) -> bool:
        """Note why a line was refused; False where copying less does not help."""
        copied = self.fit(line).copied
        if copied is None:
            return False
        keyless = copied.keyed and copied.key is None
        part = None
        if isinstance(error, TOO_LARGE):
            part = "headers" if copied.headers else None
        elif isinstance(error, errors.InvalidTimestampError | errors.InvalidRecordError):
            # Only the text tells a timestamp from a missing key.
            of_time = copied.timestamp is not None and ("imestamp" in str(error) or not keyless)
            part = "timestamp" if of_time else "key" if keyless else None
        if part is not None:
            self._refused.add(part)
        return part is not None

    def _count(self, line: Line, rest: Copied) -> Line:
        copied = line.copied
        assert copied is not None
        for part, lost in (
            ("key", copied.keyed and not rest.keyed),
            ("headers", copied.headers != rest.headers),
            ("timestamp", copied.timestamp != rest.timestamp),
        ):
            if lost:
                self._note(part, line)
        return line._replace(copied=rest)

    def _note(self, part: str, line: Line) -> None:
        self._counts[part] += 1
        now = self._now()
        if now < self._next[part]:
            return
        self._next[part] = now + _PAUSE_SECONDS
        _log.warning(
            "%s: the topic does not accept the %s of source messages (the last at partition %d, offset %d): %s "
            "lines were written without it so far",
            *(self._place, part, line.position.partition, line.position.offset, f"{self._counts[part]:,}"),
        )
