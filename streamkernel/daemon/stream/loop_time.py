"""The time of the loop: what it goes into, how long the slowest record took, and how long the chunks may be."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

__all__ = ["ACTIVITIES", "MOST_RECORDS", "AdaptiveBatchSize", "LoopTime"]

ACTIVITIES = ("source", "model", "sinks", "checkpoints")
"""Waiting for records and reading them, predicting and learning, writing lines or waiting to, saving checkpoints."""
MOST_RECORDS = 4096
"""The longest chunk."""

_MINUTE = 60.0
_CHUNK_SECONDS = 0.1


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
        # The slowest record of each of the last two minutes: two numbers, however many records come.
        self._slowest: dict[int, float] = {}
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
        """Note that records that were read at one moment were learned at another, both by the clock.

        Examples
        --------
        >>> now = 0.0
        >>> times = LoopTime(lambda: now)
        >>> times.learned(9.5, 10.0), times.learned(69.75, 70.0)
        (None, None)
        >>> for now in (119.0, 120.0, 180.0):
        ...     print(times.slowest())
        0.5
        0.25
        nan

        """
        minute = int(now // _MINUTE)
        self._slowest[minute] = max(now - read_at, self._slowest.get(minute, 0.0))
        if len(self._slowest) > 2:
            del self._slowest[min(self._slowest)]

    def slowest(self) -> float:
        """Return how long the slowest record of the last one to two minutes took; NaN where none came."""
        minute = int(self._clock() // _MINUTE)
        return max((one for key, one in self._slowest.items() if key >= minute - 1), default=math.nan)


class AdaptiveBatchSize:
    """Sets the length of the chunks by the time the last ones took: long enough to be fast, short enough to stop soon.

    How a stream is cut changes no bit of the result, so the cuts may follow the clock.

    Examples
    --------
    >>> batch_size = AdaptiveBatchSize()
    >>> batch_size.took(1, 0.5)  # half a second a record
    >>> batch_size.length
    1
    >>> for _ in range(20):
    ...     batch_size.took(10, 0.0001)
    >>> batch_size.length
    4096

    """

    def __init__(self) -> None:
        self.length = 16

    def took(self, records: int, seconds: float) -> None:
        """Adapt the length to the time that a chunk took."""
        if records:
            fitting = _CHUNK_SECONDS * records / seconds if seconds > 0 else MOST_RECORDS
            # At most doubled: the first records of a model are its cheapest.
            self.length = max(1, int(min(fitting, 2 * self.length, MOST_RECORDS)))
