"""Tells which messages of a topic are committed, from its batches: without waiting for transactions of others.

A consumer that reads what is committed stops at the first open transaction, of any producer. One that reads everything
gets past it, but kafka-python keeps from it whose messages these are and how their transaction ended. Both are in the
batches it reads.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import Any

__all__ = ["TransactionIndex"]


class TransactionIndex:
    """The transactional batches of one partition, and how the transactions ended, in the order of the log.

    Examples
    --------
    >>> index = TransactionIndex()
    >>> index.add(0, 9, producer=7)
    >>> index.end(10, producer=7, committed=True)
    >>> index.add(11, 19, producer=7)
    >>> [index.committed(offset) for offset in (5, 11, 25)]
    [True, None, True]

    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._spans: list[tuple[int, int]] = []
        self._ends: defaultdict[int, list[tuple[int, bool]]] = defaultdict(list)

    def note(self, batch: Any) -> None:
        """Add a batch as kafka-python reads it, or the end of a transaction."""
        if batch.magic != 2 or not batch.is_transactional:
            return
        if not batch.is_control_batch:
            self.add(batch.base_offset, batch.last_offset, batch.producer_id)
            return
        # From a copy: the reader of the batch has not checked it yet, which must come before it is read.
        copy = type(batch)(batch._buffer)
        marker = next(iter(copy), None) if copy.validate_crc() else None
        if marker is not None:
            self.end(batch.base_offset, batch.producer_id, marker.commit)

    def add(self, first: int, last: int, producer: int) -> None:
        """Add a producer's batch, from its first offset to its last."""
        # What is asked for once more begins where it began before.
        if not self._starts or first > self._starts[-1]:
            self._starts.append(first)
            self._spans.append((last, producer))

    def end(self, offset: int, producer: int, committed: bool) -> None:
        """Add the end of a producer's transaction."""
        ends = self._ends[producer]
        if not ends or offset > ends[-1][0]:
            ends.append((offset, committed))

    def committed(self, offset: int) -> bool | None:
        """Return whether the message at an offset is committed; None where its transaction is still open."""
        found = bisect_right(self._starts, offset) - 1
        if found < 0 or offset > self._spans[found][0]:
            return True
        ends = self._ends.get(self._spans[found][1], [])
        after = bisect_right(ends, (offset, True))
        return ends[after][1] if after < len(ends) else None
