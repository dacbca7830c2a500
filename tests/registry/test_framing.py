"""The wire format: an id, the indexes of a Protobuf message, and bytes that are neither."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.connectors.decode import UndecodableError
from streamkernel.connectors.registry.framing import frame, message_indexes, schema_number, varint_indexes


@given(number=st.integers(0, 2**32 - 1), payload=st.binary(max_size=20))
def test_an_id_comes_back(number: int, payload: bytes) -> None:
    assert schema_number(frame(number) + payload) == number


@given(path=st.lists(st.integers(0, 2**16), min_size=1, max_size=32), payload=st.binary(max_size=20))
def test_indexes_come_back(path: list[int], payload: bytes) -> None:
    head = frame(7) + varint_indexes(path)
    assert message_indexes(head + payload) == (tuple(path), len(head))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"", "has 0 bytes"),
        (b"\0\0\0\1", "has 4 bytes"),
        (b'{"a": 1}', "begins with the byte 7b"),
        (b"\1\0\0\0\1abc", "begins with the byte 01"),
    ],
)
def test_values_of_another_kind(value: bytes, said: str) -> None:
    with pytest.raises(UndecodableError, match=said) as raised:
        schema_number(value)
    assert raised.value.fault.reason == "schema"


@given(rest=st.binary(max_size=50))
def test_any_bytes_are_indexes_or_a_fault(rest: bytes) -> None:
    try:
        path, at = message_indexes(frame(1) + rest)
    except UndecodableError:
        return
    assert 0 < len(path) <= 32
    assert min(path) >= 0
    assert at <= 5 + len(rest)
