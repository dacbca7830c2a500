"""The mini-batch against a list of rows: inputs that came later, scores that are known or not, a state taken back."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.compute import moments
from streamkernel.compute.features import Scaling
from streamkernel.growth.waiting import MiniBatch

SIZE = 8
DTYPES = st.sampled_from([np.dtype("float32"), np.dtype("float64")])


def _scaling(d):
    return Scaling(True, 10.0, np.ones(d, np.bool_), np.zeros((d, moments.SIZE)))


@st.composite
def arrivals(draw):
    """Parts of a batch, ever wider: (rows, inputs, outputs scored or None, whether as it is); and the width at last."""
    d, parts = 0, []
    left = draw(st.integers(0, SIZE))
    while left:
        n = draw(st.integers(1, left))
        d += draw(st.sampled_from([0, 0, 1, 3]))
        parts.append((n, d, draw(st.sampled_from([2, 2, None])), n == 1 and draw(st.booleans())))
        left -= n
    return parts, d + draw(st.integers(0, 2))


@given(arrivals(), DTYPES, st.integers(0, 2**32), st.booleans())
def test_rows_that_came_before_an_input_are_0_in_its_column(drawn, dtype, seed, used):
    parts, width = drawn
    rng = np.random.default_rng(seed)
    batch = MiniBatch(SIZE, dtype)
    if used:  # what it held before leaves no trace
        batch.append(np.full((SIZE, width + 2), 9, dtype), np.full(SIZE, 9), np.full(SIZE, 9), np.full((SIZE, 3), 9))
        batch.clear()
    rows, y, w, scores = np.zeros((SIZE, width), dtype), [], [], []
    for n, d, n_outputs, as_it_is in parts:
        X, targets, weights = rng.normal(size=(n, d)), rng.normal(size=n), rng.uniform(size=n)
        known = None if n_outputs is None or as_it_is else rng.normal(size=(n, n_outputs))
        at = len(y)
        if as_it_is:
            scaling, twin = _scaling(d), _scaling(d)
            for either in (scaling, twin):
                either.moments[:, moments.COUNT], either.moments[:, moments.M2] = 4, 7
            batch.append_one(X, scaling, targets[0])
            weights[:] = 1
            mean = X / 5
            rows[at, :d] = (X - mean) / np.sqrt((7 + X * (X - mean)) / 5)
            assert scaling.moments[:, moments.COUNT].tolist() == [5] * d
        else:
            batch.append(X.astype(dtype), targets, weights, known)
            rows[at : at + n, :d] = X
        y.extend(targets)
        w.extend(weights)
        scores.append(known)
        assert batch.room == SIZE - len(y)
    np.testing.assert_allclose(batch.rows(width), rows[: len(y)], rtol=1e-6)
    assert ((batch.rows(width) == 0) == (rows[: len(y)] == 0)).all()
    assert batch.rows(width).dtype == dtype
    assert (batch.y.tolist(), batch.w.tolist(), batch.n) == (y, w, len(y))
    # Scores are known of all or of none.
    if any(part is None for part in scores):
        assert batch.scores is None
    elif scores:
        assert batch.scores.tolist() == np.concatenate(scores).tolist()
