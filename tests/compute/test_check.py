"""The check of CDSG against inequality (9) itself: twins seek by halves what the kernels solve for."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamkernel.compute.mixture_parts import margin
from streamkernel.growth.cdsg import BlockTerms, admissible_steps
from tests import naive
from tests.growth.naive import inequality_9

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


def _roots(beta2, b, gbar2, gamma, variance):
    lower, upper = BlockTerms(np.array([beta2]), np.array([b]), gbar2, gamma, variance).roots()
    return lower[0], upper[0]


def _is_clear(beta2, b, gbar2, gamma, variance):
    """Whether (9) holds somewhere, or nowhere, by more than rounding."""
    pull = gbar2 + variance
    peak = naive.margin(beta2, b, gbar2, gamma, variance, b / pull) if pull else 1
    return abs(peak) > 1e-9 * (beta2 + gamma**2 * gbar2)


@given(positive, numbers, positive, gammas, variances)
def test_roots(beta2, cosine, gbar2, gamma, variance):
    b = np.clip(cosine, -1, 1) * math.sqrt(beta2 * gbar2)
    assume(_is_clear(beta2, b, gbar2, gamma, variance))
    lower, upper = _roots(beta2, b, gbar2, gamma, variance)
    # The smaller root of two is what is left of two large numbers.
    size = max(abs(lower), abs(upper)) if lower < upper else 0.0
    assert (lower, upper) == pytest.approx(naive.roots(beta2, b, gbar2, gamma, variance), rel=1e-9, abs=1e-6 * size)


def test_plain_cases_of_the_roots():
    # |beta|^2 = <beta, gbar> = |gbar|^2 = gamma = 1: 2 (1 - s)^2 <= 2.
    assert _roots(1.0, 1.0, 1.0, 1.0, 0.0) == (0.0, 2.0)
    assert _roots(1.0, -1.0, 1.0, 1.0, 0.0) == (-2.0, 0.0)
    # A block that knows nothing steps as far as a new one would, over sqrt 2.
    assert _roots(0.0, 0.0, 1.0, 1.0, 0.0) == pytest.approx((-math.sqrt(0.5), math.sqrt(0.5)))
    # At right angles there is nothing to gain for a block that is longer than the step.
    assert _roots(4.0, 0.0, 1.0, 1.0, 0.0) == (math.inf, -math.inf)
    # Without a gradient there is no step.
    assert _roots(1.0, 0.0, 0.0, 1.0, 0.0) == (math.inf, -math.inf)


ends = st.sampled_from([-1.0, 0.0, 0.5, 0.9, 1.0, 1.1, 2.0, 3.0])
intervals = st.one_of(st.just((math.inf, -math.inf)), st.tuples(ends, ends).map(sorted))


@given(intervals, st.sampled_from([0.5, 1.0, 2.0]), st.one_of(ends, st.just(math.inf)))
def test_admissible_step(interval, gamma, limit):
    lower, upper = interval
    step = admissible_steps(lower, upper, gamma, limit)
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
        held = margin(*given_)
        assert held == pytest.approx(float(naive.margin(*given_)), rel=1e-9, abs=1e-12 * (left + right))
        assert held == pytest.approx(right - left, rel=1e-9, abs=1e-12 * (left + right))


@given(blocks(most=3, most_outputs=4))
def test_longest_steps_of_blocks_and_of_their_classes(drawn):
    beta, gbar, gamma, variance, limit = drawn
    for terms in (BlockTerms.of_blocks, BlockTerms.of_classes):
        own = terms(beta, gbar, gamma, variance)
        steps = admissible_steps(*own.roots(), gamma, limit)
        gbar2 = np.broadcast_to(own.gbar2, steps.shape)
        for place in np.ndindex(*steps.shape):
            given_ = own.beta2[place], own.b[place], gbar2[place], gamma, variance
            if _is_decided(*given_, limit):
                exact = naive.admissible_step(*naive.roots(*given_), gamma, limit)
                assert steps[place] == pytest.approx(exact, rel=1e-6)


@given(blocks())
def test_margins_of_blocks_and_of_their_classes(drawn):
    beta, gbar, gamma, variance, _ = drawn
    margins = BlockTerms.of_blocks(beta, gbar, gamma, variance).margins(gamma)
    of_classes = BlockTerms.of_classes(beta, gbar, gamma, variance).margins(gamma)
    pairs = [(own, gbar, held) for own, held in zip(beta, margins, strict=True)]
    pairs += [(beta[k, o], gbar[o], of_classes[k, o]) for k, o in np.ndindex(*beta.shape)]
    for own, pull, held in pairs:
        right, left = inequality_9(own, pull, gamma, gamma, variance)
        if abs(right - left) > 1e-9 * (right + left):  # rounding has no say
            assert held == (pytest.approx(right - left, abs=1e-12 * (right + left)) if left <= right else -math.inf)


def _is_decided(beta2, b, gbar2, gamma, variance, limit):
    """Whether rounding has no say in which steps there are: they are clear, and apart from gamma and the limit."""
    if not _is_clear(beta2, b, gbar2, gamma, variance):
        return False
    lower, upper = naive.roots(beta2, b, gbar2, gamma, variance)
    return not any(math.isclose(one, other, rel_tol=1e-6) for one in (lower, upper) for other in (gamma, limit))
