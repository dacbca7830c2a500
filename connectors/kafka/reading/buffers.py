"""Buffers between the thread that reads a topic and the one that learns."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from streamkernel.compute.record_batches import OFFSET
from streamkernel.connectors.kafka.base.messages import Messages

__all__ = ["Buffers", "PartitionBatch"]

# Enough to learn from while more is read, and little enough for the other partitions to have their turn soon.
MOST_MESSAGES, MOST_BYTES = 4096, 2**24


class PartitionBatch(NamedTuple):
    """Consecutive messages of a partition, or offsets at which no message could be read.

    Attributes
    ----------
    first, end
        The offset of the first message, and the one after the last. Some between them may be missing.
    messages
        None where they could not be read.
    reason
        Why they could not be read.

    """

    partition: int
    first: int
    end: int
    messages: Messages | None
    reason: str = ""

    @classmethod
    def of(cls, partition: int, messages: Messages) -> PartitionBatch:
        """Return the batch of all of some messages."""
        offsets = messages.columns[OFFSET]
        return cls(partition, int(offsets[0]), int(offsets[-1]) + 1, messages)

    @classmethod
    def joined(cls, parts: Sequence[PartitionBatch]) -> PartitionBatch:
        """Return batches of messages that follow one another as one; one of offsets without as it is."""
        messages = [part.messages for part in parts if part.messages is not None]
        return parts[0] if len(parts) == 1 else cls.of(parts[0].partition, Messages.joined(messages))

    def goes_with(self, other: PartitionBatch) -> bool:
        """Return whether both are of messages."""
        return self.messages is not None and other.messages is not None

    @property
    def size(self) -> int:
        """The number of its records."""
        return self.end - self.first if self.messages is None else len(self.messages)

    @property
    def n_bytes(self) -> int:
        """About how many bytes of memory it takes."""
        return 0 if self.messages is None else self.messages.n_bytes

    def cut(self, most: int, before: int | None = None) -> tuple[PartitionBatch | None, PartitionBatch | None]:
        """Split the batch: at most `most` first records, all before the offset `before`, and the rest.

        Examples
        --------
        >>> [(part.first, part.end) for part in PartitionBatch(0, 5, 8, None).cut(2)]
        [(5, 7), (7, 8)]
        >>> PartitionBatch(0, 5, 8, None).cut(9, before=5)[0] is None
        True

        """
        before = self.end if before is None else min(before, self.end)
        if self.messages is None:
            place = max(self.first, min(self.first + most, before))
            index = place - self.first
        else:
            index = min(most, self.messages.before(before))
        if index == 0:
            return None, self
        if index == self.size:
            return self, None
        if self.messages is None:
            return self._replace(end=place), self._replace(first=place)
        return self.of(self.partition, self.messages[:index]), self.of(self.partition, self.messages[index:])


@dataclass
class _Buffer:
    """What is known of a partition: where reading continues, where it ends, and what waits and was handed out."""

    reached: int
    end: int
    batches: deque[PartitionBatch] = field(default_factory=deque)
    waiting: int = 0
    handed_out: int = 0
    handed_out_to: int | None = None

    @property
    def lag(self) -> int:
        return max(0, self.end - self.reached) + self.waiting

    def put(self, batch: PartitionBatch) -> None:
        self.reached = batch.end
        self.waiting += batch.size
        self.batches.append(batch)

    def take(self, most: int, before: int | None) -> PartitionBatch | None:
        """Take the next records: messages that trickled in are handed out in chunks all the same."""
        parts: list[PartitionBatch] = []
        while self.batches and most > 0 and (not parts or parts[0].goes_with(self.batches[0])):
            head, rest = self.batches[0].cut(most, before)
            if head is None:
                break
            self.batches.popleft()
            if rest is not None:
                self.batches.appendleft(rest)
            parts.append(head)
            most -= head.size
        if not parts:
            return None
        taken = PartitionBatch.joined(parts)
        self.waiting -= taken.size
        self.handed_out += taken.size
        self.handed_out_to = taken.end
        return taken


class Buffers:
    """The batches of each partition that wait; every method may be called from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._buffers: dict[int, _Buffer] = {}
        self._bytes = 0
        self._wanted: int | None = None
        self._woken = False

    @property
    def partitions(self) -> list[int]:
        """All partitions, in order."""
        with self._changed:
            return sorted(self._buffers)

    def note(self, partition: int, reached: int, end: int | None) -> None:
        """Note where reading a partition continues, and where it ends, if known; add the partition if it is new."""
        with self._changed:
            buffer = self._buffers.setdefault(partition, _Buffer(reached, reached))
            moved = buffer.reached != reached
            buffer.reached = reached
            # The end is heard of in two ways, and the later answer may be the older one.
            buffer.end = max(buffer.end, reached if end is None else end)
            if moved:
                self._changed.notify_all()

    def put(self, batch: PartitionBatch) -> None:
        """Add what was read, after what waits of its partition."""
        with self._changed:
            self._bytes += batch.n_bytes
            self._buffers[batch.partition].put(batch)
            self._changed.notify_all()

    def take(self, partition: int, most: int, before: int | None = None) -> PartitionBatch | None:
        """Take the next records of a partition, as `PartitionBatch.cut` does; None where none is there."""
        with self._changed:
            taken = self._buffers[partition].take(most, before)
            if taken is not None:
                self._bytes -= taken.n_bytes
                self._changed.notify_all()
            return taken

    def waiting(self, partition: int) -> tuple[int, int] | None:
        """Return how many records of a partition wait, and the offset after the last; None where none waits."""
        with self._changed:
            buffer = self._buffers[partition]
            return (buffer.waiting, buffer.batches[-1].end) if buffer.batches else None

    def passed(self, partition: int, offset: int) -> bool:
        """Return whether no more records before an offset will come from a partition."""
        with self._changed:
            buffer = self._buffers[partition]
            return (buffer.batches[0].first if buffer.batches else buffer.reached) >= offset

    def skip_marks(self, partition: int, offset: int) -> int:
        """Return the offset to commit once all records before `offset` are saved: after transaction marks there."""
        with self._changed:
            buffer = self._buffers.get(partition)
            if buffer is None or buffer.batches or buffer.handed_out_to not in (None, offset):
                return offset
            return max(offset, buffer.reached)

    def reached(self) -> dict[int, int]:
        """Return the offset at which reading each partition continues."""
        return self._of_each(lambda buffer: buffer.reached)

    def lag(self) -> dict[int, int]:
        """Return how many records of each partition are still to be handed out."""
        return self._of_each(lambda buffer: buffer.lag)

    def known(self) -> dict[int, int]:
        """Return how many records of each partition were handed out, or are still to be."""
        return self._of_each(lambda buffer: buffer.lag + buffer.handed_out)

    def _of_each(self, count: Callable[[_Buffer], int]) -> dict[int, int]:
        with self._changed:
            return {partition: count(buffer) for partition, buffer in self._buffers.items()}

    def wait(self, seconds: float, partition: int | None = None) -> None:
        """Wait until records of a partition, or of any, are there, or `wake` is called."""
        with self._changed:
            self._wanted = partition
            self._changed.notify_all()
            wanted = [*self._buffers.values()] if partition is None else [self._buffers[partition]]
            self._changed.wait_for(lambda: self._woken or any(buffer.batches for buffer in wanted), seconds)
            self._woken = False

    def wait_for_room(self, seconds: float) -> bool:
        """Wait until more may be put, and return whether it may."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._full(), seconds)

    def _full(self) -> bool:
        if self._wanted is not None and not self._buffers[self._wanted].batches:
            return False  # the order waits for this partition, however much of the others is there
        n_waiting = sum(buffer.waiting for buffer in self._buffers.values())
        return n_waiting >= MOST_MESSAGES or self._bytes >= MOST_BYTES

    def wake(self) -> None:
        """End the waiting."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()
