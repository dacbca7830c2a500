"""Records of state: their bytes, those that are refused, and their digest."""

import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from streamkernel.state import digest, from_bytes, to_bytes

plain = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=5,
)


arrays = st.sampled_from(["<f8", "<f4", "<i8", "<u8", "|b1", ">f8", ">u4"]).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)


records = st.dictionaries(st.text(), st.one_of(arrays, plain), max_size=6)


@given(records)
def test_bytes_bring_back_the_record(record):
    back = from_bytes(to_bytes(record))
    assert list(back) == list(record)
    for name, value in record.items():
        if isinstance(value, np.ndarray):
            assert back[name].dtype == value.dtype.newbyteorder("=")
            assert back[name].shape == value.shape
            assert back[name].tobytes() == value.astype(back[name].dtype).tobytes()
            assert back[name].flags.writeable
            assert back[name].flags.owndata or back[name].base.flags.owndata
        else:
            assert back[name] == value
            assert type(back[name]) is type(value)
    assert digest(back) == digest(record)
    assert to_bytes(back) == to_bytes(record)


@given(records, st.data())
def test_bytes_that_are_cut_or_continued_are_refused(record, data):
    written = to_bytes(record)
    cut = data.draw(st.integers(0, len(written) - 1))
    for broken in (written[:cut], written + b"\0", b"x" + written):
        with pytest.raises(ValueError, match="not a state"):
            from_bytes(broken)


@given(records, st.data())
def test_bytes_with_a_bad_byte_are_a_record_or_refused(record, data):
    written = bytearray(to_bytes(record))
    for _ in range(data.draw(st.integers(1, 3))):
        written[data.draw(st.integers(0, len(written) - 1))] = data.draw(st.integers(0, 255))
    try:
        from_bytes(bytes(written))
    except ValueError as error:
        assert str(error).startswith("not a state")  # noqa: PT017


def _written(heads, body=b""):
    described = heads if isinstance(heads, bytes) else json.dumps(heads).encode()
    return b"SKREC\x01" + struct.pack("<Q", len(described)) + described + body


def test_hostile_heads_are_refused(subtests):
    for heads in [
        b"[" * 100_000,
        b"{}",
        b"null",
        b"[1]",
        b'[{"name": "a"}]',
        b'[{"value": 1}]',
        b"\xff\xfe",
        [{"name": "a", "dtype": "|O", "shape": [1]}],
        [{"name": "a", "dtype": "O", "shape": []}],
        [{"name": "a", "dtype": "<f8,|O", "shape": [1]}],
        [{"name": "a", "dtype": "|S0", "shape": [3]}],
        [{"name": "a", "dtype": "|V0", "shape": [3]}],
        [{"name": "a", "dtype": "<U0", "shape": [0]}],
        [{"name": "a", "dtype": "<U1", "shape": [2]}],
        [{"name": "a", "dtype": "<M8[ns]", "shape": [1]}],
        [{"name": "a", "dtype": "(2,f4", "shape": [1]}],
        [{"name": "a", "dtype": {"names": ["x"], "formats": ["<f8"]}, "shape": [1]}],
        [{"name": "a", "dtype": None, "shape": [1]}],
        [{"name": "a", "dtype": "<f8", "shape": [-1, -1]}],
        [{"name": "a", "dtype": "<f8", "shape": [10**30]}],
        [{"name": "a", "dtype": "<f8", "shape": [0, 10**30]}],
        [{"name": "a", "dtype": "<f8", "shape": [1] * 100}],
        [{"name": "a", "dtype": "<f8", "shape": ["x"]}],
        [{"name": "a", "dtype": "<f8", "shape": None}],
        [{"name": "a", "dtype": "<f8", "shape": [0.5]}],
        b'[{"name": "a", "dtype": "<f8", "shape": [Infinity]}]',
        [{"name": ["a"], "value": 1}],
        [{"name": 1, "value": 1}],
        [{"name": "a", "value": 1}, {"name": "a", "value": 2}],
    ]:
        with subtests.test(heads=heads), pytest.raises(ValueError, match="not a state"):
            from_bytes(_written(heads, bytes(8)))


def test_digest_sees_name_order_dtype_shape_and_value():
    base = {"a": np.zeros((2, 3)), "b": 1, "c": ["x", None]}
    different = [
        {"a": np.zeros((3, 2)), "b": 1, "c": ["x", None]},
        {"a": np.zeros((2, 3), np.float32), "b": 1, "c": ["x", None]},
        {"a": np.full((2, 3), -0.0), "b": 1, "c": ["x", None]},
        {"a": np.zeros((2, 3)), "b": True, "c": ["x", None]},
        {"a": np.zeros((2, 3)), "b": 1.0, "c": ["x", None]},
        {"a": np.zeros((2, 3)), "b": 1, "c": ["x"]},
        {"a": np.zeros((2, 3)), "b": "1", "c": ["x", None]},
        {"b": 1, "a": np.zeros((2, 3)), "c": ["x", None]},
        {"A": np.zeros((2, 3)), "b": 1, "c": ["x", None]},
    ]
    assert len({digest(record) for record in [base, *different]}) == len(different) + 1
    assert digest({**base, "a": np.asfortranarray(base["a"])}) == digest(base)
    assert digest({**base, "a": base["a"].astype(">f8")}) == digest(base)
