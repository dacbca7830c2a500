"""Heads whose matrices change every eighth record: exact, and wherever a stream is cut or saved, the same bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.adaptive.heads import LeastSquaresHeads
from tests import naive

RIDGE = 0.1
DRIFTS = (0.0, 1e-3, 3e-2)
D, K, N = 43, 2, 60


def _heads(D=D, K=K):
    heads = LeastSquaresHeads(RIDGE, DRIFTS)
    heads.begin(D, K)
    return heads


def _records(D=D, K=K, n=N, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, D)), rng.normal(size=(n, K)), rng.uniform(0.5, 2, size=n)


def _taught(n, records=None):
    heads = _heads()
    heads.replay(*(part[:n] for part in records or _records()))
    return heads


def _saved(heads):
    """The heads of their state."""
    state = heads.state()
    other = _heads()
    other.load_state(state, state["heads_W"].shape[2], state["heads_W"].shape[1])
    return other


def _bits(heads):
    return {name: part.tobytes() for name, part in heads.state().items()}


def _assert_exact(heads, records):
    """As if every record had changed P at once, in more digits."""
    for drift, P, W in zip(DRIFTS, heads.settled_P(), heads.W, strict=True):
        exact_P, exact_W = np.eye(len(P), dtype=np.longdouble) / RIDGE, np.zeros(W.shape, np.longdouble)
        for phi, truth, weight in zip(*records, strict=True):
            v = exact_P @ phi
            gain = 1 / (1 / np.longdouble(weight) + phi @ v)
            exact_W += np.outer(gain * (truth - exact_W @ phi), v)
            exact_P -= gain * np.outer(v, v)
            exact_P[np.diag_indices_from(P)] = np.minimum(np.diag(exact_P) + drift, 1 / RIDGE)
        assert np.allclose(naive.symmetric(P), exact_P, atol=1e-12)
        assert np.allclose(W, exact_W, atol=1e-9)


@pytest.mark.parametrize("D", [1, 5, 8, 16, 43])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 60])
def test_whatever_is_due_they_are_recursive_least_squares(D, n):
    heads, records = _heads(D), _records(D, n=n)
    heads.replay(*records)
    _assert_exact(heads, records)


@given(st.lists(st.integers(0, N), max_size=6), st.lists(st.booleans(), min_size=7, max_size=7))
def test_any_cut_looked_at_or_saved_gives_the_same_bits(cuts, saves):
    records = _records()
    heads, whole = _heads(), _taught(N, records)
    for part, save in zip(np.split(np.arange(N), sorted(cuts)), saves, strict=False):
        heads.replay(*(numbers[part] for numbers in records))
        heads.settled_P()
        if save:
            heads = _saved(heads)
    assert _bits(heads) == _bits(whole)
    assert heads.settled_P().tobytes() == whole.settled_P().tobytes()
