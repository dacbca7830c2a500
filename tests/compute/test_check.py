"""The check of CDSG against inequality (9) itself: twins seek by halves what the kernels solve for."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamkernel.compute import check as kernels
from tests import naive
from tests.growth.naive import inequality_9, longest_step

numbers = st.floats(-3, 3)
positive = st.floats(1e-6, 3)
gammas = st.floats(1e-3, 10)
variances = st.one_of(st.just(0.0), st.floats(1e-9, 1))


@st.composite
def blocks(draw, most=6, most_outputs=12):
    """Gradient coefficients about as long as a step of the mean gradient, some of them along it; gamma, v, limit."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, K = draw(st.integers(0, most)), draw(st.integers(1, most_outputs))
    gamma, gbar = draw(gammas), rng.normal(size=K) * draw(st.sampled_from([0.01, 1.0]))
    along = rng.uniform(-0.5, 2, size=(n, 1)) * gbar
    beta = gamma * (along + draw(st.sampled_from([0.0, 0.3])) * np.abs(gbar).mean() * rng.normal(size=(n, K)))
    limit = draw(st.sampled_from([1.5 * gamma, 20 * gamma, math.inf]))
    return beta, gbar, gamma, draw(st.sampled_from([0.0, 1e-6, 0.1])), limit


def _is_clear(beta2, b, gbar2, gamma, variance):
    """Whether (9) holds somewhere, or nowhere, by more than rounding."""
    pull = gbar2 + variance
    peak = naive.margin(beta2, b, gbar2, gamma, variance, b / pull) if pull else 1
    return abs(peak) > 1e-9 * (beta2 + gamma**2 * gbar2)


@given(positive, numbers, positive, gammas, variances)
def test_roots(beta2, cosine, gbar2, gamma, variance):
    b = np.clip(cosine, -1, 1) * math.sqrt(beta2 * gbar2)
    assume(_is_clear(beta2, b, gbar2, gamma, variance))
    lower, upper = kernels.roots(beta2, b, gbar2, gamma, variance)
    # The smaller root of two is what is left of two large numbers.
    size = max(abs(lower), abs(upper)) if lower < upper else 0.0
    assert (lower, upper) == pytest.approx(naive.roots(beta2, b, gbar2, gamma, variance), rel=1e-9, abs=1e-6 * size)


def test_plain_cases_of_the_roots():
    # |beta|^2 = <beta, gbar> = |gbar|^2 = gamma = 1: 2 (1 - s)^2 <= 2.
    assert kernels.roots(1.0, 1.0, 1.0, 1.0, 0.0) == (0.0, 2.0)
    assert kernels.roots(1.0, -1.0, 1.0, 1.0, 0.0) == (-2.0, 0.0)
    # A block that knows nothing steps as far as a new one would, over sqrt 2.
    assert kernels.roots(0.0, 0.0, 1.0, 1.0, 0.0) == pytest.approx((-math.sqrt(0.5), math.sqrt(0.5)))
    # At right angles there is nothing to gain for a block that is longer than the step.
    assert kernels.roots(4.0, 0.0, 1.0, 1.0, 0.0) == (math.inf, -math.inf)
    # Without a gradient there is no step.
    assert kernels.roots(1.0, 0.0, 0.0, 1.0, 0.0) == (math.inf, -math.inf)


ends = st.sampled_from([-1.0, 0.0, 0.5, 0.9, 1.0, 1.1, 2.0, 3.0])
intervals = st.one_of(st.just((math.inf, -math.inf)), st.tuples(ends, ends).map(sorted))


@given(intervals, st.sampled_from([0.5, 1.0, 2.0]), st.one_of(ends, st.just(math.inf)))
def test_admissible_step(interval, gamma, limit):
    lower, upper = interval
    step = kernels.admissible_step(lower, upper, gamma, limit)
    assert step == naive.admissible_step(lower, upper, gamma, limit)
    if step:
        assert lower <= step <= upper
        assert gamma < step <= limit


@given(blocks(), st.floats(1e-3, 10))
def test_margin(drawn, step):
    beta, gbar, gamma, variance, _ = drawn
    for own in beta:
        right, left = inequality_9(own, gbar, gamma, step, variance)
        given_ = own @ own, own @ gbar, gbar @ gbar, gamma, variance, step
        held = kernels.margin(*given_)
        assert held == pytest.approx(float(naive.margin(*given_)), rel=1e-9, abs=1e-12 * (left + right))
        assert held == pytest.approx(right - left, rel=1e-9, abs=1e-12 * (left + right))


