"""Batches in which a record is odd: all the others are read."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from kafka.consumer.fetcher import IsolationLevel
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder
from kafka.record.util import calc_crc32c
from kafka.structs import TopicPartition

from streamkernel.connectors.kafka.base.fetched import FetchedRecords
from streamkernel.connectors.ports import SourceError


def unpacked(data: bytes, **settings: Any) -> Any:
    """Unpack a batch as a consumer does."""
    return FetchedRecords(0, TopicPartition("t", 0), MemoryRecords(data), **settings)


def everything(part: Any) -> list[Any]:
    """Take to the end of the part, as a consumer does."""
    taken: list[Any] = []
    while part:
        for messages in part.take(250):
            taken += messages
    return taken


class Name(str):
    """A name that is written as bytes which are not UTF-8."""

    __slots__ = ()

    def encode(self, *_: object) -> bytes:
        return b"caf\xe9\xff"


@pytest.mark.parametrize("compression", [0, 1])
def test_a_header_name_that_is_not_text_is_read(compression: int) -> None:
    builder = MemoryRecordsBuilder(2, compression, 2**30)
    odd: list[Any] = [("h", b"v"), (Name(), b"\xff\0"), ("n", None)]
    for number in range(9):
        builder.append(1, b"key", b"%d" % number, odd if number in (2, 4, 5, 8) else [("h", b"v")])
    builder.close()
    taken = everything(unpacked(bytes(builder.buffer())))
    assert [(record.offset, record.key, record.value) for record in taken] == [(n, b"key", b"%d" % n) for n in range(9)]
    for record in taken:
        is_odd = record.offset in (2, 4, 5, 8)
        assert record.headers == [("h", b"v"), *([("caf\\xe9\\xff", b"\xff\0"), ("n", None)] if is_odd else [])]


def test_memory_that_is_short_is_no_fault_of_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bytes:
        raise MemoryError

    monkeypatch.setattr(DefaultRecordBatch, "_maybe_uncompress", fail)
    builder = MemoryRecordsBuilder(2, 4, 2**30)
    builder.append(1, b"key", bytes(1000), [])
    builder.close()
    with pytest.raises(SourceError, match=r"partition 0, offset 0: .*not enough memory"):
        unpacked(bytes(builder.buffer())).take()


def emptied(first: int, last: int, control: bool) -> bytes:
    """A transactional batch whose records compaction took, and which is kept for what it says of its producer."""
    attributes = 0x10 | (0x20 if control else 0)
    body = struct.pack(">hiqqqhii", attributes, last - first, 1, 1, 7, 3, -1, 0)
    return struct.pack(">qiibI", first, 9 + len(body), 0, 2, calc_crc32c(body)) + body


@pytest.mark.parametrize("control", [True, False])
@pytest.mark.parametrize("level", [IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED])
def test_a_batch_that_compaction_emptied_is_no_damage(control: bool, level: IsolationLevel) -> None:
    part = unpacked(emptied(0, 4, control) + emptied(5, 5, control), isolation_level=level)
    assert everything(part) == []
    assert part.next_fetch_offset == 6
