"""A limit on log lines: the first of each kind at once, then one a minute."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable

__all__ = ["OncePerMinute"]

_PAUSE_SECONDS = 60.0


class OncePerMinute:
    """Counts events by kind; a line on each kind is due at once, and then once a minute.

    Examples
    --------
    >>> seconds = iter([0.0, 1.0, 61.0])
    >>> minute = OncePerMinute(lambda: next(seconds))
    >>> minute.due("odd"), minute.due("odd"), minute.due("odd", 5)
    (1, 0, 6)

    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kinds: dict[Hashable, tuple[int, float]] = {}

    def due(self, kind: Hashable, times: int = 1) -> int:
        """Count events, and return how many a line has to report; 0: no line is due."""
        count, due = self._kinds.get(kind, (0, -math.inf))
        count, now = count + times, self._clock()
        self._kinds[kind] = (count, due) if now < due else (0, now + _PAUSE_SECONDS)
        return 0 if now < due else count
