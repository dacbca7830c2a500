"""Which block a step touches: the three policies, the budget, and what a whole run of each looks like."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel import KernelClassifier
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.growth.cdsg import MOST_OUTPUTS
from tests.growth.naive import context, inequality_9, longest_step

CDSGS = [CDSG(), CDSG(cap=2.0)]


def test_dsg_grows_until_the_budget_then_revisits_uniformly():
    assert DSG().choose(context(n_blocks=3)).block == 3
    picks = [DSG().choose(context(t=t, n_blocks=4, full=True)).block for t in range(4000)]
    assert np.allclose(np.bincount(picks) / 4000, 0.25, atol=0.03)


def test_udsg_alternates():
    blocks = [UDSG(grow=2, reuse=1).choose(context(t=t, n_blocks=9)).block for t in range(9)]
    assert [block == 9 for block in blocks] == [True, True, False] * 3


@pytest.mark.parametrize("growth", CDSGS, ids=repr)
def test_cdsg_at_the_budget_takes_the_best_aligned_block_at_gamma(growth):
    beta = np.array([[0.01], [0.02], [-0.5]])
    step = growth.choose(context(n_blocks=3, full=True, beta=beta, mean_gradient=np.array([0.1]), variance=10.0))
    assert (step.block, step.size, math.isnan(step.margin)) == (1, 0.5, True)


def test_cdsg_asks_for_the_features_limit_best_first_and_no_more():
    beta = np.array([[0.3], [0.31], [0.32]])
    asked = []

    def limit(block):
        asked.append(block)
        return [math.inf, 0.1, math.inf][block]

    step = CDSG(cap=50.0).choose(
        context(n_blocks=3, beta=beta, mean_gradient=np.array([1.0]), gamma=0.2, variance=1e-3, limit=limit)
    )
    steps = [longest_step(b, 1.0, 0.2, 10.0, 1e-3) for b in (0.3, 0.31, 0.32)]
    best_first = sorted(range(3), key=lambda k: -steps[k])
    allowed = [k for k in best_first if k != 1]
    assert step.block == allowed[0]
    assert step.size == pytest.approx(steps[allowed[0]], rel=1e-12)
    assert asked == best_first[: best_first.index(allowed[0]) + 1]


finite = st.floats(-3, 3, allow_nan=False)


@given(
    n_outputs=st.integers(1, MOST_OUTPUTS),
    n_blocks=st.integers(1, 12),
    gamma=st.floats(1e-3, 10),
    cap=st.one_of(st.just(1.0), st.floats(1.01, 20)),
    variance=st.floats(1e-9, 1),
    feature_limit=st.sampled_from([math.inf, 3.0, 0.7, 0.01]),
    data=st.data(),
)
def test_a_reuse_never_breaks_9(n_outputs, n_blocks, gamma, cap, variance, feature_limit, data):
    gbar = np.array(data.draw(st.lists(finite, min_size=n_outputs, max_size=n_outputs)))
    noise = np.array(data.draw(st.lists(finite, min_size=n_blocks * n_outputs, max_size=n_blocks * n_outputs)))
    aligned = data.draw(st.floats(0, 2))
    beta = gamma * (aligned * gbar + 0.3 * noise.reshape(n_blocks, n_outputs))
    step = CDSG(cap).choose(
        context(
            n_blocks=n_blocks,
            gamma=gamma,
            mean_gradient=gbar,
            beta=beta,
            variance=variance,
            limit=lambda _: feature_limit,
        )
    )
    sides = [inequality_9(own, gbar, gamma, gamma, variance) for own in beta]
    if cap == 1 and feature_limit >= gamma:
        assert step.block == n_blocks or all(r - p <= step.margin + 1e-9 * (r + p) for r, p in sides)
        assert step.block < n_blocks or all(p >= r - 1e-9 * (r + p) for r, p in sides)
    if step.block == n_blocks:
        return
    right, left = inequality_9(beta[step.block], gbar, gamma, step.size, variance)
    assert left <= right * (1 + 1e-9)
    assert gamma <= step.size <= min(cap * gamma, feature_limit)
    assert (step.size == gamma) == (cap == 1)
    assert step.margin == pytest.approx(right - left, rel=1e-6, abs=1e-9 * right)
    assert step.decay == step.size


def _records(K, n, seed, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    centers = rng.normal(size=(K, d))
    labels = np.argmin(((X[:, None] - centers) ** 2).sum(axis=2), axis=1)
    return [dict(enumerate(x)) for x in X.tolist()], labels


@pytest.mark.parametrize("K", [12, 100])
def test_many_classes_are_checked_class_by_class(K):
    rng = np.random.default_rng(K)
    gamma, variance = 0.5, 1e-6
    gbar = rng.normal(size=K) / K
    beta = gamma * np.stack([-gbar, 0.9 * gbar * (rng.random(K) < 0.8), 0.9 * gbar * (rng.random(K) < 0.5)])
    step = CDSG(2).choose(context(n_blocks=3, gamma=gamma, mean_gradient=gbar, beta=beta, class_variance=variance))
    expected = np.array(
        [[longest_step(beta[k, c], gbar[c], gamma, 2 * gamma, variance) for c in range(K)] for k in range(3)]
    )
    best = int(np.argmax(expected @ np.abs(gbar)))
    assert step.block == best
    np.testing.assert_allclose(step.size, np.where(expected[best] > 0, expected[best], gamma), rtol=1e-12)
    assert step.decay == gamma
    assert step.margin > -1e-12


@pytest.mark.parametrize("growth", [DSG(), UDSG(), *CDSGS], ids=repr)
def test_the_budget_holds(growth):
    xs, labels = _records(3, 3000, 2)
    model = KernelClassifier(growth=growth, precondition=False, max_features=300, seed=1)
    model.advance(xs, labels.tolist())
    assert model.n_features == 288  # nine whole blocks of 32
    assert model.n_grown == 9
    assert model.n_steps == model.n_grown + model.n_reused
