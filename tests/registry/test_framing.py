"""The wire format: an id, the indexes of a Protobuf message, and bytes that are neither."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.connectors.decode import UndecodableError
from streamkernel.connectors.registry.framing import frame, schema_number


@given(number=st.integers(0, 2**32 - 1), payload=st.binary(max_size=20))
def test_an_id_comes_back(number: int, payload: bytes) -> None:
    assert schema_number(frame(number) + payload) == number


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
