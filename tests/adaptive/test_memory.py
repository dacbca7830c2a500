"""The memory: what is kept of a stream, and that neighbors are asked as they ought to be, whatever the stream."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.adaptive.memory import LARGEST, Memory
from streamkernel.compute.memory import remember

FIELDS = ("recent_rows", "recent_targets", "recent_weights", "recent_residuals")


# What is kept ---------------------------------------------------------------------------------------------------------


def _rows(memory):
    """What a metric is learned from."""
    n = min(len(memory), memory.buffer_size)
    return memory.rows_from(n, n)


def _records(n, d, first=0):
    at = np.arange(first, first + n, dtype=np.float64)
    return (at[:, None] + np.arange(d) / 8).astype(np.float32), at, at + 0.5, -at


def _memory(size, buffer, d=2):
    memory = Memory(size, buffer)
    memory.begin(d)
    return memory


def _append(memory, *records):
    for record in zip(*records, strict=True):
        remember(memory.arrays, *record)


@given(st.integers(0, 9), st.integers(1, 9), st.lists(st.tuples(st.integers(0, 14), st.integers(0, 2)), max_size=12))
def test_the_last_records_oldest_first(size, buffer, parts):
    """Parts of any length, of which some bring more inputs; what came earlier did not have those."""
    memory, everything, d, seen = _memory(size, buffer, 1), [], 1, 0
    for n, more in parts:
        d += more
        memory.widen(d)
        records = _records(n, d, seen)
        _append(memory, *records)
        everything += list(zip(*records, strict=True))
        seen += n
        kept = everything[-max(size, buffer) :]
        assert len(memory) == len(kept)
        last = min(buffer, len(kept))
        for parts_of, wanted in (
            (memory.rows_from(last, last), kept[-buffer:]),
            (memory.rows_from(len(kept), last), kept[:last]),
            (tuple(map(memory.state().get, FIELDS)), kept),
        ):
            rows, *others = parts_of
            assert rows.dtype == np.float32
            assert rows.shape == (len(wanted), d)
            assert [list(record) for record in zip(*others, strict=True)] == [
                list(record[1 : 1 + len(others)]) for record in wanted
            ]
            for row, (x, *_) in zip(rows, wanted, strict=True):
                assert np.array_equal(row[: len(x)], x)
                assert not row[len(x) :].any()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recent_targets", np.zeros(3, np.float32)),
        ("recent_targets", np.zeros(2)),
        ("recent_weights", np.ones(4)),
        ("recent_rows", np.zeros((3, 3), np.float32)),
        ("recent_rows", np.zeros((3, 2))),
        ("recent_rows", None),
        ("recent_rows", np.full((3, 2), np.nan, np.float32)),
        ("recent_targets", np.full(3, np.inf)),
        ("recent_weights", np.full(3, np.nan)),
        ("recent_weights", np.full(3, -1.0)),
        ("recent_weights", np.zeros(3)),
        ("recent_residuals", np.zeros(4)),
        ("recent_residuals", np.full(3, -np.inf)),
    ],
)
def test_a_state_that_does_not_fit_is_refused(name, value):
    memory = _memory(4, 1)
    _append(memory, *_records(3, 2))
    state = memory.state()
    with pytest.raises(ValueError, match="does not fit"):
        _memory(4, 1).load_state({**state, name: value}, 2)
    del state[name]
    with pytest.raises(ValueError, match=name):
        _memory(4, 1).load_state(state, 2)


@pytest.mark.parametrize(
    ("d", "span"), [(0, 9_000), (1, 9_000), (11, 9_000), (12, 8_333), (1_000, 100), (10**5, 1), (10**5 + 1, 1)]
)
def test_with_many_inputs_fewer_records_are_asked(d, span):
    """But for no experts at all there would have to be no memory."""
    assert LARGEST == 100_000
    memory = _memory(9_000, 3, d)
    assert memory.arrays.span.tolist() == [span]
    assert memory.arrays.rows.shape == (d, max(span, 3))
    assert _memory(0, 3, d).arrays.span.tolist() == [0]


def test_as_inputs_come_the_newest_records_stay():
    memory = _memory(10_000, 5, 10)
    _append(memory, *_records(10_050, 10))
    for d, n in ((20, 5_000), (50, 2_000), (20_000, 5), (50_000, 5)):
        memory.widen(d)
        state = memory.state()
        assert state["recent_targets"].tolist() == list(range(10_050 - n, 10_050))
        assert state["recent_residuals"].tolist() == list(range(n - 10_050, -10_050, -1))
    assert memory.arrays.span.tolist() == [2]  # the others are for a metric
    assert memory.rows_from(5, 5)[0][:, :10].tolist() == _records(5, 10, 10_045)[0].tolist()


def test_the_metric_of_the_inputs_so_far_stays_where_more_come():
    memory = _memory(5, 5)
    memory.set_metric(np.array([0.5, 2.0]))
    memory.widen(3)
    assert memory.arrays.scales.tolist() == [0.5, 2.0, 1.0]
