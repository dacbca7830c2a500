"""What experts for classes and for numbers share, each formula against its twin."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.compute import experts as kernels
from streamkernel.compute.experts import Heads
from streamkernel.compute.moments import SIZE
from tests import naive
from tests.compute import passes
from tests.compute.passes import DRIFTS, RIDGE


def _heads(rng, D, K):
    """Heads that learned some records, of which a few are due to their P; and more."""
    heads, _ = passes.named(passes.heads_and_linear(D, None, K), np.zeros(0))
    Phi, truths, weights = rng.normal(size=(40, D)), rng.normal(size=(40, K)), rng.uniform(0.2, 3, 40)
    kernels.replay(Phi[:20], truths[:20], weights[:20], heads)
    return heads, Phi[20:], truths[20:], weights[20:]


def _copied(heads):
    return Heads(*(part.copy() if isinstance(part, np.ndarray) else part for part in heads))


def _assert_heads(heads, twins):
    P, W, *_ = naive.settled_heads(heads)
    np.testing.assert_allclose(np.tril(P), np.tril(twins[0]), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(W, twins[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("K", [1, 2, 12])
@pytest.mark.parametrize("D", [1, 5, 14])
@pytest.mark.parametrize("weight", [0.3, 1.0, 50.0])
def test_update_heads(D, K, weight):
    rng = np.random.default_rng(D + K)
    heads, Phi, truths, _ = _heads(rng, D, K)
    twins, ahead = naive.settled_heads(heads), kernels.look_ahead(heads, Phi, np.ones(20, np.bool_))
    for n in range(20):  # past those that change P
        scores = rng.normal(size=(5, K))  # those of two other experts are not theirs
        twins = *naive.update_heads(twins, Phi[n], truths[n], scores, weight), DRIFTS, RIDGE
        kernels.update_heads(heads, ahead, truths[n], scores, weight, np.full(K, np.nan))
        assert heads.n_late[0] == (20 + n + 1) % 8
        _assert_heads(heads, twins)


@pytest.mark.parametrize("D", [1, 5, 14])
@pytest.mark.parametrize("n_learned", [0, 1, 3, 9])
@pytest.mark.parametrize("is_due", [False, True])
def test_records_ahead(D, n_learned, is_due):
    """Those that come before the matrices change: four are due to them, or eight."""
    rng = np.random.default_rng(D + n_learned)
    heads, Phi, _, _ = _heads(rng, D, 2)
    learned = rng.permutation(np.arange(20) < n_learned)
    X, V = naive.look_ahead(heads, Phi, learned)
    ahead = kernels.look_ahead(heads, Phi, learned)
    if is_due:
        heads.late[:, 4:, :D], heads.n_late[0] = rng.normal(size=(3, 4, D)) / 9, 0
        ahead.places[1] = 0
        X, V = naive.multiply_ahead(heads, Phi, learned, True)
        kernels.multiply_ahead(heads, ahead, True)
        assert not heads.late.any()
    n = min(n_learned, 8 if is_due else 4)
    assert ahead.places[0] == 0
    assert learned[: ahead.places[1]].sum() == len(X) == n
    assert ahead.X[:n, :D].tolist() == X.tolist()
    np.testing.assert_allclose(ahead.V[:, :n, :D], V, rtol=1e-9, atol=1e-9)
    assert not ahead.X[:, D:].any()
    assert not ahead.V[:, :n, D:].any()


@pytest.mark.parametrize("K", [1, 2, 12])
@pytest.mark.parametrize("D", [1, 5, 14])
def test_replay(D, K):
    heads, Phi, truths, weights = _heads(np.random.default_rng(D + K), D, K)
    weights[[0, 7, 8]] = 0
    twins = naive.replay(Phi, truths, weights, naive.settled_heads(heads))
    kernels.replay(Phi, truths, weights, heads)
    _assert_heads(heads, twins)


def test_a_weight_of_0_leaves_a_record_out():
    heads, Phi, truths, weights = _heads(np.random.default_rng(1), 6, 2)
    left, others = np.arange(20) % 3 == 0, _copied(heads)
    weights[left], truths[left] = 0, np.nan
    kernels.replay(Phi, truths, weights, heads)
    kernels.replay(Phi[~left], truths[~left], weights[~left], others)
    assert passes.bits(heads[:5]) == passes.bits(others[:5])


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.sampled_from([0.0, 1e-3, 1.0, 7.0])), max_size=30))
def test_standardize_targets(records):
    targets, weights = np.array(records).reshape(-1, 2).T
    moments, twins, out = np.zeros(SIZE), naive.Moments(naive.TARGETS), np.full(len(targets), np.nan)
    kernels.standardize_targets(targets, weights, moments, out)
    expected = naive.standardize_targets(targets, weights, twins)
    np.testing.assert_allclose(moments, twins.numbers, rtol=1e-6, atol=1e-3)
    assert (out[weights == 0] == 0).all()
    learned = targets[weights > 0]
    # Where deviations are beside their mean as rounding is, rounding is all there is to standardize by.
    far = [np.std(learned[: n + 1]) > 1e-3 * abs(learned[: n + 1]).max() for n in range(len(learned))]
    mine, exact = out[weights > 0][far], np.array(expected)[weights > 0][far]
    np.testing.assert_allclose(mine, exact, rtol=1e-6, atol=1e-6)


def test_targets_are_standardized_one_after_the_other():
    out = np.empty(4)
    targets, weights = np.array([5.0, 9.0, math.nan, 1.0]), np.array([1.0, 2.0, 0.0, 0.5])
    kernels.standardize_targets(targets, weights, np.zeros(SIZE), out)
    np.testing.assert_allclose(out, [0.0, 1.0, 0.0, -4 / math.sqrt(32 / 3)], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("K", [1, 12])
@pytest.mark.parametrize(("D", "L"), [(1, 1), (9, 9), (29, 10)])
@pytest.mark.parametrize("E", [0, 2])
def test_predict_experts(D, L, K, E):
    rng = np.random.default_rng(D + K)
    heads_W, linear_W, phi = rng.normal(size=(3, K, D)), rng.normal(size=(E, K, L)), rng.normal(size=D)
    scores = np.full((3 + E + 1, K), np.nan)
    kernels.predict_experts(heads_W, linear_W, phi, scores)
    assert np.allclose(scores[:-1], naive.predict_experts(heads_W, linear_W, phi), atol=1e-12)
    assert np.isnan(scores[-1]).all()  # other experts' rows are theirs


@given(st.lists(st.tuples(st.floats(0, 1e5), st.floats(0.05, 3)), min_size=1, max_size=8), st.floats(0.1, 4))
def test_hedge_weights(experts, eta):
    losses, prior = (np.array(part) for part in zip(*experts, strict=True))
    weights = np.full(len(losses), np.nan)
    kernels.hedge_weights(losses, prior, eta, weights)
    assert np.allclose(weights, naive.hedge_weights(losses, prior, eta), atol=1e-9)


@given(st.integers(1, 12), st.floats(0, 4), st.integers(0, 1000))
def test_step_temperature(K, log_temperature, seed):
    rng = np.random.default_rng(seed)
    scores, label = rng.normal(size=K), int(rng.integers(K))
    p = naive.softmax_into(scores, np.exp(log_temperature))
    ours = kernels.step_temperature(log_temperature, scores, p, label)
    assert ours == pytest.approx(naive.step_temperature(log_temperature, scores, p, label), abs=1e-12)
