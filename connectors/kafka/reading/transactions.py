"""Notices that reading waits for a transaction: what is behind its first record is not handed out until it ends."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from connectors.kafka.consumer.topic import Topic

__all__ = ["OpenTransactions"]

_log = logging.getLogger(__name__)

# Longer than most transactions take, and half of what Kafka gives one whose producer has died.
_SECONDS = 30.0


@dataclass
class _Stand:
    """Where reading stands in a partition while there is more, since when, and whether it is told."""

    offset: int
    since: float
    told: bool = False


class OpenTransactions:
    """Tells when reading waits for transactions that are still open, and when it goes on.

    Parameters
    ----------
    place
        What to call the topic in a log line.
    clock
        Gives seconds, and never goes back.

    Attributes
    ----------
    trouble
        Which partitions wait, None where none does; for any thread.

    """

    def __init__(self, place: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.trouble: str | None = None
        self._place = place
        self._clock = clock
        self._stands: dict[int, _Stand] = {}

    def look(self, topic: Topic, partition: int, reached: int, end: int | None) -> None:
        """Look at a partition.

        Parameters
        ----------
        topic
            Asked where what is committed ends, where reading has stood still for long.
        partition
            Which one.
        reached
            Where it is read on.
        end
            Where it ends, with what is not committed; None: not known yet.

        Raises
        ------
        Unreachable, SourceError
            When the topic cannot be asked.

        """
        stand, now = self._stands.get(partition), self._clock()
        if stand is not None and stand.offset != reached:
            self._go_on(partition, stand)
            stand = None
        if end is None or end <= reached:
            self._stands.pop(partition, None)
        elif stand is None:
            self._stands[partition] = _Stand(reached, now)
        elif not stand.told and now - stand.since > _SECONDS:
            if topic.bounds([partition])[partition].end <= reached:
                self._tell(partition, stand, end)
            else:
                stand.since = now

    def found(self, partition: int, offset: int, committed: int) -> None:
        """Tell of a transaction that is open and began before the place where a partition is to be read on.

        Parameters
        ----------
        partition
            Which one.
        offset
            Where it is to be read on.
        committed
            Where what is committed ends, before that place.

        """
        stand = self._stands.get(partition)
        if stand is not None and stand.told and stand.offset == offset:
            return  # the connection was lost meanwhile
        _log.warning(
            "%s, partition %d: a transaction that began at offset %d is still open, and offsets %d to %d were read "
            "before it ended, with isolation_level: read_uncommitted: reading waits at offset %d until it ends",
            *(self._place, partition, committed, committed, offset - 1, offset),
        )
        self._stands[partition] = _Stand(offset, self._clock(), told=True)
        self._sum_up()

    def _tell(self, partition: int, stand: _Stand, end: int) -> None:
        stand.told = True
        _log.warning(
            "%s, partition %d: the transaction that began at offset %d has been open for more than %d s, and the %d "
            "offsets from there on are not read until it ends: mend or end its producer (kafka-transactions.sh finds "
            "it), or the broker ends it after the producer's transaction.timeout.ms",
            *(self._place, partition, stand.offset, self._clock() - stand.since, end - stand.offset),
        )
        self._sum_up()

    def _go_on(self, partition: int, stand: _Stand) -> None:
        del self._stands[partition]
        if stand.told:
            _log.info(
                "%s, partition %d: the transaction at offset %d has ended, reading goes on after %.0f s",
                *(self._place, partition, stand.offset, self._clock() - stand.since),
            )
            self._sum_up()

    def _sum_up(self) -> None:
        waiting = sorted((partition, stand.offset) for partition, stand in self._stands.items() if stand.told)
        places = ", ".join(f"partition {partition} at offset {offset}" for partition, offset in waiting)
        self.trouble = f"reading waits for a transaction that is still open ({places})" if waiting else None
