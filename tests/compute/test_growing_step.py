"""The compiled step of the growing machine against its twins; choices are compared where rounding has no say."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.compute import growing_step as kernels
from streamkernel.compute.features import SINE
from streamkernel.compute.moments import SIZE
from tests import naive
from tests.compute.test_check import blocks
from tests.growth.naive import inequality_9

DTYPES = [np.dtype("float32"), np.dtype("float64")]
F, BLOCKS, D, N, K = 16, 3, 4, 9, 2


def _drawn(dtype, seed=1):
    """Values, frequencies in turns with room, coefficients with room, gradients and weights."""
    rng = np.random.default_rng(seed)
    W = (rng.normal(size=(D + 1, F * (BLOCKS + 2))) / 6).astype(dtype)
    alpha = rng.normal(size=(K, 2, F * (BLOCKS + 1))).astype(dtype)
    return rng.normal(size=(N, D)), W, alpha, rng.normal(size=(N, K)), rng.choice([0.0, 1.0, 2.5], N)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("standardize", [True, False])
def test_score_rows(dtype, standardize):
    values, W, alpha, *_ = _drawn(dtype)
    values[3, 1] = np.nan
    learned, is_number = np.arange(N) % 3 > 0, np.ones(D, np.bool_)
    X, scores = np.full((N, D), 7, dtype), np.full((N, K), 7.0)
    scaling = learned, standardize, 4.0, is_number
    kernels.score_rows(values, *scaling, np.zeros((D, SIZE)), W, alpha, BLOCKS * F, 0.25, SINE[dtype], X, scores)
    exact, exact_scores = naive.score_rows(values, *scaling, W, alpha, BLOCKS * F, 0.25)
    assert np.allclose(X, exact, atol=1e-6)
    assert np.allclose(scores, exact_scores, atol=2e-4)


def _is_clear(beta, gbar, gamma, variance):
    """Whether rounding has no say in which block is best, or in whether (9) holds."""
    gaps = [np.subtract(*inequality_9(own, gbar, gamma, gamma, variance)) for own in beta]
    return all(abs(a - b) > 1e-9 * gamma**2 for i, a in enumerate([0.0, *gaps]) for b in [0.0, *gaps][:i])


@given(blocks())
def test_checked_block(drawn):
    beta, gbar, gamma, variance, _ = drawn
    block, held = kernels.checked_block(beta, gbar, gamma, gamma**2, variance)
    if _is_clear(beta, gbar, gamma, variance):
        exact, exact_held = naive.checked_block(beta, gbar, gamma, variance)
        assert (block, held) == (exact, pytest.approx(exact_held, rel=1e-6))
    if block >= 0:
        right, left = inequality_9(beta[block], gbar, gamma, gamma, variance)
        assert held == pytest.approx(right - left, rel=1e-9, abs=1e-12 * (left + right))


@given(blocks())
def test_checked_by_class(drawn):
    beta, gbar, gamma, variance, _ = drawn
    clear = all(_is_clear(beta[:, c : c + 1], gbar[c : c + 1], gamma, variance) for c in range(len(gbar)))
    block, held = kernels.checked_by_class(beta, gbar, gamma, gamma**2, variance)
    if clear:
        exact, exact_held = naive.checked_by_class(beta, gbar, gamma, variance)
        assert block == exact
        if block >= 0:
            assert held == pytest.approx(exact_held, rel=1e-6)


def test_a_class_without_a_gradient_may_pass_and_holds_nothing():
    none = np.zeros(12)
    assert kernels.checked_by_class(none[None], none, 1.0, 1.0, 0.0) == (0, 0.0)
    assert kernels.checked_by_class(none[None], none, 1.0, 1.0, 0.1)[0] == -1


@given(st.booleans(), st.integers(0, 99))
def test_choose_block(by_class, seed):
    _, _, _, g, weights = _drawn(DTYPES[0], seed)
    gamma, variance = 0.3, 1e-4
    beta = gamma * np.random.default_rng(seed).uniform(-1, 2, (BLOCKS, 1)) * (g * weights[:, None]).mean(axis=0)
    weighted, gbar = np.empty((N, K)), np.empty(K)
    found = kernels.choose_block(g, weights, by_class, gamma, gamma**2, variance, beta, weighted, gbar)
    exact = naive.choose_block(g, weights, by_class, gamma, variance, beta)
    assert (found[0], found[2]) == (exact[0], exact[2])
    assert found[1] == pytest.approx(exact[1], rel=1e-6, nan_ok=True)
    assert np.allclose(weighted, exact[3])
    assert np.allclose(gbar, exact[4])


def test_nothing_pulls_where_no_record_has_a_weight():
    g, weighted, gbar = np.ones((N, K)), np.empty((N, K)), np.empty(K)
    block, margin, pulls = kernels.choose_block(
        g, np.zeros(N), False, 0.3, 0.09, 1.0, np.zeros((BLOCKS, K)), weighted, gbar
    )
    assert (block, pulls) == (-1, False)
    assert math.isnan(margin)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("most", [1e30, 0.5])
@pytest.mark.parametrize("keeps_beta", [True, False])
@pytest.mark.parametrize("block", [1, BLOCKS])
def test_move_block(dtype, most, keeps_beta, block):
    _, _, alpha, g, _ = _drawn(dtype)
    G, gbar = np.random.default_rng(2).normal(size=(K, 2 * F)), g.mean(axis=0)
    beta = np.arange(2.0 * (BLOCKS + 1)).reshape(-1, K)[: BLOCKS + 1 if keeps_beta else 0]
    exact = naive.move_block(block, 0.3, 0.5, most, G, gbar, alpha, beta)
    kernels.move_block(block, 0.3, 0.5, most, G, gbar, alpha, beta)
    for ours, twins in zip((G, alpha, beta), exact, strict=True):
        assert np.allclose(ours, twins, atol=1e-6)
