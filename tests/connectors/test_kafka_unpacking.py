"""A fetch in columns holds what kafka-python unpacks of it, record by record, and fails where that fails."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.consumer.fetcher import Fetcher, IsolationLevel
from kafka.protocol.consumer import FetchResponse
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder
from kafka.record.util import calc_crc32c, encode_varint
from kafka.structs import TopicPartition

from streamkernel.connectors.kafka.base.fetched import FetchedRecords, Unreadable
from streamkernel.connectors.kafka.base.messages import Message, Messages

PLACE = TopicPartition("t", 3)
APPEND_TIME, TRANSACTIONAL, CONTROL = 0x08, 0x10, 0x20
ABORT, COMMIT = b"\0\0\0\0", b"\0\0\0\1"
Aborted: Any = FetchResponse.FetchableTopicResponse.PartitionData.AbortedTransaction

PARTS = st.one_of(st.none(), st.binary(max_size=40))
HEADERS = st.lists(st.tuples(st.text(max_size=4), PARTS), max_size=2)
RECORDS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**41), PARTS, PARTS, HEADERS), min_size=1, max_size=5)


class Fetch(NamedTuple):
    """The bytes that a broker sends of a partition, and which transactions of it were aborted."""

    data: bytes
    offset: int
    aborted: list[Any]


def sealed(batch: bytes) -> bytes:
    """Give a batch the sum of its bytes."""
    return batch[:17] + struct.pack(">I", calc_crc32c(batch[21:])) + batch[21:]


def built(
    base: int,
    records: list[Any],
    *,
    codec: int = 0,
    magic: int = 2,
    attributes: int = 0,
    epoch: int = 0,
    producer: int = -1,
) -> tuple[bytes, int]:
    """A batch, and the offset after it: what a producer sends, as the broker completes it."""
    builder = MemoryRecordsBuilder(magic, codec, 2**30, offset=0 if magic == 2 else base)
    for gap, time, key, value, headers in records:
        builder.skip(gap)
        builder.append(time, key, value, headers if magic == 2 else [])
    builder.close()
    batch, following = bytes(builder.buffer()), builder.next_offset()
    if magic < 2:
        return batch, following
    [now] = struct.unpack_from(">h", batch, 21)
    head = struct.pack(">q", base) + batch[8:12] + struct.pack(">i", epoch) + batch[16:21]
    batch = head + struct.pack(">h", now | attributes) + batch[23:43] + struct.pack(">qh", producer, 0) + batch[53:]
    return sealed(batch), base + following


@st.composite
def fetches(draw: st.DrawFn) -> Fetch:
    """Batches of every kind one after the other; the last may be cut off, and one may be damaged."""
    data, base, aborted = b"", draw(st.sampled_from([0, 7, 2**40])), []
    first = base
    for _ in range(draw(st.integers(1, 4))):
        records, kind = draw(RECORDS), draw(st.sampled_from(["plain", "plain", "old", "sent", "mark"]))
        epoch, producer = draw(st.integers(0, 3)), draw(st.integers(1, 2))
        attributes = draw(st.sampled_from([0, 0, APPEND_TIME]))
        if kind == "old":
            batch, base = built(base, records, magic=draw(st.sampled_from([0, 1])), codec=draw(st.integers(0, 2)))
        elif kind == "mark":
            mark = [(0, 1, draw(st.sampled_from([ABORT, COMMIT])), b"\0" * 6, [])]
            batch, base = built(base, mark, attributes=CONTROL | TRANSACTIONAL, producer=producer, epoch=epoch)
        else:
            if kind == "sent":
                attributes |= TRANSACTIONAL
                if draw(st.booleans()):
                    aborted.append(Aborted(producer_id=producer, first_offset=base))
            settings = {"codec": draw(st.integers(0, 4)), "attributes": attributes, "epoch": epoch}
            batch, base = built(base, records, **settings, producer=producer if kind == "sent" else -1)
        if draw(st.integers(0, 9)) == 0:
            batch = draw(harmed(batch))
        data += batch
    if draw(st.integers(0, 5)) == 0:
        data = data[: draw(st.integers(0, len(data)))]
    return Fetch(data, draw(st.integers(first, max(first, base - 1))), aborted)


def harmed(batch: bytes) -> st.SearchStrategy[bytes]:
    """A batch with a byte changed, as a disk does; or as a producer may, with the sum that goes with it."""
    changed = st.builds(
        lambda at, byte: batch[:at] + bytes([byte]) + batch[at + 1 :],
        st.integers(16, len(batch) - 1),
        st.integers(0, 255),
    )
    return st.one_of(changed, changed.map(sealed)) if batch[16] == 2 else changed


def unpacked(part: Any, each: Callable[[Any], list[Any]], most: int) -> tuple[list[Any], tuple[Any, ...]]:
    """All messages of a fetch; and how it ended: where the next one begins, in which epoch, or why it failed."""
    found: list[Any] = []
    try:
        while part:
            taken = part.take(most)
            found += [Message(one.offset, one.timestamp, one.key, one.value, one.headers) for one in each(taken)]
            assert taken or not part
    except Unreadable as error:
        return found, (error.first, str(error))
    except Exception as error:
        return found, (max(part.next_fetch_offset, part.fetch_offset), f"{type(error).__name__}: {error}"[:200])
    return found, (part.next_fetch_offset, part.leader_epoch)


@settings(max_examples=60)
@given(fetches(), st.sampled_from(IsolationLevel), st.sampled_from([1, 3, 1000]))
def test_it_is_what_kafka_python_unpacks(fetch: Fetch, level: IsolationLevel, most: int) -> None:
    def part(kind: Any) -> Any:
        records = MemoryRecords(fetch.data)
        return kind(fetch.offset, PLACE, records, isolation_level=level, aborted_transactions=fetch.aborted)

    expected, end = unpacked(part(Fetcher.PartitionRecords), list, most)
    expected = [one._replace(timestamp=-1) if one.timestamp is None else one for one in expected]
    found, ours = unpacked(part(FetchedRecords), lambda chunks: [one for chunk in chunks for one in chunk], most)
    if "UnicodeDecodeError" in str(end) or "codec can't decode" in str(end):
        assert found[: len(expected)] == expected  # the name of a header is odd: no record is lost for it
    else:
        assert (found, ours) == (expected, end)


def test_whole_batches_are_taken_and_counted() -> None:
    records: list[Any] = [(0, 1, None, b"v", [])] * 4
    data = b"".join(built(4 * number, records)[0] for number in range(5))
    part = FetchedRecords(2, PLACE, MemoryRecords(data))
    taken = part.take(5)
    assert [len(taken), len(list(taken)), taken[0].offsets] == [6, 1, [2, 3, 4, 5, 6, 7]]
    assert part.next_fetch_offset == 8
    drained: list[Messages] = []
    drained.extend(part.take(9))  # as the consumer does
    assert [chunk.offsets for chunk in drained] == [[*range(8, 20)]]


def test_a_time_after_all_others_costs_nothing() -> None:
    """A broker takes a number of 70 bits for one of 64, and kafka-python does not."""
    batch, _ = built(0, [(0, 1, None, b"v", [])])
    record = bytearray(b"\0\xfe" + b"\xff" * 8 + b"\x7f")
    for number in (0, -1, 1):
        encode_varint(number, record.append)
    record += b"v\0"
    length = bytearray()
    encode_varint(len(record), length.append)
    body = batch[12:61] + length + record
    part = FetchedRecords(0, PLACE, MemoryRecords(sealed(batch[:8] + struct.pack(">i", len(body)) + body)))
    [messages] = list(part.take())
    assert list(messages) == [Message(0, 2**63 - 1, None, b"v", [])]


@pytest.mark.parametrize("cut", range(4))
def test_parts_that_are_joined_again_are_the_same(cut: int) -> None:
    sent = [Message(4 * number, number, b"k" * number, None, [("h", b"v"), ("n", None)]) for number in range(3)]
    whole = Messages.of(sent)
    joined = Messages.joined([part for part in (whole[:cut], whole[cut:]) if len(part)])
    assert list(joined) == list(whole) == sent
    assert joined.n_bytes == whole.n_bytes == len(whole.buffer)
    assert [joined.before(offset) for offset in (0, 1, 8, 9)] == [0, 1, 2, 3]
