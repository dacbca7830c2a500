"""What a fetch of a partition holds: each record that can be read, and the offsets of those that cannot."""

from __future__ import annotations

from typing import Any

from kafka import errors
from kafka.consumer.fetcher import Fetcher
from kafka.record.default_records import DefaultRecordBatch

from streamkernel.connectors.ports import SourceError

__all__ = ["FetchedRecords", "Unreadable"]


class Unreadable(Exception):
    """The messages of a partition from `first` up to, and without, `end` cannot be read."""

    def __init__(self, partition: int, first: int, end: int, reason: str) -> None:
        super().__init__(reason)
        self.partition, self.first, self.end = partition, first, end


class FetchedRecords(Fetcher.PartitionRecords):  # type: ignore[misc]
    """The records of a fetch; where kafka-python fails to unpack a batch, `take` raises `Unreadable`."""

    def __init__(self, fetch_offset: int, tp: Any, records: Any, *rest: Any, **named: Any) -> None:
        self._batches = _Batches(records)
        super().__init__(fetch_offset, tp, self._batches, *rest, **named)

    def take(self, n: int | None = None) -> Any:
        """Return the next `n` records.

        Raises
        ------
        Unreadable
            Where a batch is damaged.
        SourceError
            Where it is not, but needs a library or more memory.

        """
        try:
            return super().take(n)
        except Exception as error:
            raise self._failure(error) from error

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


class _Batches:
    """The batches of a fetch, as `Fetcher.PartitionRecords` asks for them; `last` is the one it works on."""

    def __init__(self, records: Any) -> None:
        self._records = records
        self.last: Any = None

    def next_batch(self) -> Any:
        batch = self._records.next_batch()
        self.last = _Batch(batch._buffer) if batch is not None and batch.magic == 2 else batch
        return self.last


class _Batch(DefaultRecordBatch):  # type: ignore[misc]
    """A batch that takes two things for sound which are: odd header names, and a transaction's end without its marker.

    For kafka-python a header name that is not UTF-8 ends the batch, and all records after it are lost.
    """

    _buffer: bytearray

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except StopIteration:
            if self.is_control_batch and not self.records_count:
                return None  # compaction took the marker, and keeps the batch for what it says of its producer
            raise
        except errors.CorruptRecordError as error:
            # kafka-python decodes nothing of a record but the names of its headers.
            if not isinstance(error.__context__, UnicodeDecodeError):
                raise
        self._buffer = _LenientBytes(self._buffer)
        return super().__next__()


class _LenientBytes(bytearray):
    r"""Bytes that decode to text whatever they are.

    Examples
    --------
    >>> _LenientBytes(b"caf\xe9!")[:4].decode("utf-8")
    'caf\\xe9'

    """

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return _LenientBytes(found) if isinstance(key, slice) else found

    def decode(self, encoding: str = "utf-8", errors: str = "backslashreplace") -> str:
        return super().decode(encoding, errors)