@given(blocks())
def test_check_blocks(drawn):
    beta, gbar, gamma, variance, limit = drawn
    products, steps = np.full((4, len(beta)), np.nan), np.full(len(beta), np.nan)
    gbar2 = kernels.check_blocks(beta, gbar, gamma, variance, limit, products, steps)
    exact_gbar2, exact = naive.check_blocks(beta, gbar, gamma, variance, limit)
    assert gbar2 == pytest.approx(exact_gbar2, rel=1e-12)
    for (beta2, b, lower, upper), step, twin in zip(products.T, steps, exact, strict=True):
        assert (beta2, b) == pytest.approx(twin[:2], rel=1e-9, abs=1e-12 * (twin[0] + gbar2))
        assert step == kernels.admissible_step(lower, upper, gamma, limit)
        if _is_decided(beta2, b, gbar2, gamma, variance, limit):
            assert step == pytest.approx(twin[2], rel=1e-6)


@given(blocks(most=2, most_outputs=3))
def test_check_classes(drawn):
    beta, gbar, gamma, variance, limit = drawn
    steps = np.full(beta.shape, np.nan)
    kernels.check_classes(beta, gbar, gamma, variance, limit, steps)
    exact = naive.check_classes(beta, gbar, gamma, variance, limit)
    for k, o in np.ndindex(*beta.shape):
        own, pull = beta[k, o], gbar[o]
        if _is_decided(own**2, own * pull, pull**2, gamma, variance, limit):
            assert steps[k, o] == pytest.approx(exact[k, o], rel=1e-6)
            if variance:
                assert steps[k, o] == pytest.approx(longest_step(own, pull, gamma, limit, variance), rel=1e-9)


@given(blocks())
def test_check_margins(drawn):
    beta, gbar, gamma, variance, _ = drawn
    margins = np.full(len(beta), np.nan)
    kernels.check_margins(beta, gbar, gamma, variance, margins)
    for own, held, twin in zip(beta, margins, naive.check_margins(beta, gbar, gamma, variance), strict=True):
        right, left = inequality_9(own, gbar, gamma, gamma, variance)
        if abs(right - left) > 1e-9 * (right + left):  # rounding has no say
            assert held == pytest.approx(twin, rel=1e-9, abs=1e-12 * (right + left))
            assert held == (pytest.approx(right - left, abs=1e-12 * (right + left)) if left <= right else -math.inf)


@given(blocks(most=3, most_outputs=12))
def test_check_class_margins(drawn):
    beta, gbar, gamma, variance, _ = drawn
    margins, shares = np.full(beta.shape, np.nan), np.full(len(beta), np.nan)
    total = kernels.check_class_margins(beta, gbar, gamma, variance, margins, shares)
    exact, exact_shares, exact_total = naive.check_class_margins(beta, gbar, gamma, variance)
    assert total == pytest.approx(exact_total, rel=1e-12)
    sizes = beta**2 + gamma**2 * (gbar**2 + variance)
    clear = np.array([[abs(_margin(*pair, gamma, variance)) for pair in zip(own, gbar, strict=True)] for own in beta])
    clear = clear.reshape(beta.shape) > 1e-9 * sizes
    np.testing.assert_allclose(margins[clear], exact[clear], rtol=1e-9)
    for k in np.flatnonzero(clear.all(axis=1)):
        assert shares[k] == pytest.approx(exact_shares[k], rel=1e-12)


def _margin(own, pull, gamma, variance):
    right, left = inequality_9(own, pull, gamma, gamma, variance)
    return right - left


def _is_decided(beta2, b, gbar2, gamma, variance, limit):
    """Whether rounding has no say in which steps there are: they are clear, and apart from gamma and the limit."""
    if not _is_clear(beta2, b, gbar2, gamma, variance):
        return False
    lower, upper = naive.roots(beta2, b, gbar2, gamma, variance)
    return not any(math.isclose(one, other, rel_tol=1e-6) for one in (lower, upper) for other in (gamma, limit))
