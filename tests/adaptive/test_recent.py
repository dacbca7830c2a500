"""The ring buffer against a list of everything."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamkernel.adaptive.recent import Recent

from streamkernel.state import from_bytes, to_bytes


def _records(n, d, first=0):
    at = np.arange(first, first + n, dtype=np.float64)
    return (at[:, None] + np.arange(d) / 8).astype(np.float32), at, at + 0.5


def _recent(size, d=2):
    recent = Recent(size)
    recent.widen(d)
    return recent


@given(st.integers(1, 9), st.lists(st.tuples(st.integers(0, 14), st.integers(0, 2)), max_size=12))
def test_the_last_rows_oldest_first(size, parts):
    """Parts of any length, of which some bring more inputs; what came earlier did not have those."""
    recent, everything, d, seen = Recent(size), [], 1, 0
    for n, more in parts:
        d += more
        recent.widen(d)
        X, y, w = _records(n, d, seen)
        recent.append(X, y, w)
        everything += list(zip(X, y, w, strict=True))
        seen += n
        kept = everything[-size:]
        rows, targets, weights = recent.rows()
        assert len(recent) == len(rows) == len(kept)
        assert targets.tolist() == [y for _, y, _ in kept]
        assert weights.tolist() == [w for _, _, w in kept]
        for row, (x, _, _) in zip(rows, kept, strict=True):
            assert np.array_equal(row[: len(x)], x)
            assert not row[len(x) :].any()
        assert rows.dtype == np.float32


@given(st.integers(1, 9), st.lists(st.integers(0, 14), max_size=6), st.integers(0, 3))
def test_the_record_comes_back_and_goes_on_alike(size, parts, later):
    recent, seen = _recent(size), 0
    for n in parts:
        recent.append(*_records(n, 2, seen))
        seen += n
    recent.widen(2 + later)
    record = recent.state()
    assert record["recent_rows"].shape == (len(recent), 2 + later)
    other = _recent(size, 4)
    other.append(*_records(5, 4, 70))
    other.load_state(from_bytes(to_bytes(record)), 2 + later)
    assert to_bytes(other.state()) == to_bytes(record)
    for ring in (recent, other):
        ring.append(*_records(size // 2 + 1, 2 + later, seen))
    assert to_bytes(other.state()) == to_bytes(recent.state())


def test_what_was_given_and_what_was_taken_are_copies():
    recent, (X, y, w) = _recent(4), _records(3, 2)
    recent.append(X, y, w)
    record = recent.state()
    X[:] = y[:] = w[:] = -1
    assert recent.rows()[1].tolist() == [0, 1, 2]
    recent.rows()[0][:] = -1
    recent.append(*_records(4, 2, 50))
    assert record["recent_targets"].tolist() == [0, 1, 2]
    assert record["recent_rows"][0].tolist() == [0, 0.125]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recent_targets", np.zeros(3, np.float32)),
        ("recent_targets", np.zeros(2)),
        ("recent_weights", np.zeros(4)),
        ("recent_rows", np.zeros((3, 3), np.float32)),
        ("recent_rows", np.zeros((3, 2))),
        ("recent_rows", None),
        ("recent_rows", np.full((3, 2), np.nan, np.float32)),
        ("recent_targets", np.full(3, np.inf)),
        ("recent_weights", np.full(3, np.nan)),
        ("recent_weights", np.full(3, -1.0)),
    ],
)
def test_a_record_that_does_not_fit_is_refused(name, value):
    recent = _recent(4)
    recent.append(*_records(3, 2))
    record = recent.state()
    with pytest.raises(ValueError, match="does not fit"):
        Recent(4).load_state({**record, name: value}, 2)
    del record[name]
    with pytest.raises(ValueError, match=name):
        Recent(4).load_state(record, 2)


def test_a_record_of_more_rows_than_there_is_room_for_is_refused():
    recent = _recent(5)
    recent.append(*_records(5, 2))
    with pytest.raises(ValueError, match="does not fit"):
        Recent(4).load_state(recent.state(), 2)
