"""Reports transactions that stay open: what is after the first record of one is not handed out until it ends."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from streamkernel.connectors.kafka.base.topic import KafkaTopic

__all__ = ["TOLD_AFTER_SECONDS", "OpenTransactions"]

_log = logging.getLogger(__name__)

# Longer than most transactions take, and half of what Kafka gives one whose producer has died.
TOLD_AFTER_SECONDS = 30.0


@dataclass
class _Wait:
    """The offset at which a partition waits though there is more after it, since when, and whether it was logged."""

    offset: int
    since: float
    logged: bool = False


class OpenTransactions:
    """The partitions of a topic that wait for a transaction to end; `health_problem` names them, for any thread."""

    def __init__(self, place: str) -> None:
        self.health_problem: str | None = None
        self._place = place
        self._waits: dict[int, _Wait] = {}

    def look(self, topic: KafkaTopic, partition: int, reached: int, end: int | None) -> None:
        """Check whether a partition that is read at `reached` has waited for long.

        Its `end` includes open transactions, and is None while it is not known. The topic is asked where the committed
        messages end, which may raise `Unreachable` or `SourceError`.
        """
        wait, now = self._waits.get(partition), time.monotonic()
        if wait is not None and wait.offset != reached:
            del self._waits[partition]
            if wait.logged:
                _log.info(
                    "%s, partition %d: the transaction at offset %d has ended, reading continues after %.0f s",
                    *(self._place, partition, wait.offset, now - wait.since),
                )
                self._sum_up()
            wait = None
        if end is None or end <= reached:
            self._waits.pop(partition, None)
        elif wait is None:
            self._waits[partition] = _Wait(reached, now)
        elif not wait.logged and now - wait.since > TOLD_AFTER_SECONDS:
            if topic.bounds([partition])[partition].end > reached:
                wait.since = now  # the broker is slow, and no transaction is open
                return
            wait.logged = True
            _log.warning(
                "%s, partition %d: the transaction that began at offset %d has been open for more than %d s, and the "
                "%d offsets from there on are not read until it ends: fix or stop its producer "
                "(kafka-transactions.sh finds it), or the broker ends it after the producer's transaction.timeout.ms",
                *(self._place, partition, wait.offset, now - wait.since, end - wait.offset),
            )
            self._sum_up()

    def found(self, partition: int, offset: int, committed: int) -> None:
        """Report an open transaction that began at offset `committed`, before the offset at which reading continues."""
        wait = self._waits.get(partition)
        if wait is not None and wait.logged and wait.offset == offset:
            return  # the connection was lost meanwhile
        _log.warning(
            "%s, partition %d: a transaction that began at offset %d is still open, and offsets %d to %d were read "
            "before it ended, with isolation_level: read_uncommitted: reading waits at offset %d until it ends",
            *(self._place, partition, committed, committed, offset - 1, offset),
        )
        self._waits[partition] = _Wait(offset, time.monotonic(), logged=True)
        self._sum_up()

    def _sum_up(self) -> None:
        waiting = sorted((partition, wait.offset) for partition, wait in self._waits.items() if wait.logged)
        places = ", ".join(f"partition {partition} at offset {offset}" for partition, offset in waiting)
        self.health_problem = f"reading waits for a transaction that is still open ({places})" if waiting else None
