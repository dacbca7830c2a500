"""The account of a stream: every record taken in is accounted for, and too many bad ones stop the daemon."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from streamkernel.daemon.stream.counts import Counts

__all__ = ["Account", "DeadLetterRate"]


@dataclass(slots=True)
class Account(Counts):
    """What became of the records since the first start.

    In mode learn, ``learnt + unlabelled + skipped + dead == consumed``; in mode predict ``predicted + skipped + dead``
    is, for a label is of no use there. With late labels, add the records that wait for theirs and those that expired.

    Attributes
    ----------
    consumed
        Records taken from the source.
    predicted
        Records the model gave a prediction for.
    learnt
        Records the model learnt from.
    unlabelled
        Records that are predicted only: without a target, or of a class past the limit of the model.
    skipped
        Empty lines and tombstones.
    dead
        Dead letters.

    """

    consumed: int = 0
    predicted: int = 0
    learnt: int = 0
    unlabelled: int = 0
    skipped: int = 0
    dead: int = 0


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

    Examples
    --------
    >>> rate = DeadLetterRate(0.5, 4)
    >>> [rate.add(number) for number in (1, 2, 6, 7, 8)]
    [False, False, False, False, True]
    >>> rate.recent
    [6, 7, 8]

    """

    def __init__(self, max_rate: float, window: int, recent: Iterable[int] = ()) -> None:
        self.max_rate = max_rate
        self.window = window
        self._limit = max_rate * window
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
        return len(self._recent) > self._limit
