"""The log of the HTTP server: what clients do wrong must not fill a disk."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable

__all__ = ["RateLimit", "held_back", "limited_logger"]

_PAUSE_SECONDS = 60.0


class RateLimit(logging.Filter):
    """Filter that passes each kind of message once in so many seconds, with the number of those it held back.

    A kind is the text before its arguments are put in, so that clients cannot make up new ones.

    Examples
    --------
    >>> limit = RateLimit()
    >>> records = [logging.makeLogRecord({"msg": "%d is bad", "args": (number,)}) for number in range(3)]
    >>> [limit.filter(record) for record in records]
    [True, False, False]

    """

    def __init__(self, seconds: float = _PAUSE_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._next: dict[str, float] = {}
        self._held: dict[str, int] = {}

    def holds_back(self, kind: str) -> bool:
        """Return whether a message of a kind is not to be logged now, and count it if so."""
        with self._lock:
            held = self._clock() < self._next.get(kind, -math.inf)
            if held:
                self._held[kind] = self._held.get(kind, 0) + 1
        return held

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a message is to be logged."""
        kind, now = str(record.msg), self._clock()
        if self.holds_back(kind):
            return False
        with self._lock:
            self._next[kind] = now + self._seconds
            held = self._held.pop(kind, 0)
        if held:
            record.msg, record.args = f"{record.getMessage().rstrip()} (and {held:,} more like it before)", None
        return True


def held_back(logger: logging.Logger, kind: str) -> bool:
    """Count a message that a limited logger would hold back, which is cheaper than to make it; False: it is due."""
    return any(one.holds_back(kind) for one in logger.filters if isinstance(one, RateLimit))


def limited_logger(name: str) -> logging.Logger:
    """Return a logger whose messages are limited in their rate."""
    logger = logging.getLogger(name)
    if not logger.filters:
        logger.addFilter(RateLimit())
    return logger
