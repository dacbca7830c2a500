"""Names and labels as JSON holds them, and constructor arguments as plain values."""

import enum
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.state import tag, untag

labels = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=4,
)


@given(labels)
def test_tags_bring_back_value_and_type(value):
    back = untag(json.loads(json.dumps(tag(value))))
    assert back == value
    assert type(back) is type(value)
    assert repr(back) == repr(value)


@given(labels, labels)
def test_tags_keep_apart_what_differs(one, other):
    if repr(one) != repr(other):
        assert tag(one) != tag(other)


class Color(str, enum.Enum):  # noqa: UP042 - a StrEnum's str() is its value, this one's is not
    RED = "red"


class Size(enum.IntEnum):
    SMALL = 1


class Name(str):
    __slots__ = ()

    def __str__(self):
        return "another"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int8(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (Color.RED, "red"),
        (Size.SMALL, 1),
        (Name("b"), "b"),
    ],
    ids=repr,
)
def test_subclasses_are_stored_as_plain_values(value, expected):
    back = untag(tag(value))
    assert (type(back), back) == (type(expected), expected)
    assert all(type(part) in (str, int, bool) for part in tag(value))


@pytest.mark.parametrize("value", [math.nan, np.float64("nan"), (1, math.nan)])
def test_a_name_that_is_nan_is_refused_as_it_equals_nothing(value):
    with pytest.raises(ValueError, match="NaN"):
        tag(value)
