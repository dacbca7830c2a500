"""The posterior by recursive least squares against its twin, which solves again for each record."""

import numpy as np
import pytest

from streamkernel.compute import posterior as kernels
from streamkernel.compute.moments import SIZE
from streamkernel.compute.recursive import apply_deferred
from tests import naive


def _fresh(D, rho, centers=True, drift=0.0):
    P = np.eye(D) / rho
    P[np.triu_indices(D, 1)] = np.nan
    return kernels.Posterior(P, np.zeros((2, D)), np.zeros(D + 2), np.zeros(SIZE), np.zeros(2), rho, drift, centers)


def _passed(posterior, Phi, y, w):
    out = np.empty((len(Phi), 4))
    kernels.pass_posterior(Phi, y, w, tuple(posterior), out)
    return out


@pytest.mark.parametrize("centers", [True, False])
@pytest.mark.parametrize("D", [1, 3, 9])
def test_it_is_its_twin(D, centers):
    rng = np.random.default_rng(D)
    Phi = rng.normal(size=(40, D))
    y = Phi.sum(axis=1) + rng.normal(size=40) + 7
    y[rng.random(40) < 0.2] = np.nan
    w = rng.choice([1.0, 0.5, 3.0], 40)
    w[5] = 0.0
    expected = naive.pass_posterior(Phi, y, w, 0.3, centers)
    assert np.allclose(_passed(_fresh(D, 0.3, centers), Phi, y, w), expected, rtol=1e-9, atol=1e-9)


def test_targets_of_another_size_that_came_first_are_forgotten():
    rng = np.random.default_rng(0)
    Phi = rng.normal(size=(300, 3))
    y = Phi[:, 0] + 0.1 * rng.normal(size=300)
    y[:2] = 1e100, -1e90
    out = _passed(_fresh(3, 0.1), Phi, y, np.ones(300))
    assert np.abs(out[200:, kernels.PREDICTION] - y[200:]).max() < 1
    assert (out[200:, kernels.UNIT] < 3).all()


def _half_learned(D=5):
    """A posterior of some records, and one record more."""
    rng = np.random.default_rng(D)
    posterior = _fresh(D, 0.3)
    Phi = rng.normal(size=(20, D))
    _passed(posterior, Phi, Phi.sum(axis=1) + rng.normal(size=20), np.ones(20))
    apply_deferred(posterior.P, posterior.deferred, 1 / 0.3)
    posterior.deferred[D:] = 0.0
    return posterior, rng.normal(size=D)


@pytest.mark.parametrize(("learns", "lost"), [(True, 0.0), (True, 1.0), (False, 1.0)])
def test_what_is_known_along_a_record_is_its_twin(learns, lost):
    posterior, phi = _half_learned()
    posterior.P[np.tril_indices(5)] -= lost * np.outer(phi, phi)[np.tril_indices(5)]
    v = np.empty(5)
    expected = naive._settled(naive.symmetric(posterior.P), phi, 0.3, posterior.sums[kernels.INFORMATION], learns)
    left = kernels._settled(posterior, phi, learns, v)
    assert left == pytest.approx(expected[2])
    assert np.allclose(naive.symmetric(posterior.P), expected[0])
    assert np.allclose(v, expected[1])


def test_another_center_is_its_twin():
    posterior, _ = _half_learned()
    expected = naive._recenter(posterior.W, posterior.sums[kernels.CENTER], 7.0)
    kernels._recenter(posterior, 7.0)
    assert np.allclose(posterior.W, expected)
    assert posterior.sums[kernels.CENTER] == 7.0


def test_the_prior_again_is_its_twin():
    posterior, _ = _half_learned()
    kernels._forget(posterior)
    P, W = naive._forget(5, 0.3)
    assert np.allclose(naive.symmetric(posterior.P), P)
    assert np.array_equal(posterior.W, W)
    assert not posterior.sums.any()


def test_a_record_learned_is_its_twin():
    posterior, phi = _half_learned()
    before, W = naive.symmetric(posterior.P), posterior.W.copy()
    v = before @ phi
    center = posterior.sums[kernels.CENTER]
    kernels._learn(posterior, phi, 1.5, 2.0, phi @ v, v)
    mean = posterior.sums[kernels.CENTER]
    P, W = naive._learn(before, naive._recenter(W, center, mean), phi, [1.5 - mean, 1.0], 2.0)
    apply_deferred(posterior.P, posterior.deferred, 1 / 0.3)
    assert np.allclose(naive.symmetric(posterior.P), P)
    assert np.allclose(posterior.W, W)
