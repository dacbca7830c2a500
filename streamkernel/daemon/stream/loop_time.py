"""The time of the loop by activity, and how long its slowest record took."""

from __future__ import annotations

import time
from collections.abc import Callable

from streamkernel.daemon.stream.slowest import SlowestRecord

__all__ = ["ACTIVITIES", "LoopTime"]

ACTIVITIES = ("source", "model", "sinks", "checkpoints")
"""Waiting for records and reading them, predicting and learning, writing lines or waiting to, saving checkpoints."""


class LoopTime:
    """Sums of the seconds that the loop spent on each activity, by a few reads of the clock for each chunk.

    What is in none of them is the loop's own work and what is shown of it.

    Parameters
    ----------
    clock
        Gives seconds, and never goes back.

    Attributes
    ----------
    seconds
        By activity.

    Examples
    --------
    >>> ticks = iter([10.0, 12.0, 12.5])
    >>> times = LoopTime(lambda: next(ticks))
    >>> times.begin()
    >>> times.end("source"), times.end("model")
    (12.0, 12.5)
    >>> times.seconds
    {'source': 2.0, 'model': 0.5, 'sinks': 0.0, 'checkpoints': 0.0}

    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = 0.0
        self._slowest = SlowestRecord()
        self.seconds = dict.fromkeys(ACTIVITIES, 0.0)

    def begin(self) -> None:
        """Begin an activity now."""
        self._since = self._clock()

    def end(self, activity: str) -> float:
        """End an activity, begin the next one, and return the time by the clock."""
        now = self._clock()
        self.seconds[activity] += now - self._since
        self._since = now
        return now

    def learned(self, read_at: float, now: float) -> None:
        """Note that records that were read at one moment were learned at another, both by the clock."""
        self._slowest.observe(now - read_at, now)

    def slowest(self) -> float:
        """Return how long the slowest record of the last one to two minutes took; NaN where none came."""
        return self._slowest.value(self._clock())
