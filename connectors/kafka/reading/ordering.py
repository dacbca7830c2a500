"""Which order the partitions of a topic are handed out in: one partition has its own, and may get company."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from connectors.kafka.reading.buffers import Buffers, Stretch
from connectors.kafka.reading.order import Entry, LoggedOrder, Order, OrderLog
from connectors.ports import SourceError

__all__ = ["SingleOrder", "logged_order"]


class SingleOrder(Order):
    """That of one partition, its own, whatever others there are.

    Parameters
    ----------
    partition
        Which one.
    begin
        Where it is read on.

    Attributes
    ----------
    handed
        What was handed out of it.

    """

    def __init__(self, partition: int, begin: int) -> None:
        self.handed = Entry(partition, 0, begin)

    def take(self, buffers: Buffers, most: int) -> Stretch | None:
        """Take from that partition; see `Order.take`."""
        stretch = buffers.take(self.handed.partition, most)
        if stretch is not None:
            self.handed = self.handed._replace(end=stretch.end)
        return stretch


def logged_order(
    path: Path, kept: int, offsets: Mapping[int, int], positions: Mapping[int, int], alone: Entry | None = None
) -> Order:
    """Make the order of partitions that is written down; of one partition nothing has to be.

    Parameters
    ----------
    path
        The file of the log.
    kept
        How many checkpoints are kept.
    offsets
        At which offset each partition is read on.
    positions
        Where the checkpoint goes on, by partition.
    alone
        What was handed out of a partition while it was the only one: before everything that is logged from now on.
        None: the log is there, or begins here.

    Raises
    ------
    SourceError
        Where the log cannot be written.

    """
    if len(offsets) == 1 and alone is None:
        ((partition, offset),) = offsets.items()
        return SingleOrder(partition, offset)
    if alone is None and len(positions) == 1 and not path.exists():
        ((partition, offset),) = positions.items()
        alone = Entry(partition, 0, offset)
    log = OrderLog(path, kept)
    try:
        replayed = log.open(positions if alone is None else {})
        if alone is not None:
            log.append(alone)
    except OSError as error:
        raise SourceError(f"{path}: cannot be written: {error.strerror}") from None
    return LoggedOrder(log, replayed, offsets)
