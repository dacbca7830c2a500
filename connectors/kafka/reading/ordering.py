"""Which order the partitions of a topic are handed out in: one partition has its own, and may get company."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from connectors.kafka.reading.buffers import Buffers, Stretch
from connectors.kafka.reading.order import Entry, LoggedOrder, Order, OrderLog
from connectors.ports import SourceError

__all__ = ["SingleOrder", "logged_order", "order_from_now_on"]


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
    path: Path, kept: int, offsets: Mapping[int, int], positions: Mapping[int, int], end: Callable[[int], int]
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
    end
        Tells where a partition ends that was the only one at the checkpoint. How much of it was handed out since then
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
        alone = Entry(partition, 0, max(offset, end(partition)))
    return _open(path, kept, offsets, positions, alone)


def order_from_now_on(path: Path, kept: int, alone: Entry) -> Order:
    """Make the order of partitions that is written down from where the first one gets company on.

    Parameters
    ----------
    path
        The file of the log, which begins here.
    kept
        How many checkpoints are kept.
    alone
        What was handed out of the first one while it was the only one: before everything that is logged from now on.

    Raises
    ------
    SourceError
        Where the log cannot be written.

    """
    offsets = {alone.partition: alone.end}
    return _open(path, kept, offsets, offsets, alone)


def _open(
    path: Path, kept: int, offsets: Mapping[int, int], positions: Mapping[int, int], first: Entry | None
) -> LoggedOrder:
    log = OrderLog(path, kept)
    try:
        replayed = log.open(positions, first)
    except OSError as error:
        raise SourceError(f"{path}: cannot be written: {error.strerror}") from None
    return LoggedOrder(log, replayed, offsets)
