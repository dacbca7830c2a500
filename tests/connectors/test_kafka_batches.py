"""What a batch may cost in memory: everything in it comes out, or it is refused before it takes more than its bound."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from kafka import codec as codecs
from kafka.consumer.fetcher import Fetcher, IsolationLevel
from kafka.errors import CorruptRecordError, UnsupportedCodecError
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder
from kafka.record.util import calc_crc32c
from kafka.structs import TopicPartition

from streamkernel.connectors.kafka.consumer import batches
from streamkernel.connectors.kafka.consumer.batches import OddHeaders, bound
from streamkernel.connectors.kafka.consumer.damage import Unreadable, damage
from streamkernel.connectors.kafka.consumer.decompression import TooLargeError, decompress

MEGABYTE = 2**20

CODECS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "gzip": (1, codecs.gzip_encode),
    "gzip of two members": (1, lambda data: gzip.compress(data[:7]) + gzip.compress(data[7:])),
    "snappy of Java's clients": (2, codecs.snappy_encode),
    "snappy": (2, snappy.compress),
    "lz4": (3, codecs.lz4_encode),
    "lz4 without its length": (3, lambda data: lz4.frame.compress(data, store_size=False)),
    "zstd": (4, codecs.zstd_encode),
    "zstd without its length": (4, zstandard.ZstdCompressor(write_content_size=False).compress),
}


@contextmanager
def memory(most: int) -> Iterator[None]:
    """See that Python's allocators are never asked for more than so many bytes at a time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", CODECS)
class TestDecompress:
    @given(data=st.binary(max_size=20_000) | st.integers(0, 300_000).map(bytes))
    def test_everything_comes_out(self, name: str, data: bytes) -> None:
        number, encode = CODECS[name]
        packed = bytes(encode(data))
        assert decompress(number, packed, len(data)) == data
        if data:
            with pytest.raises(TooLargeError, match="bytes once it is decompressed"):
                decompress(number, packed, len(data) - 1)

    def test_a_bomb_is_refused_for_little(self, name: str) -> None:
        number, encode = CODECS[name]
        bomb = bytes(encode(bytes(20 * MEGABYTE)))
        with memory(len(bomb) * 2 + 4 * MEGABYTE), pytest.raises(TooLargeError):
            decompress(number, bomb, MEGABYTE)

    def test_what_is_damaged_is_an_error(self, name: str) -> None:
        number, encode = CODECS[name]
        packed = bytes(encode(b"some text, " * 1000))
        for length in range(1, len(packed)):
            with contextless(Exception):
                assert len(decompress(number, packed[:length], 20_000)) <= 11_000

    @given(data=st.binary(max_size=300))
    def test_anything_else_ends(self, name: str, data: bytes) -> None:
        number, _ = CODECS[name]
        with contextless(Exception):
            assert len(decompress(number, data, 1000)) <= 1000


@contextmanager
def contextless(kind: type[Exception]) -> Iterator[None]:
    """Bear an error, but neither a crash nor a failed assertion."""
    try:
        yield
    except AssertionError:
        raise
    except kind:
        pass


def test_lengths_that_lie() -> None:
    """Four gigabytes, says the header of each."""
    huge = b"\xff\xff\xff\xff\x0f" + bytes(20)
    framed = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    frame = bytearray(lz4.frame.compress(bytes(100), store_size=True))
    with memory(2 * MEGABYTE):
        for data in (huge, framed + struct.pack(">i", len(huge)) + huge):
            with pytest.raises(TooLargeError):
                decompress(2, data, MEGABYTE)
        for length in (-1, 0, 2**31 - 1):
            with pytest.raises(CorruptRecordError):
                decompress(2, framed + struct.pack(">i", length) + huge, MEGABYTE)
        with pytest.raises(CorruptRecordError):
            decompress(3, bytes(frame[:30]), MEGABYTE)


@pytest.mark.parametrize(("number", "name"), [(3, "lz4"), (2, "snappy"), (4, "zstd")])
def test_a_library_that_is_missing(number: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codecs, name, None)
    with pytest.raises(UnsupportedCodecError, match=f"Libraries for {name} compression codec not found"):
        decompress(number, b"", 1)
    with pytest.raises(UnsupportedCodecError, match="Unrecognized compression type: 7"):
        decompress(7, b"", 1)


def built(values: list[bytes], magic: int = 2, compression: int = 4, headers: Any = ()) -> bytes:
    builder = MemoryRecordsBuilder(magic, compression, 2**30)
    for value in values:
        builder.append(1, b"key", value, list(headers))
    builder.close()
    return bytes(builder.buffer())


def unpacked(data: bytes, most: int) -> Any:
    """Unpack a batch as a consumer that is bound does."""
    consumer = SimpleNamespace(_fetcher=SimpleNamespace())
    bound(consumer, most)
    return consumer._fetcher.PartitionRecords(0, TopicPartition("t", 0), MemoryRecords(data))


def everything(part: Any) -> list[Any]:
    """Take to the end of the part, as a consumer does."""
    taken: list[Any] = []
    while part:
        taken += part.take(250)
    return taken


