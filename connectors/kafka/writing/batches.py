"""Batches of lines: what `KafkaProducer.send` would make of them one by one, put together at once."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from kafka import codec
from kafka.producer.future import FutureRecordMetadata
from kafka.producer.producer_batch import ProducerBatch
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.util import calc_crc32c

from streamkernel.connectors.kafka.writing.line import varint

__all__ = ["LineBatch", "LineRecords", "in_runs"]

_HEADER_BYTES: int = DefaultRecordBatch.HEADER_STRUCT.size
# What a checksum covers; and all before that.
_COVERED, _BEFORE = struct.Struct(">hiqqqhii"), struct.Struct(">qiibI")
_NAP_SECONDS = 0.002


def in_runs(records: Iterable[tuple[bytes, int]], most: int) -> Iterator[tuple[list[bytes], int, int]]:
    """Cut records into batches of at most `most` bytes, or of one record, with the first and the last of their times.

    Of each there is what `Provenance.record` returns, and its time in milliseconds.

    >>> [records for records, _, _ in in_runs([(b"a", 5), (b"b", 6), (b"c", 6)], 72)]
    [[b'\\x08\\x00\\x00\\x00a', b'\\x08\\x00\\x02\\x02b'], [b'\\x08\\x00\\x00\\x00c']]

    """
    done: list[bytes] = []
    first = last = room = 0
    for rest, at in records:
        one = _record(len(done), at - first, rest)
        if done and len(one) > room:
            yield done, first, last
            done = []
        if not done:
            first, last, room = at, at, most - _HEADER_BYTES
            one = _record(0, 0, rest)
        done.append(one)
        room -= len(one)
        last = max(last, at)
    if done:
        yield done, first, last


def _record(number: int, later: int, rest: bytes) -> bytes:
    delta, place = varint(later), varint(number)
    return b"".join((varint(1 + len(delta) + len(place) + len(rest)), b"\0", delta, place, rest))


class LineRecords:
    """The records of a batch, in place of kafka-python's `MemoryRecordsBuilder`, and full from the beginning."""

    producer_id = producer_epoch = base_sequence = -1

    def __init__(self, records: list[bytes], first: int, last: int, compression: str | None) -> None:
        self._n_records, self._first, self._last = len(records), first, last
        self._attributes = 0
        self._data = b"".join(records)
        if compression is not None:
            smaller = getattr(codec, f"{compression}_encode")(self._data)
            if len(smaller) < len(self._data):
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
