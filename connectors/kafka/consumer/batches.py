"""Reads batches of messages whatever a producer put into them: in bounded memory, each record that can be read.

kafka-python unpacks a batch as far as its lengths and counts say. Three of them cost much more memory than bytes on the
network: what is compressed, the number of headers of a record (an empty one is two bytes, and sixty in memory), and
both together. And a header's name that is not UTF-8 ends its batch there: all records after it are lost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.legacy_records import LegacyRecordBatch
from kafka.record.util import decode_varint

from streamkernel.connectors.kafka.consumer.decompression import decompress
from streamkernel.connectors.kafka.consumer.transaction_index import TransactionIndex

__all__ = ["MOST_BYTES", "OddHeaders", "bound"]

MOST_BYTES = 2**26
"""How many bytes a batch may have once it is decompressed, by default."""

_MOST_HEADERS = 10_000
# The headers of a batch that is shorter than this cannot take much memory, and need not be counted.
LONG_BATCH = 2**20


class OddHeaders(list[tuple[str, bytes | None]]):
    """The headers of a record with a name that is not UTF-8: there, ``?`` replaces bytes beyond ASCII.

    Its `detail` says which byte.
    """

    def __init__(self, headers: Iterable[tuple[str, bytes | None]], detail: str) -> None:
        super().__init__(headers)
        self.detail = detail


def bound(consumer: Any, most_bytes: int, indexes: defaultdict[int, TransactionIndex] | None = None) -> None:
    """Make a `kafka.KafkaConsumer` unpack no batch that has more bytes once it is decompressed.

    Its polls raise `TooLargeError` for one that has, and `CorruptRecordError` for more than 10,000 headers of a record
    in a long batch. Batches are noted in the index of their partition as they are read, where there are `indexes`.

    A record whose headers have a name that is not UTF-8 has `OddHeaders`. Looking for them takes time: a partition in
    which there is one is fetched once more from it on, and from then on looked at so.
    """
    odd_names: set[int] = set()

    class PartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]
        def _unpack_records(self, tp: Any, records: Any, *deserializers: Any) -> Any:
            index = None if indexes is None else indexes[tp.partition]
            batches = _BoundedBatches(records, most_bytes, index, tp.partition in odd_names)
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


class _BoundedBatches:
    """The batches of a fetch, as `Fetcher.PartitionRecords` asks for them."""

    def __init__(self, records: Any, most: int, index: TransactionIndex | None, mends: bool) -> None:
        self._records = records
        self._most = most
        self._index = index
        self._mends = mends

    def next_batch(self) -> Any:
        batch = self._records.next_batch()
        if batch is None:
            return None
        if self._index is not None:
            self._index.note(batch)
        if batch.magic == 2 and batch.is_control_batch and not batch.records_count:
            return _EmptiedMarker(batch._buffer)
        mends = self._mends and batch.magic == 2
        if not (batch.compression_type or batch.size_in_bytes > LONG_BATCH or mends):
            return batch
        kind = _MendedBatch if mends else _DefaultBatch
        bounded = _LegacyBatch(batch._buffer, batch.magic) if batch.magic < 2 else kind(batch._buffer)
        bounded.most = self._most
        return bounded


class _EmptiedMarker(DefaultRecordBatch):  # type: ignore[misc]
    """The end of a transaction whose records are all gone: compaction keeps it, empty, for its producer's sake."""

    def __next__(self) -> None:
        """Give no marker, where kafka-python takes it for granted that there is one."""
        return


class _DefaultBatch(DefaultRecordBatch):  # type: ignore[misc]
    """A batch of today's format."""

    most: int
    _buffer: bytearray
    _pos: int
    _decompressed: bool

    def __iter__(self) -> Iterator[Any]:
        if self.compression_type and not self._decompressed:
            data = bytes(memoryview(self._buffer)[self._pos :])
            self._buffer = bytearray(decompress(self.compression_type, data, self.most))
            self._pos = 0
            self._decompressed = True
        records: Iterator[Any] = super().__iter__()
        return self._counted(records) if len(self._buffer) > LONG_BATCH else records

    def _counted(self, records: Iterator[Any]) -> Iterator[Any]:
        while True:
            if self._next_record_index < self._num_records:
                self._count_headers()
            try:
                record = next(records)
            except StopIteration:
                return
            yield record

    def _count_headers(self) -> None:
        try:
            headers, _ = self._headers()
        except (ValueError, IndexError):
            return  # it is damaged, which is reported when it is read
        if headers > _MOST_HEADERS:
            raise CorruptRecordError(f"a record has {headers:,} headers, more than {_MOST_HEADERS:,}")

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


class _MendedBatch(_DefaultBatch):
    """A batch (version 2) that continues after a record with a header name that is not UTF-8."""

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


class _LegacyBatch(LegacyRecordBatch):  # type: ignore[misc]
    """A batch of the formats before Kafka 0.11, which still lie in old topics."""

    most: int

    def _decompress(self, key_offset: int) -> bytes:
        _, value = self._read_key_value(key_offset)
        if value is None:
            raise CorruptRecordError("Value of compressed message is None")
        return decompress(self.compression_type, value, self.most)
