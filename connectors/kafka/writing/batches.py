"""Batches of lines: what `KafkaProducer.send` would make of them one by one, put together at once."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from kafka import codec
from kafka.producer.future import FutureRecordMetadata
from kafka.producer.producer_batch import ProducerBatch
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.util import calc_crc32c

from streamkernel.compute.record_batches import write_records
from streamkernel.connectors.kafka.writing.line import LineParts

__all__ = ["LineBatch", "LineRecords", "batched"]

_HEADER_BYTES: int = DefaultRecordBatch.HEADER_STRUCT.size
# What a checksum covers; and all before that.
_COVERED, _BEFORE = struct.Struct(">hiqqqhii"), struct.Struct(">qiibI")
_NAP_SECONDS = 0.002
# The bytes of a record in addition to its parts: its length and six numbers, of ten bytes at most, and one more.
_MOST_NUMBERS = 71


def batched(
    records: Sequence[LineParts], times: Sequence[int], most: int, compression: str | None
) -> Iterator[LineRecords]:
    """Make batches of at most `most` bytes, or of one record, from records and their times in milliseconds.

    >>> some = [(b"key", b"a line", b"", 0)] * 3
    >>> [batch.next_offset() for batch in batched(some, [5, 6, 6], 100, None)]
    [2, 1]

    """
    keys, values, headers, counts = zip(*records, strict=True)
    sizes = np.empty((len(times), 3), np.int64)
    sizes[:, 0] = [-1 if key is None else len(key) for key in keys]
    sizes[:, 1], sizes[:, 2] = list(map(len, values)), list(map(len, headers))
    data = np.frombuffer(b"".join([part or b"" for record in records for part in record[:3]]), np.uint8)
    out, cuts = np.empty(len(data) + _MOST_NUMBERS * len(times), np.uint8), np.empty((len(times) + 1, 2), np.int64)
    n = write_records(data, sizes, np.array(counts), np.array(times), most - _HEADER_BYTES, out, cuts)
    for (first, begin), (stop, end) in pairwise(cuts[: n + 1].tolist()):
        yield LineRecords(out[begin:end].tobytes(), times[first:stop], compression)


class LineRecords:
    """The records of a batch, in place of kafka-python's `MemoryRecordsBuilder`, and full from the beginning."""

    producer_id = producer_epoch = base_sequence = -1

    def __init__(self, data: bytes, times: Sequence[int], compression: str | None) -> None:
        self._data, self._n_records = data, len(times)
        self._first, self._last = times[0], max(times)
        self._attributes = 0
        if compression is not None:
            smaller = getattr(codec, f"{compression}_encode")(data)
            if len(smaller) < len(data):
                self._data = smaller
                self._attributes = getattr(DefaultRecordBatch, f"CODEC_{compression.upper()}")

    def set_producer_state(
        self, producer_id: int, producer_epoch: int, base_sequence: int, is_transactional: bool
    ) -> None:
        """Take the numbers by which the broker knows a batch that comes twice."""
        self.producer_id, self.producer_epoch, self.base_sequence = producer_id, producer_epoch, base_sequence
        self._attributes |= DefaultRecordBatch.TRANSACTIONAL_MASK * is_transactional

    def buffer(self) -> bytes:
        """Return the batch as it is sent."""
        n, known = self._n_records, (self.producer_id, self.producer_epoch, self.base_sequence)
        covered = _COVERED.pack(self._attributes, n - 1, self._first, self._last, *known, n) + self._data
        # From the length on, four bytes of the leader's epoch, the format and the checksum come first.
        return _BEFORE.pack(0, 9 + len(covered), 0, 2, calc_crc32c(covered)) + covered

    def size_in_bytes(self) -> int:
        """Return the length of the batch."""
        return _HEADER_BYTES + len(self._data)

    def next_offset(self) -> int:
        """Return how many records there are."""
        return self._n_records

    def is_full(self) -> bool:
        """Return True: nothing is waited for."""
        return True

    def close(self) -> None:
        """Do nothing: no record is added."""


class LineBatch(ProducerBatch):  # type: ignore[misc]
    """A batch with one receipt for all its lines, or one each, once the broker refuses it or kafka-python parts it.

    The `lines` are numbers by which others know them. `stop` is called with each error, on the thread that sends.
    """

    def __init__(
        self, place: Any, records: LineRecords, lines: Sequence[int], stop: Callable[[Exception], None]
    ) -> None:
        super().__init__(place, records)
        self.lines = lines
        self._stop = stop
        del self._record_futures  # made where it is asked for
        self.produce_future.add_callback(lambda answer: answer[2] is None or self._record_futures)  # each fails

    @cached_property
    def _record_futures(self) -> list[Any]:
        futures = (FutureRecordMetadata(self.produce_future, n, -1, None, -1, -1, -1) for n in range(len(self.lines)))
        return [future.add_errback(self._stop) for future in futures]

    @property
    def _each(self) -> list[Any] | None:
        # Only the thread that sends makes them.
        return self.__dict__.get("_record_futures")

    def wait(self, seconds: float) -> None:
        """Wait until the broker answers, at most so long."""
        self.produce_future.wait(seconds)
        if self._each is not None:  # it answers for the parts
            time.sleep(_NAP_SECONDS)

    @property
    def acked(self) -> bool:
        """Whether the broker has all lines."""
        if self._each is not None:
            return all(future.succeeded() for future in self._each)
        return bool(self.produce_future.is_done) and self.produce_future.value[2] is None

    @property
    def failures(self) -> list[tuple[int, Exception]]:
        """The lines that failed, and why."""
        each = zip(self.lines, self._each or (), strict=False)
        return [(line, future.exception) for line, future in each if future.failed()]
