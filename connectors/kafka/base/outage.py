"""Logs an outage when it begins, each minute while it lasts, and once when it is over."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

__all__ = ["Outage"]

_AGAIN_SECONDS = 60.0


class Outage:
    """A connection that may be lost: up, or down for a `reason`; None while it is up.

    Its log lines begin with the `place`. They say `down` with the reason, and `up` with the seconds that it took.
    """

    def __init__(
        self,
        log: logging.Logger,
        place: str,
        down: str = "no broker answers (%s): trying again until one does",
        up: str = "a broker answers again after %.0f s",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.reason: str | None = None
        self._log = log
        self._place = place
        self._down, self._up = down, up
        self._clock = clock
        self._since = self._told = 0.0

    def begin(self, reason: str, since: float | None = None) -> None:
        """Note that it is down, now or since an earlier time, or still."""
        now = self._clock()
        if self.reason is None:
            self._since, self._told = now if since is None else since, now
            self._log.warning(f"%s: {self._down}", self._place, reason)
        elif now - self._told >= _AGAIN_SECONDS:
            self._told = now
            self._log.warning(f"%s: {self._down}", self._place, f"{reason}, for {now - self._since:.0f} s now")
        self.reason = reason

    def end(self) -> None:
        """Note that it is up."""
        if self.reason is not None:
            self.reason = None
            self._log.info(f"%s: {self._up}", self._place, self._clock() - self._since)
