"""Which messages of a topic count, told from the topic itself: without waiting for transactions of others.

A consumer that reads what is committed stops at the first open transaction, whoever began it. One that reads everything
gets past it, but kafka-python keeps from it whose messages these are and how their transaction ended. Both are in the
batches it reads, which are noted here as they pass.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import Any

from kafka import KafkaConsumer

__all__ = ["Batches", "note_batches"]


class Batches:
    """The transactional batches of one partition, and how the transactions ended.

    Examples
    --------
    >>> batches = Batches()
    >>> batches.add(0, 9, producer=7)
    >>> batches.end(10, producer=7, committed=True)
    >>> batches.add(11, 19, producer=7)
    >>> batches.add(20, 29, producer=None)
    >>> [batches.committed(offset) for offset in (5, 11, 25)]
    [True, None, True]

    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._spans: list[tuple[int, int]] = []
        self._ends: defaultdict[int, list[tuple[int, bool]]] = defaultdict(list)

    def add(self, first: int, last: int, producer: int | None) -> None:
        """Note a batch, in the order of the log; its producer, or None where it is in no transaction."""
        # What is asked for once more begins where it began before.
        if producer is not None and (not self._starts or first > self._starts[-1]):
            self._starts.append(first)
            self._spans.append((last, producer))

    def end(self, offset: int, producer: int, committed: bool) -> None:
        """Note that a producer's transaction ended, in the order of the log."""
        ends = self._ends[producer]
        if not ends or offset > ends[-1][0]:
            ends.append((offset, committed))

    def committed(self, offset: int) -> bool | None:
        """Say whether the message at an offset counts; None where its transaction is open as far as was read."""
        found = bisect_right(self._starts, offset) - 1
        if found < 0 or offset > self._spans[found][0]:
            return True
        ends = self._ends.get(self._spans[found][1], [])
        after = bisect_right(ends, (offset, True))
        return ends[after][1] if after < len(ends) else None


def note_batches(consumer: KafkaConsumer, noted: defaultdict[int, Batches]) -> None:
    """Have a consumer that reads everything note the batches it reads, by partition."""
    fetcher = consumer._fetcher
    kind = fetcher.PartitionRecords

    class Noting(kind):  # type: ignore[misc, valid-type]
        def __init__(self, fetch_offset: int, place: Any, records: Any, **more: Any) -> None:
            super().__init__(fetch_offset, place, _Passing(records, noted[place.partition]), **more)

    fetcher.PartitionRecords = Noting


class _Passing:
    """The batches of one answer, noted when they are taken."""

    def __init__(self, records: Any, noted: Batches) -> None:
        self._records = records
        self._noted = noted

    def next_batch(self) -> Any:
        batch = self._records.next_batch()
        if batch is not None and batch.magic == 2 and batch.is_transactional:
            if not batch.is_control_batch:
                self._noted.add(batch.base_offset, batch.last_offset, batch.producer_id)
            else:
                # From a copy: whoever takes the batch has not checked it yet, which must come before it is read.
                copy = type(batch)(batch._buffer)
                marker = next(iter(copy), None) if copy.validate_crc() else None
                if marker is not None:
                    self._noted.end(batch.base_offset, batch.producer_id, marker.commit)
        return batch
