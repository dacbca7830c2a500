"""Buffers between the thread that reads a topic and the one that learns: messages that were not handed out yet."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

__all__ = ["Buffers", "PartitionBatch"]

# Enough to learn from while more is read, and little enough for the other partitions to have their turn soon.
MOST_MESSAGES, MOST_BYTES = 4096, 2**24

_offset = attrgetter("offset")
# Of a ConsumerRecord: its headers, and the serialized sizes of its key, value and headers, -1 where there is none.
_headers = itemgetter(8)
_key_size, _value_size, _header_size = itemgetter(10), itemgetter(11), itemgetter(12)
# What a header takes in memory, however short it is.
_HEADER_BYTES = 64


def _bytes(messages: Sequence[Any]) -> int:
    """Return how many bytes of memory messages take, about."""
    in_headers: int = sum(map(_header_size, messages))
    # Where no message has any, which is mostly so, they need not be counted one by one.
    headers = 0 if in_headers == -len(messages) else sum(map(len, map(_headers, messages)))
    size: int = sum(map(_key_size, messages)) + sum(map(_value_size, messages))
    return size + in_headers + _HEADER_BYTES * headers


class PartitionBatch(NamedTuple):
    """Consecutive messages of a partition, or offsets at which none could be read.

    Attributes
    ----------
    first, end
        Offsets: of the first message, and the one after the last. Between them some may be missing.
    messages
        None where they could not be read.
    reason, fault
        Why not, and the reason of the `Fault` that they are.

    """

    partition: int
    first: int
    end: int
    messages: Sequence[Any] | None
    reason: str = ""
    fault: str = "corrupt"

    @property
    def size(self) -> int:
        """The number of its records."""
        return self.end - self.first if self.messages is None else len(self.messages)

    def cut(self, most: int, before: int | None = None) -> tuple[PartitionBatch | None, PartitionBatch | None]:
        """Split the batch: at most `most` first records, all before the offset `before`, and the rest.

        Examples
        --------
        >>> [(part.first, part.end) for part in PartitionBatch(0, 5, 8, None).cut(2)]
        [(5, 7), (7, 8)]
        >>> PartitionBatch(0, 5, 8, None).cut(9, before=5)[0] is None
        True

        """
        if self.messages is None:
            place = min(self.first + most, self.end if before is None else before)
            if place <= self.first:
                return None, self
            if place >= self.end:
                return self, None
            return self._replace(end=place), self._replace(first=place)
        index = min(most, len(self.messages))
        if before is not None and before < self.end:
            index = min(index, bisect_left(self.messages, before, key=_offset))
        if index == 0:
            return None, self
        if index == len(self.messages):
            return self, None
        place = self.messages[index].offset
        end = self.messages[index - 1].offset + 1
        head, rest = self.messages[:index], self.messages[index:]
        return self._replace(end=end, messages=head), self._replace(first=place, messages=rest)


class Buffers:
    """The batches of each partition that wait; every method may be called from any thread."""

    def __init__(self, partitions: Collection[int]) -> None:
        self._changed = threading.Condition()
        self._waiting: Mapping[int, deque[PartitionBatch]] = {partition: deque() for partition in partitions}
        self._taken: Counter[int] = Counter()
        self._bytes = 0
        self._wanted: int | None = None
        self._reached: dict[int, int] = {}
        self._taken_up_to: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._woken = False

    @property
    def partitions(self) -> Collection[int]:
        """All partitions there are."""
        return self._waiting.keys()

    def add(self, partition: int) -> None:
        """Make room for one more partition."""
        with self._changed:
            # Another mapping, because another thread may be looking at this one.
            self._waiting = {**self._waiting, partition: deque()}

    def put(self, batch: PartitionBatch) -> None:
        """Add what was read, after what waits of its partition."""
        size = 0 if batch.messages is None else _bytes(batch.messages)
        with self._changed:
            waiting = self._waiting[batch.partition]
            if waiting and waiting[-1].messages is not None and batch.messages is not None:
                # A slow trickle is handed out in chunks all the same.
                before = waiting.pop()
                batch = batch._replace(first=before.first, messages=[*(before.messages or ()), *batch.messages])
            waiting.append(batch)
            self._bytes += size
            self._reached[batch.partition] = batch.end
            self._changed.notify_all()

    def note(self, partition: int, reached: int, end: int | None) -> None:
        """Note where a partition is read on, and where it ends, where that is known."""
        with self._changed:
            moved = self._reached.get(partition) != reached
            self._reached[partition] = reached
            if end is not None:
                # It is heard of in two ways, and the later word may be the older one.
                self._ends[partition] = max(end, self._ends.get(partition, end))
            if moved:
                self._changed.notify_all()

    def take(self, partition: int, most: int, before: int | None = None) -> PartitionBatch | None:
        """Take the next records of a partition, as `PartitionBatch.cut` does; None where none is there."""
        with self._changed:
            waiting = self._waiting[partition]
            if not waiting:
                return None
            head, rest = waiting[0].cut(most, before)
            if head is None:
                return None
            waiting.popleft()
            if rest is not None:
                waiting.appendleft(rest)
            self._taken[partition] += head.size
            self._taken_up_to[partition] = head.end
            if head.messages is not None:
                self._bytes -= _bytes(head.messages)
            self._changed.notify_all()
            return head

    def waiting(self, partition: int) -> tuple[int, int] | None:
        """Return how many records of a partition are there, and the offset after the last; None where none is."""
        with self._changed:
            waiting = self._waiting[partition]
            return (self._count(partition), waiting[-1].end) if waiting else None

    def passed(self, partition: int, offset: int) -> bool:
        """Return whether nothing before an offset will come of a partition any more."""
        with self._changed:
            waiting = self._waiting[partition]
            return (waiting[0].first if waiting else self._reached.get(partition, 0)) >= offset

    def behind(self, partition: int, offset: int) -> int:
        """Return where a partition is read on once all before an offset is dealt with: also after marks there."""
        with self._changed:
            if self._waiting.get(partition) or self._taken_up_to.get(partition, offset) != offset:
                return offset
            return max(offset, self._reached.get(partition, offset))

    def _full(self) -> bool:
        if self._wanted is not None and not self._waiting[self._wanted]:
            # However much of the others is there, this is waited for.
            return False
        return sum(map(self._count, self.partitions)) >= MOST_MESSAGES or self._bytes >= MOST_BYTES

    def _count(self, partition: int) -> int:
        return sum(batch.size for batch in self._waiting[partition])

    def reached(self) -> dict[int, int]:
        """Return the offset at which each partition is read on, as far as known."""
        with self._changed:
            return dict(self._reached)

    def lag(self) -> dict[int, int]:
        """Return how many records of each partition are still to be handed out, as far as known."""
        with self._changed:
            return {
                partition: max(0, end - self._reached[partition]) + self._count(partition)
                for partition, end in self._ends.items()
            }

    def known(self) -> dict[int, int]:
        """Return how many records of each partition were handed out, or are still to be."""
        with self._changed:
            return {partition: count + self._taken[partition] for partition, count in self.lag().items()}

    def wait(self, seconds: float, partition: int | None = None) -> None:
        """Wait until something of a partition, or of any, is there, or `wake` is called."""
        with self._changed:
            self._wanted = partition
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._woken or self._has(partition), seconds)
            self._woken = False

    def wait_for_room(self, seconds: float) -> bool:
        """Wait until more may be put, or `wake` is called, and say whether it may."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._full(), seconds)

    def wake(self) -> None:
        """End the waiting."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def _has(self, partition: int | None) -> bool:
        if partition is not None:
            return bool(self._waiting[partition])
        return any(self._waiting.values())
