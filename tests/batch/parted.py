"""Rows of a batch in parts of any sizes, and states that are equal but for the rounding of sums."""

import numpy as np
import polars as pl

from streamkernel.batch.chunk import BatchChunk
from streamkernel.batch.growing import learn_batch
from streamkernel.batch.rows import LocalRows
from streamkernel.estimators.base import machine_of
from streamkernel.records.frames import Frame
from tests.laws.cuts import frame_of

#: What is taken of the sample or counted: the same bits, however the rows are parted.
EXACT = {
    "columns",
    "labels",
    "input_moments",
    "target_moments",
    "bandwidth",
    "warm_up_values",
    "warm_up_targets",
    "warm_up_weights",
    "input_repeats",
}


def chunk_of(xs, ys, ws):
    names = any(xs)
    frame = frame_of(pl.DataFrame, xs) if names else np.zeros((len(xs), 0))
    return BatchChunk(Frame(frame), list(ys), None if ws is None else list(ws))


def chunks_of(xs, ys, ws, n_parts, rng=None):
    """The rows in so many parts, some of which are empty; in another order where a generator is given."""
    n = len(xs)
    order = np.arange(n) if rng is None else rng.permutation(n)
    ends = np.linspace(0, n, n_parts + 1).astype(int) if rng is None else np.sort(rng.integers(0, n + 1, n_parts - 1))
    parts = np.split(order, ends[1:-1] if rng is None else ends)
    return [chunk_of(*(None if of is None else [of[i] for i in part] for of in (xs, ys, ws))) for part in parts]


def learn_parts(model, chunks):
    """Take a batch step on the rows of chunks; gives what was known of them, and what was predicted."""
    rows = LocalRows(chunks)
    scored = learn_batch(machine_of(model), rows)
    return scored, rows.scored


def assert_near(state, other, tolerance):
    """Arrays are equal to within `tolerance` of their largest number, and so are numbers; all else is the same."""
    assert state.keys() == other.keys()
    for name, value in state.items():
        theirs = other[name]
        if name in EXACT and isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, theirs, err_msg=name)
            continue
        if name in EXACT or not isinstance(value, float | np.ndarray):
            assert value == theirs, name
            continue
        a, b = np.asarray(value, np.float64), np.asarray(theirs, np.float64)
        assert a.shape == b.shape, name
        # The margin of (9) is what is left of numbers about 1, and 0 where the step goes as far as it allows.
        most = 1.0 if name == "last_margin" else np.abs(a).max(initial=0.0)
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * most, err_msg=name)
