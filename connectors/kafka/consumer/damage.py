"""Finds the messages that a consumer cannot read, and why."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from kafka import errors
from kafka.consumer.fetcher import Fetcher

from streamkernel.connectors.ports import SourceError

__all__ = ["Unreadable", "damage"]


class Unreadable(Exception):
    """The messages of a partition from `first` up to, and without, `end` cannot be read: `fault` is their reason."""

    def __init__(self, partition: int, first: int, end: int, reason: str, fault: str = "corrupt") -> None:
        super().__init__(reason)
        self.partition, self.first, self.end, self.fault = partition, first, end, fault


def damage(error: Exception, ends: Callable[[int], int | None]) -> Unreadable | None:
    """Return which messages a `kafka.KafkaConsumer.poll` failed to read; None where the error is another one.

    The client says it nowhere. But the error shows what it was unpacking: the part of the partition
    it fetched, and the batch of messages, which is all that is lost. `ends` gives the end of a partition, where known.

    Raises
    ------
    SourceError
        Where the messages are undamaged, and could be read with a library or with more memory.

    """
    part, batch = None, None
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        here = trace.tb_frame.f_locals
        if isinstance(here.get("self"), Fetcher.PartitionRecords):
            part, batch = here["self"], here.get("batch", batch)
        trace = trace.tb_next
    if part is None:
        return None
    partition = part.topic_partition.partition
    if isinstance(error, errors.UnsupportedCodecError | NotImplementedError):
        raise SourceError(
            f"partition {partition}, offset {part.next_fetch_offset}: the compression of the messages is not "
            f"installed here ({error.args[0] if error.args else error}): "
            "pip install 'streamkernel[kafka-codecs]'"
        )
    if isinstance(error, MemoryError):
        raise SourceError(
            f"partition {partition}, offset {part.next_fetch_offset}: there is not enough memory to decompress the "
            "messages: give the process more, or lower fetch_max_bytes under options"
        )
    first = max(part.next_fetch_offset, part.fetch_offset)
    end = first + 1
    if batch is not None and batch.magic == 2 and batch.base_offset <= first < batch.next_offset:
        # What a damaged batch says of its own length is believed up to where the partition ends.
        end = max(end, min(batch.next_offset, ends(partition) or end))
    return Unreadable(partition, first, end, f"{type(error).__name__}: {error}"[:200])
