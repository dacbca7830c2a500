"""The log of the HTTP server: clients that do wrong must not fill a disk."""

from __future__ import annotations

import asyncio
import logging
import time

from streamkernel.daemon.base.once_per_minute import OncePerMinute

__all__ = ["RateLimit", "limited_logger"]


class RateLimit(logging.Filter):
    """Pass each kind of message once a minute, with the number of those held back.

    A kind is the text before its arguments are put in.

    Examples
    --------
    >>> limit = RateLimit()
    >>> records = [logging.makeLogRecord({"msg": "%d is bad", "args": (number,)}) for number in range(3)]
    >>> [limit.filter(record) for record in records]
    [True, False, False]

    """

    def __init__(self) -> None:
        super().__init__()
        self._minute = OncePerMinute(lambda: time.monotonic())

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a message is logged."""
        kind = str(record.msg)
        cancelled = record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError)
        if cancelled or kind.startswith("Cancel %s running"):
            return False  # an answer that a server cancels when it stops is no failure
        if (count := self._minute.due(kind)) > 1:
            record.msg, record.args = f"{record.getMessage().rstrip()} (and {count - 1:,} more like it before)", None
        return count > 0


def limited_logger(name: str) -> logging.Logger:
    """Return a logger with a limit on its rate."""
    logger = logging.getLogger(name)
    if not any(isinstance(one, RateLimit) for one in logger.filters):
        logger.addFilter(RateLimit())
    return logger
