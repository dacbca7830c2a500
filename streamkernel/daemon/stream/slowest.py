"""The maximum of durations over the last one to two minutes."""

from __future__ import annotations

import math

__all__ = ["SlowestRecord"]

_MINUTE = 60.0


class SlowestRecord:
    """The longest duration of this minute and of the one before: two numbers, however many records come.

    Examples
    --------
    >>> slowest = SlowestRecord()
    >>> slowest.observe(0.5, now=10.0)
    >>> slowest.observe(0.2, now=70.0)
    >>> slowest.value(now=119.0), slowest.value(now=120.0), slowest.value(now=180.0)
    (0.5, 0.2, nan)

    """

    def __init__(self) -> None:
        self._minute = 0
        self._here = self._before = -math.inf

    def observe(self, seconds: float, now: float) -> None:
        """Take in a duration that ended at `now`, in seconds of a clock that never goes back."""
        self._move_to(now)
        self._here = max(self._here, seconds)

    def value(self, now: float) -> float:
        """Return the longest one; NaN where none came in these minutes."""
        self._move_to(now)
        longest = max(self._here, self._before)
        return longest if longest >= 0.0 else math.nan

    def _move_to(self, now: float) -> None:
        minute = int(now // _MINUTE)
        if minute != self._minute:
            self._before = self._here if minute == self._minute + 1 else -math.inf
            self._minute, self._here = minute, -math.inf
