"""From messages to records, whatever the messages are."""

from __future__ import annotations

from codecs import BOM_UTF8
from itertools import accumulate

import pytest
from fake_kafka import message
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.connectors.kafka.base.messages import Messages
from streamkernel.connectors.kafka.reading.buffers import PartitionBatch
from streamkernel.connectors.kafka.reading.message_decoder import MessageDecoder
from streamkernel.connectors.objects import JsonObjects
from streamkernel.connectors.ports import Position, Record

STREAM = "cluster/t/1"


def records(*messages: object, include: tuple[str, ...] = (), longest: int = 100, max_string: int = 20) -> list[Record]:
    batch = PartitionBatch.of(3, Messages.of(messages))
    return MessageDecoder(JsonObjects("y", "int", max_string), longest, include).records(STREAM, batch)  # type: ignore[arg-type]


def reason(record: Record) -> str | None:
    return None if record.fault is None else record.fault.reason


def test_values_are_decoded_and_positions_are_offsets() -> None:
    first, second = records(message(5, b'{"a": 1, "y": 2}'), message(6, b'{"a": null, "b": "x"}'))
    assert first == Record({"a": 1}, 2, Position(STREAM, 3, 5), Position(STREAM, 3, 6), b'{"a": 1, "y": 2}')
    assert (second.x, second.y, second.position.offset, second.next.offset) == ({"b": "x"}, None, 6, 7)


def test_odd_messages_stand_among_the_others() -> None:
    values = [b'{"a": 1}', None, b"x" * 101, b"[1]", b"", b"{", b'{"a": 2}', b'{"y": "z"}', b'"\xff"']
    found = records(*(message(offset, value) for offset, value in enumerate(values)))
    assert [one.position.offset for one in found] == list(range(9))
    assert [one.x for one in found] == [{"a": 1}, {}, {}, {}, {}, {}, {"a": 2}, {}, {}]
    assert [number for number, one in enumerate(found) if one.blank] == [1, 4]
    assert [reason(one) for one in found] == [
        *(None, None, "too_long", "not_an_object", None, "not_json", None, "target", "encoding")
    ]
    assert found[2].raw == b"x" * 100
    assert found[2].fault is not None
    assert found[2].fault.detail == "101 bytes, more than max_record_bytes (100)"


def test_messages_that_cannot_be_read_are_faults_of_their_own() -> None:
    batch = PartitionBatch(3, 5, 8, None, "CorruptRecordError: crc")
    found = MessageDecoder(JsonObjects("y", "int", 20), 100).records(STREAM, batch)
    assert [(one.position.offset, one.next.offset) for one in found] == [(5, 6), (6, 7), (7, 8)]
    assert {one.fault for one in found} == {("corrupt", "the message cannot be read: CorruptRecordError: crc")}
    assert {one.raw for one in found} == {b""}


_BYTES = st.one_of(st.none(), st.binary(max_size=150), st.sampled_from([b'{"a": 1}', b'{"y": 2}', b'{"kafka.key": 0}']))


@given(
    st.lists(
        st.tuples(
            _BYTES,
            st.one_of(st.none(), st.binary(max_size=30)),
            st.lists(st.tuples(st.text(max_size=30), st.one_of(st.none(), st.binary(max_size=30))), max_size=3),
            st.integers(-1, 2**62),
            st.integers(1, 3),
        ),
        min_size=1,
        max_size=8,
    ),
    st.sets(st.sampled_from(["key", "headers", "timestamp"])),
)
def test_whatever_the_messages_are_each_is_one_record(
    parts: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int, int]], include: set[str]
) -> None:
    offsets = list(accumulate(part[-1] for part in parts))
    found = records(
        *(
            message(offset, value, key=key, headers=headers, timestamp=timestamp)
            for offset, (value, key, headers, timestamp, _) in zip(offsets, parts, strict=True)
        ),
        include=tuple(include),
    )
    assert [one.position for one in found] == [Position(STREAM, 3, offset) for offset in offsets]
    assert [one.next.offset for one in found] == [offset + 1 for offset in offsets]
    for one, (value, *_) in zip(found, parts, strict=True):
        assert one.raw == (value or b"")[:100]
        assert one.blank == (not (value or b"").removeprefix(BOM_UTF8).strip(b" \t\r\n"))
        if one.fault is not None or one.blank:
            assert (one.x, one.y) == ({}, None)


class TestInclude:
    """Keys, headers and times as inputs."""

    def test_nothing_is_included_unasked(self) -> None:
        (found,) = records(message(0, b"{}", key=b"k", headers=[("h", b"v")], timestamp=1500))
        assert found.x == {}

    def test_what_is_asked_for(self) -> None:
        rich = message(0, b'{"a": 1}', key=b"k", headers=[("h", b"v"), ("n", None), ("h", b"w")], timestamp=1500)
        (found,) = records(rich, include=("key", "headers", "timestamp"))
        assert found.x == {"kafka.key": "k", "kafka.timestamp": 1.5, "kafka.header.h": "w", "a": 1}
        (found,) = records(rich, include=("key",))
        assert found.x == {"kafka.key": "k", "a": 1}
        (found,) = records(rich, include=("timestamp",))
        assert found.x == {"kafka.timestamp": 1.5, "a": 1}

    def test_what_is_not_there_is_absent(self) -> None:
        (found,) = records(message(0, b'{"a": 1}', key=b""), include=("key", "headers", "timestamp"))
        assert found.x == {"a": 1}

    def test_a_field_of_the_record_wins(self) -> None:
        (found,) = records(message(0, b'{"kafka.key": 7}', key=b"k"), include=("key",))
        assert found.x == {"kafka.key": 7}

    def test_a_key_and_a_header_that_are_not_text_are_base64(self) -> None:
        values = [(7).to_bytes(8, "big"), b"\xff", "Zo\xeb\n".encode(), b"a\x7f"]
        found = records(
            *(message(n, b"{}", key=value, headers=[("h", value)]) for n, value in enumerate(values)),
            include=("key", "headers"),
        )
        assert [one.x["kafka.key"] for one in found] == ["AAAAAAAAAAc=", "/w==", "Zo\xeb\n", "YX8="]
        assert all(one.x["kafka.header.h"] == one.x["kafka.key"] for one in found)

    @pytest.mark.parametrize(
        ("odd", "why", "detail"),
        [
            ({"key": b"k" * 21}, "string_too_long", "input 'kafka.key' is 21 characters long"),
            ({"headers": [("h" * 30, b"v")]}, "string_too_long", "the name of an input is 43 characters long"),
        ],
    )
    def test_one_that_cannot_be_an_input_is_a_fault(self, odd: dict[str, object], why: str, detail: str) -> None:
        good = message(0, b'{"a": 1, "y": 2}', key=b"k")
        bad = message(1, b'{"a": 1, "y": 2}', **odd)  # type: ignore[arg-type]
        found = records(good, bad, include=("key", "headers"))
        assert found[0].x == {"kafka.key": "k", "a": 1}
        assert (found[1].x, found[1].y, reason(found[1])) == ({}, None, why)
        assert found[1].fault is not None
        assert detail in found[1].fault.detail
