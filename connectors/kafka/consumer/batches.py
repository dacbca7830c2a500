"""Reads batches of messages in which a record is odd: each record that can be read is read.

For kafka-python a header name that is not UTF-8 ends its batch: all records after it are lost. And the end of a
transaction that compaction has emptied is an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.util import decode_varint

__all__ = ["OddHeaders", "mend"]


class OddHeaders(list[tuple[str, bytes | None]]):
    """The headers of a record with a name that is not UTF-8: there, ``?`` replaces bytes beyond ASCII.

    Its `detail` says which byte.
    """

    def __init__(self, headers: Iterable[tuple[str, bytes | None]], detail: str) -> None:
        super().__init__(headers)
        self.detail = detail


def mend(consumer: Any) -> None:
    """Make a `kafka.KafkaConsumer` read records with header names that are not UTF-8: they have `OddHeaders`.

    Looking for such names takes time. A partition in which there is one is fetched once more from there on, and its
    names are checked from then on.
    """
    odd_names: set[int] = set()

    class PartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]
        def _unpack_records(self, tp: Any, records: Any, *deserializers: Any) -> Any:
            batches = _MendedBatches(records, tp.partition in odd_names)
            return super()._unpack_records(tp, batches, *deserializers)

        def take(self, n: int | None = None) -> Any:
            try:
                return super().take(n)
            except CorruptRecordError as error:
                # Of a record, kafka-python decodes nothing but the names of its headers.
                if not isinstance(error.__context__, UnicodeDecodeError):
                    raise
            odd_names.add(self.topic_partition.partition)
            self.drain()
            return []

    consumer._fetcher.PartitionRecords = PartitionRecords


class _MendedBatches:
    """The batches of a fetch, as `Fetcher.PartitionRecords` asks for them."""

    def __init__(self, records: Any, mends: bool) -> None:
        self._records = records
        self._mends = mends

    def next_batch(self) -> Any:
        batch = self._records.next_batch()
        if batch is None:
            return None
        if batch.magic == 2 and batch.is_control_batch and not batch.records_count:
            return _EmptiedMarker(batch._buffer)
        return _MendedBatch(batch._buffer) if self._mends and batch.magic == 2 else batch


class _EmptiedMarker(DefaultRecordBatch):  # type: ignore[misc]
    """The end of a transaction whose records are all gone: compaction keeps it, empty, for its producer's sake."""

    def __next__(self) -> None:
        """Give no marker, where kafka-python takes it for granted that there is one."""
        return


class _MendedBatch(DefaultRecordBatch):  # type: ignore[misc]
    """A batch (version 2) that continues after a record with a header name that is not UTF-8."""

    _buffer: bytearray
    _pos: int

    def _headers(self) -> tuple[int, int]:
        """Return how many headers the next record has, and where they begin."""
        # The length of the record, its attributes, time and offset.
        place = self._pos
        for _ in range(4):
            _, place = decode_varint(self._buffer, place)
        # The key and the value.
        for _ in range(2):
            place = self._behind(place)
        count, place = decode_varint(self._buffer, place)
        return count, place

    def _behind(self, place: int) -> int:
        """Return where the bytes end that follow their length at a place."""
        length, begin = decode_varint(self._buffer, place)
        return int(begin + max(0, length))

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except CorruptRecordError as error:
            if not isinstance(error.__context__, UnicodeDecodeError):
                raise
        detail = self._mend_names()
        record = super().__next__()
        record._headers = OddHeaders(record.headers, detail)
        return record

    def _mend_names(self) -> str:
        """Put ``?`` for each byte beyond ASCII into the next record's names that are not UTF-8; return what was odd."""
        detail = ""
        count, place = self._headers()
        for _ in range(count):
            end = self._behind(place)
            _, begin = decode_varint(self._buffer, place)
            name = bytes(self._buffer[begin:end])
            try:
                name.decode()
            except UnicodeDecodeError as error:
                detail = f"the name of a header: byte {name[error.start]:#04x} at {error.start} is not UTF-8"
                self._buffer[begin:end] = bytes(byte if byte < 0x80 else ord("?") for byte in name)
            place = self._behind(end)
        return detail
