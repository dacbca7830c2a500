"""Softmax against its twin, row by row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.compute import experts as kernels
from tests import naive


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=12), st.floats(0.5, 60))
def test_softmax_into(scores, temperature):
    p = np.full(len(scores), np.nan)
    kernels.softmax_into(np.array(scores), temperature, p)
    assert np.allclose(p, naive.softmax_into(scores, temperature), atol=1e-12)
    assert p.sum() == pytest.approx(1)


@given(st.integers(0, 9), st.integers(1, 12), st.sampled_from([0.1, 3.0, 1e3, 1e300]), st.integers(0, 2**32))
def test_softmax_rows(n, K, spread, seed):
    scores = np.random.default_rng(seed).normal(size=(n, K)) * spread
    p = np.full((n, K), np.nan)
    kernels.softmax_rows(scores, p)
    assert np.allclose(p, naive.softmax_rows(scores).reshape(n, K), atol=1e-12)
    for r in range(n):
        alone = np.full((1, K), np.nan)
        kernels.softmax_rows(scores[r : r + 1], alone)
        assert alone.tobytes() == p[r].tobytes()
