"""The window solvers' losses and steps against their twins, and against what defines them."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import optimize

from streamkernel.compute import window_losses as losses
from streamkernel.window.losses import LOSSES, ElasticNet
from tests import naive

KINDS = [loss.kind for loss in LOSSES.values()]
scores = st.floats(-30, 30)
labels = st.sampled_from([-1.0, 1.0])
steps = st.floats(1e-6, 1e6)


@pytest.mark.parametrize("kind", KINDS)
@given(z=scores, y=labels, a=st.floats(0, 1), step=steps)
@example(z=3.0, y=-1.0, a=0.0, step=0.03125)  # Newton's steps go to and fro between the flat ends
def test_as_their_twins(kind, z, y, a, step):
    beta = -y * a
    assert losses.loss_value(kind, z, y) == pytest.approx(naive.loss_value(kind, z, y), rel=1e-12, abs=1e-12)
    assert losses.loss_derivative(kind, z, y) == pytest.approx(naive.loss_derivative(kind, z, y), rel=1e-12, abs=1e-12)
    assert losses.loss_conjugate(kind, beta, y) == pytest.approx(naive.loss_conjugate(kind, beta, y), abs=1e-12)
    updated = losses.dual_update(kind, beta, z, y, step)
    assert updated == pytest.approx(naive.dual_update(kind, beta, z, y, step), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@given(y=labels, a=st.floats(0, 1))
def test_conjugate_is_the_supremum(kind, y, a):
    """By brute force: the best of a grid, refined round it; past a share of 1 - 1e-6 the supremum is far away."""
    a = a if kind != losses.LOGISTIC else min(max(a, 1e-6), 1 - 1e-6)
    grid = np.linspace(-20, 20, 401)

    def value(z):
        return -y * a * z - losses.loss_value(kind, z, y)

    z = grid[np.argmax([value(z) for z in grid])]
    found = optimize.minimize_scalar(lambda z: -value(z), bounds=(z - 0.1, z + 0.1), options={"xatol": 1e-12})
    assert losses.loss_conjugate(kind, -y * a, y) == pytest.approx(-found.fun, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@given(z=scores, y=labels, a=st.floats(0, 1), step=st.floats(1e-3, 1e3))
def test_dual_update_is_the_maximizer(kind, z, y, a, step):
    def decrease(share):
        b = -y * share
        return losses.loss_conjugate(kind, b, y) + (b + y * a) ** 2 / (2 * step) - z * b

    least, most = (0.0, 1.0) if kind in (losses.LOGISTIC, losses.SMOOTH_HINGE) else (-1e3, 1e3)
    if kind == losses.SQUARED_HINGE:
        least = 0.0
    found = optimize.minimize_scalar(decrease, bounds=(least, most), method="bounded", options={"xatol": 1e-12})
    assert decrease(-y * losses.dual_update(kind, -y * a, z, y, step)) <= found.fun + 1e-9


@given(v=st.floats(-1e3, 1e3), step=st.floats(1e-3, 1e3), l2=st.floats(1e-3, 1e3), l1=st.floats(0, 1e3))
def test_elastic_net(v, step, l2, l1):
    net = ElasticNet(l2, l1)
    x = losses.elastic_net_step(v, step, l2, l1)
    assert x == pytest.approx(naive.elastic_net_step(v, step, l2, l1), rel=1e-9, abs=1e-9)
    assert x == pytest.approx(net.prox(np.array([v]), step)[0], rel=1e-12)
    conjugate = losses.elastic_net_conjugate(v, l2, l1)
    assert conjugate == pytest.approx(naive.elastic_net_conjugate(v, l2, l1), rel=1e-9, abs=1e-9)
    assert conjugate == pytest.approx(net.conjugate(np.array([v])), rel=1e-12)
    assert losses.soft_threshold(v, l1) == naive.soft_threshold(v, l1)


@pytest.mark.parametrize("kind", KINDS)
def test_losses_of_many_scores(kind):
    rng = np.random.default_rng(1)
    z, y = rng.normal(size=50) * 3, rng.choice([-1.0, 1.0], 50)
    out = np.empty(50)
    losses.score_losses(kind, z, y, out)
    np.testing.assert_allclose(out, naive.score_losses(kind, z, y), rtol=1e-12)
    losses.score_derivatives(kind, z, y, out)
    np.testing.assert_allclose(out, naive.score_derivatives(kind, z, y), rtol=1e-12)
