"""The memory: what is kept of a stream, and that neighbors are asked as they ought to be, whatever the stream."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.adaptive.memory import LARGEST, Memory
from streamkernel.compute.memory import remember

FIELDS = ("recent_rows", "recent_targets", "recent_weights", "recent_residuals")


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
    ("d", "span"), [(0, 9_000), (1, 9_000), (11, 9_000), (12, 8_333), (1_000, 100), (10**5, 1), (10**5 + 1, 1)]
)
def test_with_many_inputs_fewer_records_are_asked(d, span):
    """But for no experts at all there would have to be no memory."""
    assert LARGEST == 100_000
    memory = _memory(9_000, 3, d)
    assert memory.arrays.span.tolist() == [span]
    assert memory.arrays.rows.shape == (d, max(span, 3))
    assert _memory(0, 3, d).arrays.span.tolist() == [0]


def test_the_metric_of_the_inputs_so_far_stays_where_more_come():
    memory = _memory(5, 5)
    memory.set_metric(np.array([0.5, 2.0]))
    memory.widen(3)
    assert memory.arrays.scales.tolist() == [0.5, 2.0, 1.0]
