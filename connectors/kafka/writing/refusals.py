"""Keeps lines from taking over what their topic refuses, which is counted and logged."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable

from streamkernel.connectors.kafka.writing.backlog import Backlog
from streamkernel.connectors.kafka.writing.session import Line, Refused
from streamkernel.connectors.kafka.writing.taken_over import TakenOver

__all__ = ["Refusals", "room"]

_log = logging.getLogger(__name__)

_PAUSE_SECONDS = 60.0
# What Kafka allows by default, and what a message takes besides its value and what it takes over.
_DEFAULT_BYTES = 2**20
_ABOUT_BYTES = 4096


def room(largest: int | None) -> int:
    """Return how many bytes a line may have, with what it takes over, in a topic of which the limit may be hidden.

    Examples
    --------
    >>> room(1_000_000), room(1000), room(None)
    (995904, 500, 1044480)

    """
    return _DEFAULT_BYTES - _ABOUT_BYTES if largest is None else max(largest - _ABOUT_BYTES, largest // 2)


class Refusals:
    """What a topic has refused of the messages of the source: later lines do not take it over.

    The limits of a topic may be hidden from its writers, and change at any time, so they are learned from its refusals.

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
        self._null_keys = True
        self._most_ahead = self._most_behind = math.inf  # milliseconds
        self._counts: Counter[str] = Counter()
        self._next = dict.fromkeys(("key", "headers", "timestamp"), -math.inf)

    def fitted(self, line: Line, largest: int | None) -> Line:
        """Return a line without what its topic is known to refuse; `largest` is the longest batch it takes."""
        taken = line.taken
        if taken is None:
            return line
        if taken.keyed and taken.key is None and not self._null_keys:
            taken = taken._replace(keyed=False)
        if taken.timestamp is not None and self._out_of_bounds(taken.timestamp):
            taken = taken._replace(timestamp=None)
        most = room(largest) - len(line.value)
        if line.beside > most:
            while taken.size > most and (shorter := taken.shorter()) is not None:
                taken = shorter
        return line if taken is line.taken else self._reduced(line, taken)

    def meet(self, refused: Refused, backlog: Backlog, explain: Callable[[Exception, Line], Exception]) -> None:
        """Take from the lines of a backlog what the topic refuses: of the one refused, and of those that were with it.

        `explain` says what the failure of a line means.
        """
        queue, sent = backlog.queue, backlog.sent
        if queue and queue[0] is refused.line:
            queue[0] = self._learn(refused)
        for place, (line, receipt) in enumerate(sent):
            cause = None if receipt.exception is None else explain(receipt.exception, line)
            if isinstance(cause, Refused):
                sent[place] = self._learn(cause), receipt

    def _learn(self, refused: Refused) -> Line:
        """Learn from a line that was refused, and return it as it goes out."""
        line, rest = refused.line, refused.rest
        taken = line.taken
        assert taken is not None
        if taken.timestamp is not None and rest.timestamp is None:
            ahead = taken.timestamp - 1000 * self._now()
            if ahead > 0:
                self._most_ahead = min(self._most_ahead, ahead)
            else:
                self._most_behind = min(self._most_behind, -ahead)
        if taken.keyed and taken.key is None and not rest.keyed:
            self._null_keys = False
        return self._reduced(line, rest)

    def _reduced(self, line: Line, rest: TakenOver) -> Line:
        taken = line.taken
        assert taken is not None
        for part, lost in (
            ("key", taken.keyed and not rest.keyed),
            ("headers", taken.headers != rest.headers),
            ("timestamp", taken.timestamp != rest.timestamp),
        ):
            if lost:
                self._note(part, line)
        return line._replace(taken=rest)

    def _out_of_bounds(self, timestamp: int) -> bool:
        ahead = timestamp - 1000 * self._now()
        return ahead >= self._most_ahead or -ahead >= self._most_behind

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
