"""The order in which the partitions of a topic are handed out: as they arrive, or as a log says.

What comes from several partitions comes in an order that is an accident of the network. A model learns another state
from another order; so that a run that was killed ends like one that was not, the order can be logged: which offsets of
which partition come next is on the disk before the first of these records is handed out, and a restart repeats what the
checkpoint does not hold. One partition has an order of its own, until others are added to the topic.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from streamkernel.connectors.kafka.reading.buffers import Buffers, PartitionBatch
from streamkernel.connectors.kafka.reading.order_log import OrderEntry, OrderLog
from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import SourceError

__all__ = ["ArrivalOrder", "LoggedOrder", "SingleOrder", "logged_order", "open_order"]

_log = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0


class ArrivalOrder:
    """The partitions in turns of one chunk, as records arrive."""

    def __init__(self) -> None:
        self._last = -1

    def take(self, buffers: Buffers, most: int) -> PartitionBatch | None:
        """Take the next batch, of at most `most` records; None where it is not there yet."""
        partition = self._turn(buffers)
        return None if partition is None else buffers.take(partition, most)

    def _turn(self, buffers: Buffers) -> int | None:
        for partition in sorted(buffers.partitions, key=lambda one: (one <= self._last, one)):
            if buffers.waiting(partition) is not None:
                self._last = partition
                return partition
        return None

    @property
    def wanted(self) -> int | None:
        """The partition that the next batch must come from; None: any."""
        return None

    @property
    def held(self) -> bool:
        """Whether nothing can be handed out for a while, whatever is there."""
        return False

    def saved(self, positions: Mapping[int, int]) -> None:
        """Note that a restart continues at these offsets."""

    def close(self) -> None:
        """Release what is held."""


class SingleOrder(ArrivalOrder):
    """The order of the one partition that is read from an offset on; `handed` is what was handed out of it."""

    def __init__(self, partition: int, begin: int) -> None:
        super().__init__()
        self.handed = OrderEntry(partition, 0, begin)

    def take(self, buffers: Buffers, most: int) -> PartitionBatch | None:
        batch = buffers.take(self.handed.partition, most)
        if batch is not None:
            self.handed = self.handed._replace(end=batch.end)
        return batch


class LoggedOrder(ArrivalOrder):
    """The order as batches arrive, written down first; after a restart as it was written.

    It is made with an open log, what that returned when it was opened, and the offset at which each partition begins.
    """

    def __init__(self, log: OrderLog, replayed: Iterable[OrderEntry], begins: Mapping[int, int]) -> None:
        super().__init__()
        self._file = log
        self._replayed = deque(entry for entry in replayed if entry.partition in begins)
        self._next = dict(begins)
        for entry in self._replayed:
            self._next[entry.partition] = entry.end
        self._entry: OrderEntry | None = None
        self._again = 0.0
        self._refused = False

    @property
    def wanted(self) -> int | None:
        """The partition of the batch that was begun."""
        return None if self._entry is None else self._entry.partition

    @property
    def held(self) -> bool:
        """Whether the disk has just refused a line."""
        return self._refused and time.monotonic() < self._again

    def take(self, buffers: Buffers, most: int) -> PartitionBatch | None:
        """Take what the log says, or decide and log it."""
        while True:
            if self._entry is None:
                self._entry = self._replayed.popleft() if self._replayed else self._decide(buffers)
            entry = self._entry
            if entry is None:
                return None
            taken = buffers.take(entry.partition, most, before=entry.end)
            if taken is None and not buffers.passed(entry.partition, entry.end):
                return None
            if taken is None or taken.end >= entry.end:
                self._entry = None
            if taken is not None:
                return taken

    def _decide(self, buffers: Buffers) -> OrderEntry | None:
        """Choose all that is there of the partition whose turn it is: one write to the disk for many chunks."""
        if self.held:
            return None
        partition = self._turn(buffers)
        there = None if partition is None else buffers.waiting(partition)
        if partition is None or there is None:
            return None
        # One that was added to the topic is read from its first offset on.
        entry = OrderEntry(partition, self._next.get(partition, 0), there[1])
        try:
            self._file.append(entry)
        except OSError as error:
            if not self._refused:
                _log.error(
                    "%s cannot be written: %s; no record is read until it can, because their order would be lost",
                    *(self._file.path, os_reason(error)),
                )
            self._refused, self._again = True, time.monotonic() + _RETRY_SECONDS
            return None
        self._refused = False
        self._next[partition] = entry.end
        return entry

    def saved(self, positions: Mapping[int, int]) -> None:
        try:
            self._file.saved(positions)
        except OSError as error:
            _log.warning("%s cannot be shortened: %s", self._file.path, os_reason(error))

    def close(self) -> None:
        self._file.close()


def logged_order(
    path: Path, kept: int, offsets: Mapping[int, int], positions: Mapping[int, int], end: Callable[[int], int]
) -> ArrivalOrder:
    """Return the order of partitions that is logged; of one partition nothing has to be.

    Parameters
    ----------
    offsets, positions
        At which offset each partition is read on, and where the checkpoint continues.
    end
        Returns where a partition ends that was the only one at the checkpoint. How much of it was handed out since then
        nobody knows, and no more than there is: all of that comes before anything of the others.

    Raises
    ------
    SourceError
        Where the log cannot be written.

    """
    if len(offsets) == 1:
        ((partition, offset),) = offsets.items()
        return SingleOrder(partition, offset)
    alone = None
    if len(positions) == 1 and not path.exists():
        ((partition, offset),) = positions.items()
        alone = OrderEntry(partition, 0, max(offset, end(partition)))
    return open_order(path, kept, offsets, positions, alone)


def open_order(
    path: Path, kept: int, offsets: Mapping[int, int], positions: Mapping[int, int], first: OrderEntry | None
) -> LoggedOrder:
    """Return the order that a log continues; raises `SourceError` where that cannot be written.

    What `first` says was handed out comes before all that is logged, of a partition that was the only one till now.
    """
    log = OrderLog(path, kept)
    try:
        replayed = log.open(positions, first)
    except OSError as error:
        raise SourceError(f"{path}: cannot be written: {os_reason(error)}") from None
    return LoggedOrder(log, replayed, offsets)
