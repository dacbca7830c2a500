"""The share of dead letters: too many bad records stop the daemon."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

__all__ = ["DeadLetterRate"]


class DeadLetterRate:
    """Watches the share of dead letters among the last records.

    Parameters
    ----------
    max_rate
        The share that is still borne.
    window
        How many records it looks back.
    recent
        The numbers (1 is the first record consumed) of the latest dead letters, as a checkpoint holds them.
    stops_at_start
        Whether a run stops whose first records are all dead letters.

    Examples
    --------
    >>> rate = DeadLetterRate(0.5, 4)
    >>> [rate.add(number) for number in (1, 2, 6, 7, 8)]
    [False, False, False, False, True]
    >>> rate.recent
    [6, 7, 8]

    """

    def __init__(self, max_rate: float, window: int, recent: Iterable[int] = (), stops_at_start: bool = True) -> None:
        self.max_rate = max_rate
        self.window = window
        self.stops_at_start = stops_at_start and max_rate < 1
        self._recent: deque[int] = deque(recent)

    @property
    def recent(self) -> list[int]:
        """The numbers of the dead letters among the last records seen by `add`."""
        return list(self._recent)

    def add(self, number: int) -> bool:
        """Count the record with this number as a dead letter, and say whether there are now too many."""
        self._recent.append(number)
        while self._recent[0] <= number - self.window:
            self._recent.popleft()
        return len(self._recent) > self.max_rate * self.window
