"""A stretch through all experts, against the twin that goes record by record through whole matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.compute import experts as kernels
from tests import naive

RIDGE = 0.1
DRIFTS = np.array([0.0, 1e-3, 3e-2])
# (D, L): columns of all, and of the linear experts; None where there are no linear experts
SHAPES = [(1, None), (1, 1), (5, 3), (9, 9), (12, None)]


def _state(D, L, K, E=2):
    """Matrices as they begin, for three heads and as many linear experts."""
    E, L = (0, 1) if L is None else (E, L)
    heads = np.tile(np.eye(D) / RIDGE, (3, 1, 1)), np.zeros((3, K, D))
    return *heads, np.tile(np.eye(L) / RIDGE, (E, 1, 1)), np.zeros((E, K, L))


def _columns(rng, n, D):
    Phi = rng.normal(size=(n, D))
    Phi[:, -1] = 1
    return Phi


def _labels(Phi, labels, weights, state, only_heads=False):
    """Copies of the state after the stretch, as the twin returns it."""
    heads_P, heads_W, linear_P, linear_W, temperatures, losses = (part.copy() for part in state)
    out = np.full((len(Phi), heads_W.shape[1]), np.nan)
    kernels.pass_labels(
        *(Phi, labels, weights, heads_P, heads_W, DRIFTS, RIDGE, linear_P, linear_W),
        *(np.array([1.0, 0.99])[: len(linear_P)], temperatures, losses, 1.0, only_heads, out),
    )
    return heads_P, heads_W, linear_P, linear_W, temperatures, losses, out


def _numbers(Phi, targets, weights, state, only_heads=False):
    heads_P, heads_W, linear_P, linear_W, moments, linear_moments, losses, errors = (part.copy() for part in state)
    out = np.full((len(Phi), 3), np.nan)
    kernels.pass_numbers(
        *(Phi, targets, weights, heads_P, heads_W, DRIFTS, RIDGE, linear_P, linear_W),
        *(np.array([0.0, 1e-3])[: len(linear_P)], moments, linear_moments, losses, errors, 2.0, only_heads, out),
    )
    return heads_P, heads_W, linear_P, linear_W, moments, linear_moments, losses, errors, out


def _assert_alike(ours, twins):
    for i, (mine, exact) in enumerate(zip(ours, twins, strict=True)):
        exact = np.array(exact).reshape(mine.shape)
        if i in (0, 2):  # the triangles of P
            mine, exact = np.tril(mine), np.tril(exact)
        assert np.allclose(mine, exact, atol=1e-8, rtol=1e-8), i


def _label_stream(D, L, K, n=60):
    rng = np.random.default_rng(10 * D + K)
    labels = rng.integers(-1, K, size=n)
    state = (*_state(D, L, K), np.full(3, np.log(4.0)), np.zeros(3 if L is None else 5))
    return _columns(rng, n, D), labels, rng.uniform(0.2, 3, size=n), state


def _number_stream(D, L, n=60):
    rng = np.random.default_rng(D)
    Phi = _columns(rng, n, D)
    targets = 50 + 7 * np.sin(Phi.sum(axis=1)) + rng.normal(size=n)
    targets[rng.random(n) < 0.2] = np.nan
    state = (*_state(D, L, 1), np.zeros(3), np.zeros(3), np.zeros(3 if L is None else 5), np.zeros(2))
    return Phi, targets, rng.uniform(0.2, 3, size=n), state


@pytest.mark.parametrize("only_heads", [False, True])
@pytest.mark.parametrize("K", [1, 2, 12])
@pytest.mark.parametrize(("D", "L"), SHAPES)
def test_pass_labels(D, L, K, only_heads):
    Phi, labels, weights, state = _label_stream(D, L, K)
    P, W, linear_P, linear_W, temperatures, losses = state
    twins = naive.pass_labels(
        *(Phi, labels, weights, P, W, DRIFTS, RIDGE, linear_P, linear_W),
        *([1.0, 0.99], temperatures, losses, 1.0, only_heads),
    )
    ours = _labels(Phi, labels, weights, state, only_heads)
    _assert_alike(ours, twins)
    assert np.allclose(ours[-1].sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("only_heads", [False, True])
@pytest.mark.parametrize(("D", "L"), SHAPES)
def test_pass_numbers(D, L, only_heads):
    Phi, targets, weights, state = _number_stream(D, L)
    P, W, linear_P, linear_W, moments, linear_moments, losses, errors = state
    twins = naive.pass_numbers(
        *(Phi, targets, weights, P, W, DRIFTS, RIDGE, linear_P, linear_W),
        *([0.0, 1e-3], moments, linear_moments, losses, errors, 2.0, only_heads),
    )
    _assert_alike(_numbers(Phi, targets, weights, state, only_heads), twins)


def test_the_heads_alone_learn_where_records_come_again():
    Phi, labels, weights, state = _label_stream(5, 3, 2)
    again = _labels(Phi, labels, weights, state, only_heads=True)
    for before, after in zip(state[2:], again[2:-1], strict=True):
        assert np.array_equal(before, after)
    heads = _labels(Phi, labels, weights, state)[:2]
    for plain, other in zip(heads, again, strict=False):
        assert np.array_equal(plain, other)

    Phi, targets, weights, state = _number_stream(5, 3)
    again = _numbers(Phi, targets, weights, state, only_heads=True)
    for name, i in (("linear_P", 2), ("linear_W", 3), ("linear_moments", 5), ("losses", 6), ("errors", 7)):
        assert np.array_equal(state[i], again[i]), name
    first = _numbers(Phi, targets, weights, state)
    for name, i in (("heads_P", 0), ("heads_W", 1), ("moments", 4)):
        assert np.array_equal(first[i], again[i]), name
    assert again[4][0] == np.isfinite(targets).sum()


def test_what_is_only_predicted_changes_nothing():
    Phi, labels, weights, state = _label_stream(5, 3, 2)
    taught = _labels(Phi, labels, weights, state)[:-1]
    after = _labels(Phi, np.full_like(labels, -1), weights, taught)
    assert all(np.array_equal(a, b) for a, b in zip(taught, after[:-1], strict=True))
    Phi, targets, weights, state = _number_stream(5, 3)
    taught = _numbers(Phi, targets, weights, state)[:-1]
    after = _numbers(Phi, np.full_like(targets, np.nan), weights, taught)
    assert all(np.array_equal(a, b) for a, b in zip(taught, after[:-1], strict=True))


@pytest.mark.parametrize("L", [3, None])
@pytest.mark.parametrize("cuts", [(1,), (7, 8, 30), tuple(range(1, 60))])
def test_any_cut_gives_the_same_bits(L, cuts):
    for stream, through in ((_label_stream(11, L, 3), _labels), (_number_stream(11, L), _numbers)):
        Phi, truths, weights, state = stream
        *whole, out = through(Phi, truths, weights, state)
        parts = []
        for part in np.split(np.arange(len(Phi)), cuts):
            *state, piece = through(Phi[part], truths[part], weights[part], state)
            parts.append(piece)
        assert np.concatenate(parts).tobytes() == out.tobytes()
        assert all(a.tobytes() == b.tobytes() for a, b in zip(state, whole, strict=True))


def test_nothing_is_read_above_the_diagonal():
    for stream, through in ((_label_stream(7, 4, 2), _labels), (_number_stream(7, 4), _numbers)):
        *records, state = stream
        *spoilt_state, out = through(*records, [_without_upper(part) for part in state])
        *plain_state, expected = through(*records, state)
        assert np.array_equal(out, expected)
        assert all(
            np.array_equal(_without_upper(a), _without_upper(b), equal_nan=True)
            for a, b in zip(plain_state, spoilt_state, strict=True)
        )


def _without_upper(part):
    """Matrices with NaN above the diagonal; anything else as it is."""
    if part.ndim < 3 or part.shape[1] != part.shape[2]:
        return part
    spoilt = part.copy()
    spoilt[:, *np.triu_indices(part.shape[1], 1)] = np.nan
    return spoilt


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=12), st.floats(0.5, 60))
def test_softmax_into(scores, temperature):
    p = np.full(len(scores), np.nan)
    kernels.softmax_into(np.array(scores), temperature, p)
    assert np.allclose(p, naive.softmax_into(scores, temperature), atol=1e-12)
    assert p.sum() == pytest.approx(1)


@given(st.lists(st.floats(0, 1e5), min_size=1, max_size=8), st.floats(0.1, 4))
def test_hedge_weights(losses, eta):
    weights = np.full(len(losses), np.nan)
    kernels.hedge_weights(np.array(losses), eta, weights)
    assert np.allclose(weights, naive.hedge_weights(losses, eta), atol=1e-12)


@given(st.integers(1, 12), st.floats(0, 4), st.integers(0, 1000))
def test_step_temperature(K, log_temperature, seed):
    rng = np.random.default_rng(seed)
    scores, label = rng.normal(size=K), int(rng.integers(K))
    p = naive.softmax_into(scores, np.exp(log_temperature))
    ours = kernels.step_temperature(log_temperature, scores, p, label)
    assert ours == pytest.approx(naive.step_temperature(log_temperature, scores, p, label), abs=1e-12)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_take_target_and_deviation(targets):
    moments, twins = np.zeros(3), np.zeros(3)
    assert kernels.deviation(moments) == naive.deviation(twins) == 0
    for y in targets:
        kernels.take_target(moments, y)
        twins = naive.take_target(twins, y)
    assert np.allclose(moments, twins, rtol=1e-9, atol=1e-6)
    assert moments[1] == pytest.approx(np.mean(targets), rel=1e-9, abs=1e-6)
    assert kernels.deviation(moments) == pytest.approx(np.std(targets), rel=1e-6, abs=1e-6)
    assert kernels.deviation(moments) == pytest.approx(naive.deviation(twins), rel=1e-6, abs=1e-6)
