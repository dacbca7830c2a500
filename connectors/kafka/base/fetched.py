"""What a fetch of a partition holds: each record that can be read, and the offsets of those that cannot."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from kafka import errors
from kafka.consumer.fetcher import Fetcher
from kafka.record.default_records import DefaultRecord, DefaultRecordBatch

from streamkernel.compute.record_batches import TIMESTAMP
from streamkernel.connectors.kafka.base.messages import Messages
from streamkernel.connectors.ports import SourceError

__all__ = ["FetchedRecords", "Unreadable"]


class Unreadable(Exception):
    """The messages of a partition from `first` up to, and without, `end` cannot be read."""

    def __init__(self, partition: int, first: int, end: int, reason: str) -> None:
        super().__init__(reason)
        self.partition, self.first, self.end = partition, first, end


class FetchedRecords(Fetcher.PartitionRecords):  # type: ignore[misc]
    """The records of a fetch, in columns; where kafka-python fails to unpack a batch, `take` raises `Unreadable`."""

    def __init__(self, fetch_offset: int, tp: Any, records: Any, *rest: Any, **named: Any) -> None:
        self._batches = _Batches(records)
        self._later: Exception | None = None
        super().__init__(fetch_offset, tp, self._batches, *rest, **named)

    def take(self, n: int | None = None) -> _Taken:
        """Return the next messages: whole batches, until there are `n` or more.

        Raises
        ------
        Unreadable
            Where a batch is damaged.
        SourceError
            Where it is not, but needs a library or more memory.

        """
        if self._later is not None:
            later, self._later = self._later, None
            raise later
        found: list[Any] = []
        count = 0
        try:
            while self and (n is None or count < n) and (some := super().take(1)):
                found += some
                count += len(some[0].value) if _is_batch(some[0]) else 1
        except Exception as error:
            self._later = self._failure(error)
            if not found:
                return self.take()
        return self._taken(found)

    def _taken(self, found: list[Any]) -> _Taken:
        chunks: list[Messages] = []
        for whole, some in groupby(found, _is_batch):
            if whole:
                chunks += [one.value for one in some]
            else:  # of the formats before, or of a batch that is odd
                chunks.append(Messages.of(some))
        if not chunks:
            return _Taken()
        chunks[0] = chunks[0][chunks[0].before(self.fetch_offset) :]
        return _Taken([Messages.joined(chunks)])

    def _failure(self, error: Exception) -> Exception:
        partition, first = self.topic_partition.partition, max(self.next_fetch_offset, self.fetch_offset)
        place = f"partition {partition}, offset {first}"
        if isinstance(error, errors.UnsupportedCodecError | NotImplementedError):
            return SourceError(
                f"{place}: the compression of the messages is not installed here "
                f"({error.args[0] if error.args else error}): pip install 'streamkernel[kafka-codecs]'"
            )
        if isinstance(error, MemoryError):
            return SourceError(
                f"{place}: there is not enough memory to decompress the messages: give the process more, or lower "
                "fetch_max_bytes under options"
            )
        batch, end = self._batches.last, first + 1
        if batch is not None and batch.magic == 2 and batch.base_offset <= first < batch.next_offset:
            end = batch.next_offset
        return Unreadable(partition, first, end, f"{type(error).__name__}: {error}"[:200])


def _is_batch(record: Any) -> bool:
    """Return whether what kafka-python takes for a record is a batch."""
    return isinstance(record.value, Messages)


class _Taken(list[Messages]):
    """Chunks of messages, whose length is what the consumer counts: messages."""

    def __len__(self) -> int:
        return sum(map(len, self))


class _Batches:
    """The batches of a fetch, as `Fetcher.PartitionRecords` asks for them; `last` is the one it works on."""

    def __init__(self, records: Any) -> None:
        self._records = records
        self.last: Any = None

    def next_batch(self) -> Any:
        batch = self._records.next_batch()
        self.last = _Batch(batch) if batch is not None and batch.magic == 2 else batch
        return self.last


class _Batch(DefaultRecordBatch):  # type: ignore[misc]
    """A batch that hands out its records as if they were one, whose value is all of them in columns.

    Batches that are damaged or odd are left to kafka-python, which says what is wrong, after the records before. Here a
    transaction's end without its marker is sound.
    """

    _buffer: bytearray
    _tried = _done = False

    def __init__(self, batch: DefaultRecordBatch) -> None:
        for name in DefaultRecordBatch.__slots__:  # without one more copy of the bytes
            setattr(self, name, getattr(batch, name))

    def __next__(self) -> Any:
        if self.is_control_batch and not self.records_count:
            return None  # compaction took the marker, and keeps the batch for what it says of its producer
        if self._done:
            raise StopIteration
        if self._tried or self.is_control_batch:
            return super().__next__()
        self._tried = True
        first = 0 if self.compression_type else self.HEADER_STRUCT.size
        data = memoryview(self._buffer)[first:]
        messages = Messages.in_batch(data, self.base_offset, self.first_timestamp, self.records_count)
        if messages is None:
            return super().__next__()
        if self.timestamp_type:  # the broker's
            messages.columns[TIMESTAMP] = self.max_timestamp
        self._done = True
        return DefaultRecord(len(data), messages.offsets[-1], -1, 0, None, messages, [])