@pytest.mark.parametrize("magic", [1, 2])
@pytest.mark.parametrize("compression", [0, 1, 2, 3, 4])
def test_a_batch_is_what_it_was(magic: int, compression: int) -> None:
    if magic == 1 and compression == 4:
        return
    values = [b"x" * (number * 7 % 4000) for number in range(600)]
    data = built(values, magic, compression, [("name", b"value")] if magic == 2 else ())
    plain = Fetcher.PartitionRecords(0, TopicPartition("t", 0), MemoryRecords(data)).take()
    assert everything(unpacked(data, 2**26)) == plain
    assert [record.value for record in plain] == values


@pytest.mark.parametrize("magic", [1, 2])
def test_a_batch_over_the_bound_is_known_by_its_offsets(magic: int) -> None:
    part = unpacked(built([bytes(MEGABYTE)] * 5, magic, 1), 2 * MEGABYTE)
    with memory(8 * MEGABYTE), pytest.raises(TooLargeError) as caught:
        part.take()
    told = damage(caught.value, lambda _: 1000)
    assert isinstance(told, Unreadable)
    assert (told.partition, told.first, told.fault) == (0, 0, "too_long")
    assert told.end == (5 if magic == 2 else 1)
    assert str(told) == (
        "the batch has more than 2,097,152 bytes once it is decompressed: raise limits.max_batch_bytes to take such "
        "records"
    )


def test_headers_are_counted_where_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty one is two bytes in the batch and sixty in memory."""
    many = [("", None)] * 600_000
    part = unpacked(built([b"1"], headers=many), 2**26)
    with memory(12 * MEGABYTE), pytest.raises(CorruptRecordError, match=r"600,000 headers.* 10,0"):
        part.take()
    few = [("name", b"value")] * 9_999
    data = built([bytes(MEGABYTE), b"2"], headers=few)
    assert [len(record.headers) for record in everything(unpacked(data, 2**26))] == [9_999] * 2
    monkeypatch.setattr(batches, "LONG_BATCH", 0)
    values = [b"x" * number for number in range(300)]
    assert [record.value for record in everything(unpacked(built(values), 2**26))] == values
    broken = built([b"x" * 100] * 10, compression=0)
    for length in range(61, len(broken), 37):
        cut = broken[:8] + struct.pack(">i", length - 12) + broken[12:length]
        part = unpacked(cut, 2**26)
        part.check_crcs = False
        with pytest.raises(CorruptRecordError):
            list(part.record_iterator)


class Name(str):
    """A name that is written as bytes which are not UTF-8."""

    __slots__ = ()

    def encode(self, *_: object) -> bytes:
        return b"caf\xe9\xff"


@pytest.mark.parametrize("compression", [0, 1])
@pytest.mark.parametrize("counted", [True, False])
def test_a_header_name_that_is_not_text_leaves_the_records_behind_it(
    compression: int, counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "LONG_BATCH", 0 if counted else 2**20)
    builder = MemoryRecordsBuilder(2, compression, 2**30)
    odd: list[Any] = [("h", b"v"), (Name(), b"\xff\0"), ("n", None)]
    for number in range(9):
        builder.append(1, b"key", b"%d" % number, odd if number in (2, 4, 5, 8) else [("h", b"v")])
    builder.close()
    data = bytes(builder.buffer())
    part, taken = unpacked(data, 2**26), []
    for _ in range(2):  # from the first one on it is fetched once more
        taken += everything(part)
        part = type(part)(part.next_fetch_offset, TopicPartition("t", 0), MemoryRecords(data))
    assert [(record.offset, record.key, record.value) for record in taken] == [(n, b"key", b"%d" % n) for n in range(9)]
    for record in taken:
        if record.offset in (2, 4, 5, 8):
            assert isinstance(record.headers, OddHeaders)
            assert record.headers == [("h", b"v"), ("caf??", b"\xff\0"), ("n", None)]
            assert record.headers.detail == "the name of a header: byte 0xe9 at 3 is not UTF-8"
        else:
            assert type(record.headers) is list


def test_memory_that_is_short_is_no_fault_of_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bytes:
        raise MemoryError

    monkeypatch.setattr(batches, "decompress", fail)
    with pytest.raises(MemoryError) as caught:
        unpacked(built([bytes(1000)]), 2**26).take()
    with pytest.raises(Exception, match=r"partition 0, offset 0: .*not enough memory"):
        damage(caught.value, lambda _: 1)


def emptied(first: int, last: int, control: bool) -> bytes:
    """A transactional batch whose records compaction took, and which is kept for what it says of its producer."""
    attributes = 0x10 | (0x20 if control else 0)
    body = struct.pack(">hiqqqhii", attributes, last - first, 1, 1, 7, 3, -1, 0)
    return struct.pack(">qiibI", first, 9 + len(body), 0, 2, calc_crc32c(body)) + body


@pytest.mark.parametrize("control", [True, False])
@pytest.mark.parametrize("level", [IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED])
def test_a_batch_that_compaction_emptied_is_no_damage(control: bool, level: IsolationLevel) -> None:
    consumer: Any = SimpleNamespace(_fetcher=SimpleNamespace())
    bound(consumer, 1000)
    data = emptied(0, 4, control) + emptied(5, 5, control)
    part = consumer._fetcher.PartitionRecords(0, TopicPartition("t", 0), MemoryRecords(data), isolation_level=level)
    assert everything(part) == []
    assert part.next_fetch_offset == 6
