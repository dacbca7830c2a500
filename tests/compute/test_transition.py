"""The expert of transitions, against a list of all records."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.compute import label_pass as kernels
from tests import naive


def _pair(size):
    return kernels.Transitions(np.zeros((size, size)), np.ones(1)), naive.Transitions(size)


def _learn(pair, *record):
    kernels.learn_transition(pair[0], *record)
    naive.learn_transition(pair[1], *record)


def _said(transitions, before, n_classes):
    p = np.full(n_classes, np.nan)
    kernels.predict_transition(transitions, before, p)
    return p


@given(st.integers(1, 4), st.integers(0, 3), st.integers(0, 300), st.integers(0, 1000))
def test_predict_transition_and_learn_transition(size, more, n, seed):
    """Of classes that the matrix has and of others, of which a record may not know the one before."""
    rng, pair, n_classes = np.random.default_rng(seed), _pair(size), size + more
    for _ in range(n):
        _learn(pair, int(rng.integers(-1, n_classes)), int(rng.integers(n_classes)), float(rng.uniform(0.1, 3)))
    np.testing.assert_allclose(pair[0].counts, pair[1].counts, rtol=1e-9)
    assert pair[0].unit[0] == pytest.approx(pair[1].unit, rel=1e-9)
    for before in range(-1, n_classes):
        p = _said(pair[0], before, n_classes)
        np.testing.assert_allclose(p, naive.predict_transition(pair[1], before, n_classes), rtol=1e-9)
        assert p.sum() == pytest.approx(1)
