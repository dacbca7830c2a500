"""The log of the HTTP server: clients that do wrong must not fill a disk."""

from __future__ import annotations

import asyncio
import logging
import time

__all__ = ["RateLimit", "limited_logger"]


class RateLimit(logging.Filter):
    """Pass each kind of message once a minute, with the number of those held back; no client can fill a disk.

    A kind is the text before its arguments are put in.

    Examples
    --------
    >>> limit = RateLimit()
    >>> records = [logging.makeLogRecord({"msg": "%d is bad", "args": (number,)}) for number in range(3)]
    >>> [limit.filter(record) for record in records]
    [True, False, False]

    """

    SECONDS = 60.0

    def __init__(self) -> None:
        super().__init__()
        self._kinds: dict[str, tuple[float, int]] = {}  # when the next may pass, and how many were held back

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a message is logged."""
        kind, now = str(record.msg), time.monotonic()
        cancelled = record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError)
        if cancelled or kind.startswith("Cancel %s running"):
            return False  # an answer that a server cancels when it stops is no failure
        due, held = self._kinds.get(kind, (now, 0))
        if now < due:
            self._kinds[kind] = due, held + 1
            return False
        self._kinds[kind] = now + self.SECONDS, 0
        if held:
            record.msg, record.args = f"{record.getMessage().rstrip()} (and {held:,} more like it before)", None
        return True


def limited_logger(name: str) -> logging.Logger:
    """Return a logger with a limit on its rate."""
    logger = logging.getLogger(name)
    if not any(isinstance(one, RateLimit) for one in logger.filters):
        logger.addFilter(RateLimit())
    return logger
