"""The stochastic gradient steps against their twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.compute import semi_stochastic as kernels
from streamkernel.compute.window_losses import LOGISTIC
from streamkernel.window.losses import LOSSES
from tests import naive

# Each loss, and the logistic one made a hinge.
losses = st.sampled_from([(loss.kind, 0.0) for loss in LOSSES.values()] + [(LOGISTIC, 0.5), (LOGISTIC, 10.0)])
seeds = st.integers(0, 2**32)
sizes = st.integers(1, 9)
PENALTY = 0.3, 0.2, 0.05


def _problem(n, p, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), rng.choice([-1.0, 1.0], n), rng.random(n) * 2, rng.normal(size=p)


@given(seeds, st.integers(1, 2**32))
def test_draw_row(seed, n):
    state, expected = np.array([seed], np.uint64), seed
    for _ in range(3):
        expected, number = naive.draw_row(expected, n)
        assert kernels.draw_row(state, n) == number < n
        assert state[0] == expected


@given(seeds, sizes, sizes, sizes)
def test_draw_batch(seed, n, p, batch):
    state, rows = np.array([seed], np.uint64), np.empty(batch, np.int64)
    kernels.draw_batch(state, np.zeros((n, p)), rows)
    assert (state[0], rows.tolist()) == naive.draw_batch(seed, np.zeros((n, p)), batch)


@given(losses, sizes, sizes, seeds)
def test_full_gradient(loss, n, p, seed):
    *data, w = _problem(n, p, seed)
    assert kernels.mean_loss(*loss, *data, w) == pytest.approx(naive.mean_loss(*loss, *data, w))
    d, gradient = np.empty(n), np.empty(p)
    kernels.full_gradient(*loss, *data, w, d, gradient)
    for found, expected in zip((d, gradient), naive.full_gradient(*loss, *data, w), strict=True):
        assert np.allclose(found, expected)


@given(losses, sizes, sizes, st.integers(0, 5), st.integers(1, 4), seeds)
def test_variance_reduced_steps(loss, n, p, steps, batch, seed):
    *data, w = _problem(n, p, seed)
    d, gradient = naive.full_gradient(*loss, *data, w)
    w = w + 0.1
    state = np.array([seed], np.uint64)
    arguments = *loss, tuple(data), d, None, gradient
    expected, end = naive.variance_reduced_steps(*arguments, w, steps, batch, PENALTY, seed)
    kernels.variance_reduced_steps(*arguments, w, steps, batch, PENALTY, state)
    assert np.allclose(w, expected)
    assert state[0] == end


@given(losses, sizes, sizes, sizes, st.integers(0, 3), st.integers(1, 3), seeds)
def test_semi_stochastic_rounds(loss, n, p, m, rounds, inner, seed):
    *data, w = _problem(n, p, seed)
    rng = np.random.default_rng(seed + 1)
    labels = np.array([1.0, -1.0])
    graph = rng.integers(0, 2 * m, size=(n, 2)), rng.random((n, 2)), rng.normal(size=n)
    model = rng.normal(size=(m, p)), labels, rng.normal(size=(2 * m, p)), rng.normal(size=p)
    d, H = np.empty(2 * m), np.empty(p)
    kernels.anchor_gradient(*loss, *model, w, d, H)
    for found, expected in zip((d, H), naive.anchor_gradient(*loss, *model, w), strict=True):
        assert np.allclose(found, expected)
    own = [part[0] for part in graph]
    assert kernels.propagated(d, *own) == pytest.approx(naive.propagated(d, *own))
    state = np.array([seed], np.uint64)
    arguments, total = (*loss, *data, graph, model), rng.normal(size=p)
    *expected, end = naive.semi_stochastic_rounds(*arguments, w, total, rounds, inner, 2, PENALTY, seed)
    kernels.semi_stochastic_rounds(*arguments, w, total, rounds, inner, 2, PENALTY, state)
    assert np.allclose([w, total], expected)
    assert state[0] == end
