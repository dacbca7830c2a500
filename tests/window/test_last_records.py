"""The ring buffer of the last records against a plain list."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from streamkernel.window.last_records import LastRecords

PARTS = st.lists(st.tuples(st.integers(1, 40), st.sampled_from([0, 0, 0, 1, 5])), max_size=12)


@example(size=2, most=400, parts=[(1, 5), (1, 1), (1, 1)], seed=0)  # a row narrower than the room, then one more input
@given(size=st.integers(1, 60), most=st.sampled_from([1, 400, 2000, 10**6]), parts=PARTS, seed=st.integers(0, 9))
def test_it_keeps_what_a_list_would(size, most, parts, seed):
    rng = np.random.default_rng(seed)
    records = LastRecords(size, most)
    rows, d = [], 2
    for n, more in parts:
        d += more
        values, y = rng.normal(size=(n, d + 3)), rng.normal(size=n)
        values[rng.random(values.shape) < 0.2] = np.nan
        records.append(values, d, y, y**2)
        rows += [(row[:d].tolist(), number) for row, number in zip(values, y.tolist(), strict=True)]
        rows = rows[-max(min(size, most // (8 * d)), 1) :]
        assert len(records) == len(rows)
        padded = [row + [np.nan] * (d - len(row)) for row, _ in rows]
        np.testing.assert_array_equal(records.rows(d), np.array(padded))
        np.testing.assert_array_equal(records.targets, [number for _, number in rows])
        np.testing.assert_array_equal(records.weights, [number * number for _, number in rows])
        assert records.rows(d, 1, 3).tobytes() == records.rows(d)[1:3].tobytes()
        restored = LastRecords(size, most)
        restored.load_state(records.state(d), d)
        np.testing.assert_array_equal(restored.rows(d), records.rows(d))
    assert records.nbytes <= max(most, 8 * d) * 1.01 + 16 * max(size, 256)
