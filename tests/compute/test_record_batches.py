"""Records are found in a batch where the twin finds them, and what it refuses is refused, whatever the bytes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecordsBuilder
from kafka.record.util import encode_varint

from streamkernel.compute import record_batches as kernels
from tests import naive

HEADER = 61
TIMES = st.one_of(st.integers(-1, 2**41), st.integers(0, 2**62))
PARTS = st.one_of(st.none(), st.binary(max_size=200))
HEADERS = st.lists(st.tuples(st.text(max_size=5), PARTS), max_size=3)
RECORDS = st.lists(st.tuples(st.integers(0, 300), TIMES, PARTS, PARTS, HEADERS), min_size=1, max_size=6)
#: What follows a run of bytes with a bit for more: no end, ends that are too large, the largest number.
VARINTS = st.builds(
    lambda run, last: bytes(run) + last, st.lists(st.integers(128, 255), max_size=11), st.binary(max_size=2)
)


def built(records):
    """The bytes of records as kafka-python's producer writes them, without the header of the batch."""
    builder = MemoryRecordsBuilder(2, 0, 2**30)
    for gap, time, key, value, headers in records:
        builder.skip(gap)
        builder.append(time, key, value, headers)
    builder.close()
    return bytes(builder.buffer())[HEADER:]


def found(data, n, base_offset=0, first_timestamp=0):
    columns = np.full((9, n), -7)
    whole = kernels.find_records(np.frombuffer(bytearray(data), np.uint8), base_offset, first_timestamp, columns)
    return columns.T.tolist() if whole else None


@st.composite
def damaged(draw):
    """Bytes of a batch, some of them changed, taken away or put in, and about how many records there are."""
    records = draw(RECORDS)
    data = bytearray(built(records))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data) - 1))
        data[at : at + draw(st.integers(0, 3))] = draw(st.one_of(st.binary(max_size=3), VARINTS)) or b"\0"
    return bytes(data), max(0, len(records) + draw(st.sampled_from([0, 0, 0, 1, -1])))


@given(VARINTS, st.integers(-1, 9))
def test_varint(data, at):
    assert kernels.varint(np.frombuffer(data, np.uint8), at) == naive.varint(data, at)


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_number_is_read_as_it_was_written(number):
    data = bytearray(b"\0")
    encode_varint(number, data.append)
    assert kernels.varint(np.frombuffer(data, np.uint8), 1) == (number, len(data))


@given(RECORDS, st.sampled_from([0, 5, 2**63 - 2**12]))
def test_find_records(records, base):
    data = built(records)
    rows = found(data, len(records), base, records[0][1])
    assert rows == naive.find_records(data, base, records[0][1], len(records))
    assert [row[:2] for row in rows] == [
        [base + number + sum(one[0] for one in records[: number + 1]), time]
        for number, (_, time, *_) in enumerate(records)
    ]
    for row, (_, _, key, value, headers) in zip(rows, records, strict=True):
        for at, part in ((2, key), (4, value)):
            assert (None if row[at + 1] < 0 else data[row[at] : row[at] + row[at + 1]]) == part
        assert row[7] == len(headers)


@given(damaged(), st.sampled_from([0, 2**63 - 2]), st.sampled_from([0, -(2**63), 2**63 - 1]))
def test_find_records_in_any_bytes(case, base_offset, first_timestamp):
    data, n = case
    expected = naive.find_records(data, base_offset, first_timestamp, n)
    assert found(data, n, base_offset, first_timestamp) == expected


@pytest.mark.parametrize("number", [2**31 - 1, 2**31])
def test_an_offset_is_of_32_bits_after_that_of_its_batch(number):
    record = bytearray(b"\0\0")  # no attributes, and no time after the first one
    encode_varint(number, record.append)
    data = bytes([2 * (len(record) + 3)]) + record + b"\1\1\0"  # neither key nor value, and no header
    rows = None if number == 2**31 else [[number, 0, 9, -1, 10, -1, 11, 0, 10]]
    assert found(data, 1) == naive.find_records(data, 0, 0, 1) == rows


WRITTEN = st.lists(
    st.tuples(st.none() | st.binary(max_size=70), st.binary(max_size=200), st.binary(max_size=9), st.integers(0, 200)),
    min_size=1,
    max_size=140,
)


@given(WRITTEN, st.lists(TIMES, min_size=1), st.integers(0, 2000))
def test_write_records(records, times, room):
    times = (times * len(records))[: len(records)]
    sizes = np.array([(-1 if key is None else len(key), len(value), len(rest)) for key, value, rest, _ in records])
    data = b"".join(part or b"" for record in records for part in record[:3])
    out, cuts = np.empty(len(data) + 71 * len(records), np.uint8), np.empty((len(records) + 1, 2), np.int64)
    counts = np.array([record[3] for record in records])
    n = kernels.write_records(np.frombuffer(data, np.uint8), sizes, counts, np.array(times), room, out, cuts)
    batches = naive.write_records(records, times, room)
    ends = np.cumsum([0, *map(len, batches)])
    assert cuts[: n + 1, 0].tolist() == ends.tolist()
    assert [out[begin:end].tobytes() for begin, end in pairwise(cuts[: n + 1, 1])] == list(map(b"".join, batches))
