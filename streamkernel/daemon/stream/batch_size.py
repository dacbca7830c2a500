"""An adaptive batch size: chunks long enough to be fast, short enough to stop, save and report in time."""

from __future__ import annotations

__all__ = ["MOST_RECORDS", "AdaptiveBatchSize"]

MOST_RECORDS = 512
_SECONDS = 0.1


class AdaptiveBatchSize:
    """Sets the length of the chunks by the time the last ones took.

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
    512

    """

    def __init__(self) -> None:
        self.length = 16

    def took(self, records: int, seconds: float) -> None:
        """Adapt the length to the time that a chunk took."""
        if records:
            fitting = _SECONDS * records / seconds if seconds > 0 else MOST_RECORDS
            # At most doubled: the first records of a model are its cheapest.
            self.length = max(1, int(min(fitting, 2 * self.length, MOST_RECORDS)))
