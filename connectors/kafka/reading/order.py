"""The order in which the partitions of a topic are handed out: as they arrive, or as a log says.

The order of arrival is an accident of the network, and another order gives another model. So that a killed run ends
like an undisturbed one, the order can be logged: the log names the next offsets before the first of their records is
handed out, and a restart repeats what the checkpoint does not hold.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping

from streamkernel.connectors.kafka.reading.buffers import Buffers, PartitionBatch
from streamkernel.connectors.kafka.reading.order_log import OPEN, OrderEntry, OrderLog
from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import SourceError

__all__ = ["ArrivalOrder", "LoggedOrder"]

_log = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0


class ArrivalOrder:
    """The partitions in turns of one chunk, as records arrive.

    Attributes
    ----------
    wanted
        The partition that the next batch must come from; None: any.
    held
        Whether nothing can be handed out for a while, whatever is there.

    """

    wanted: int | None = None
    held = False

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

    def saved(self, positions: Mapping[int, int]) -> None:
        """Note that a restart continues at these offsets."""

    def close(self) -> None:
        """Release what is held."""


class LoggedOrder(ArrivalOrder):
    """The order as batches arrive, logged first; after a restart as it was logged.

    While there is one partition, one entry without an end says so. Once there are more, that entry gets an end. What a
    killed run had handed out by then is unknown, and at most all there is: so all of it comes first.

    Parameters
    ----------
    log
        The log.
    positions
        Where the checkpoint continues; empty: start over.
    begins
        At which offset reading each partition began, and where each partition ended at that moment.

    Raises
    ------
    SourceError
        Where the log cannot be written.

    """

    def __init__(self, log: OrderLog, positions: Mapping[int, int], begins: Mapping[int, tuple[int, int]]) -> None:
        super().__init__()
        self._file = log
        try:
            replayed = log.open(positions)
        except OSError as error:
            raise SourceError(f"{log.path}: cannot be written: {os_reason(error)}") from None
        self._replayed = deque(entry for entry in replayed if entry.partition in begins)
        self._next = {partition: first for partition, (first, _) in begins.items()}
        self._next |= {entry.partition: entry.end for entry in self._replayed if entry.end != OPEN}
        self._ends = {partition: end for partition, (_, end) in begins.items()}
        self._entry: OrderEntry | None = None
        self._again = 0.0
        self._refused = False

    @property
    def wanted(self) -> int | None:  # type: ignore[override]
        """The partition of the batch that was begun."""
        return None if self._entry is None or self._entry.end == OPEN else self._entry.partition

    @property
    def held(self) -> bool:  # type: ignore[override]
        """Whether the disk has just refused a line."""
        return self._refused and time.monotonic() < self._again

    def take(self, buffers: Buffers, most: int) -> PartitionBatch | None:
        """Take what the log says, or decide and log it."""
        while True:
            if self._entry is None:
                self._entry = self._replayed.popleft() if self._replayed else self._decide(buffers)
            if self._entry is not None and self._entry.end == OPEN and len(buffers.partitions) > 1:
                self._end_open(buffers, self._entry)
            entry = self._entry
            if entry is None or self.held:
                return None
            taken = buffers.take(entry.partition, most, before=entry.end)
            if taken is None and not buffers.passed(entry.partition, entry.end):
                return None
            if taken is None or taken.end >= entry.end:
                self._entry = None
            if taken is not None:
                return taken

    def _decide(self, buffers: Buffers) -> OrderEntry | None:
        """Choose all that waits of the partition whose turn it is: one write to the disk for many chunks."""
        if self.held:
            return None
        partition = self._turn(buffers)
        there = None if partition is None else buffers.waiting(partition)
        if partition is None or there is None:
            return None
        # A partition that was added to the topic begins at its first offset.
        entry = OrderEntry(partition, self._next.get(partition, 0), OPEN if len(buffers.partitions) == 1 else there[1])
        return entry if self._write(entry) else None

    def _end_open(self, buffers: Buffers, entry: OrderEntry) -> None:
        """Give an entry without an end the end of what may have been handed out."""
        end = max(entry.first, self._ends[entry.partition], buffers.reached()[entry.partition])
        if not self.held and self._write(entry._replace(end=end)):
            self._entry = entry._replace(end=end)

    def _write(self, entry: OrderEntry) -> bool:
        """Log an entry, and return whether the disk took it."""
        try:
            self._file.append(entry)
        except OSError as error:
            if not self._refused:
                _log.error(
                    "%s cannot be written: %s; no record is read until it can, because their order would be lost",
                    *(self._file.path, os_reason(error)),
                )
            self._refused, self._again = True, time.monotonic() + _RETRY_SECONDS
            return False
        self._refused = False
        self._next[entry.partition] = entry.end
        return True

    def saved(self, positions: Mapping[int, int]) -> None:
        try:
            self._file.saved(positions)
        except OSError as error:
            _log.warning("%s cannot be shortened: %s", self._file.path, os_reason(error))

    def close(self) -> None:
        self._file.close()
