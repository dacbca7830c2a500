"""Batches of lines: those of kafka-python, byte for byte, and what becomes of their lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import TopicPartition, errors
from kafka.producer.record_accumulator import RecordAccumulator
from kafka.record.memory_records import MemoryRecordsBuilder

from streamkernel.connectors.kafka.writing.batches import LineBatch, LineRecords, batched
from streamkernel.connectors.kafka.writing.line import Copied, Line, Provenance
from streamkernel.connectors.ports import Position
from tests.connectors.fake_output import message_of

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
PLACE = TopicPartition("t", 0)
NOW = 1_700_000_000_000

names = st.sampled_from(["a", "source.offset", "größe", "n" * 70])
parts = st.one_of(st.binary(max_size=9), st.binary(min_size=60, max_size=140))
copies = st.builds(
    Copied,
    st.booleans(),
    st.none() | parts,
    st.lists(st.tuples(names, parts), max_size=3).map(tuple),
    st.none() | st.integers(0, 2**45),
)
offsets = st.one_of(st.integers(0, 9), st.integers(0, 2**62))
positions = st.builds(Position, st.sampled_from(["c/t/1", "ä"]), st.integers(0, 3), offsets, st.none())
lines = st.builds(Line, parts, positions, st.none() | copies)


def theirs(some: Sequence[Line], most: int, codec: int) -> list[MemoryRecordsBuilder]:
    """Add one line after the other to batches, as `KafkaProducer.send` does."""
    builders: list[MemoryRecordsBuilder] = []
    for line in some:
        sent = message_of(line, Provenance("me"))
        time = sent.get("timestamp_ms")
        message = (NOW if time is None else time, sent["key"], sent["value"], sent["headers"])
        if not builders or builders[-1].append(*message) is None:
            builders.append(MemoryRecordsBuilder(2, codec, most))
            assert builders[-1].append(*message) is not None
    return builders


def ours(some: Sequence[Line], most: int, compression: str | None = None) -> list[LineRecords]:
    times = (line.copied and line.copied.timestamp for line in some)
    records = list(Provenance("me").parts(some))
    return list(batched(records, [NOW if time is None else time for time in times], most, compression))


@given(st.lists(lines, min_size=1, max_size=70), st.integers(1, 3000), st.sampled_from(CODECS), st.booleans())
def test_they_are_those_of_the_client(
    some: list[Line], most: int, compression: str | None, transactional: bool
) -> None:
    expected, made = theirs(some, most, CODECS.index(compression)), ours(some, most, compression)
    assert [one.next_offset() for one in made] == [one.next_offset() for one in expected]
    for one, other in zip(made, expected, strict=True):
        for records in (one, other):
            records.set_producer_state(7, 3, 12, transactional)
            records.close()
        if compression != "gzip":  # it has the time in it
            assert one.buffer() == other.buffer()
        assert (one.size_in_bytes(), one.is_full()) == (len(other.buffer()), True)
        assert (one.producer_id, one.producer_epoch, one.base_sequence) == (7, 3, 12)


def batch_of(n_lines: int) -> tuple[LineBatch, list[Exception]]:
    """A batch of the lines 10, 11, ..., and where the errors of its lines go."""
    stopped: list[Exception] = []
    [records] = ours([Line(b"{}", Position("c/t/1", 0, n)) for n in range(n_lines)], 2**20)
    return LineBatch(PLACE, records, range(10, 10 + n_lines), stopped.append), stopped


def test_all_lines_are_acknowledged_at_once() -> None:
    batch, stopped = batch_of(5)
    batch.wait(0.0)
    assert not batch.acked
    assert batch.failures == []
    batch.complete(7, -1)
    assert batch.acked
    assert batch.failures == stopped == []


def test_lines_fail_each_for_its_reason() -> None:
    batch, stopped = batch_of(3)
    reasons = {1: errors.InvalidTimestampError("it is odd")}
    rest = errors.KafkaError("another one is odd")
    batch.complete_exceptionally(rest, lambda number: reasons.get(number, rest))
    assert not batch.acked
    assert batch.failures == [(10, rest), (11, reasons[1]), (12, rest)]
    assert stopped == [rest, reasons[1], rest]


@pytest.mark.parametrize("refused", [False, True])
def test_a_batch_that_is_parted_again_and_again(refused: bool) -> None:
    accumulator = RecordAccumulator(message_version=2, batch_size=2**20)
    batch, stopped = batch_of(6)
    accumulator.split_and_reenqueue(batch)
    first, second = accumulator._batches[PLACE]
    second.records.close()
    accumulator.split_and_reenqueue(second)
    third, fourth, *_ = accumulator._batches[PLACE]
    assert [each.record_count for each in (first, third, fourth)] == [3, 2, 1]
    for part in (first, third):
        assert not batch.acked
        batch.wait(0.0)
        part.complete(0, -1)
    error: Any = errors.MessageSizeTooLargeError()
    if refused:
        fourth.complete_exceptionally(error, lambda _: error)
    else:
        fourth.complete(5, -1)
    assert batch.acked == (not refused)
    assert batch.failures == ([(15, error)] if refused else [])
    assert stopped == ([error] if refused else [])
