"""The least-squares posterior: the exact Gaussian process on its features, near that of its kernel, on any stream."""

import math

import numpy as np
import pytest
from river import proba

from benchmarks import gaussian_process as paper
from streamkernel import GaussianProcessRegressor
from streamkernel.estimators.base import machine_of
from streamkernel.kernels import Cauchy, Gaussian, Laplacian, Matern, SkewedChiSquared


def _records(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 5 + 0.1 * rng.normal(size=n)


def _exact(kernel, noise, X, y, Z):
    """Mean and variance of the exact Gaussian process, (9) of the paper."""
    bandwidth = kernel.bandwidth
    K = kernel.matrix(X, X, bandwidth) + noise * np.eye(len(X))
    across = kernel.matrix(Z, X, bandwidth)
    variance = np.diag(kernel.matrix(Z, Z, bandwidth)) - np.einsum("ij,ji->i", across, np.linalg.solve(K, across.T))
    return across @ np.linalg.solve(K, y), variance


def _features(model, X):
    """phi(x), such that phi(x) . phi(x') is the kernel that the model has."""
    machine = machine_of(model)
    features = machine.features
    return features.of(X, machine.inputs.columns.keys, np.zeros(0, np.uint64)) * math.sqrt(features.kappa)


@pytest.mark.parametrize(
    "kernel", [Gaussian(1.5), 4.0 * Laplacian(2.0) + Matern(2.5, 1.0), Cauchy(2.0) * Gaussian(1.0)]
)
@pytest.mark.parametrize("noise", [0.1, 2.0])
def test_it_is_exact_for_the_kernel_of_its_features(kernel, noise):
    X, y = _records()
    Z = np.random.default_rng(1).normal(size=(20, 2))
    model = GaussianProcessRegressor(kernel, noise, 24, normalize_y=False, standardize=False, seed=1)
    model.learn_many(X, y)
    phi, at = _features(model, X), _features(model, Z)
    A = phi.T @ phi / noise + np.eye(phi.shape[1])
    found = model.predict_many(Z, with_dist=True)
    assert np.allclose(found[:, 0], at @ np.linalg.solve(A, phi.T @ y) / noise, rtol=1e-8)
    assert np.allclose(found[:, 1] ** 2, np.einsum("ij,ji->i", at, np.linalg.solve(A, at.T)), rtol=1e-8)


@pytest.mark.parametrize("kernel", [Gaussian(1.5), 0.5 * Matern(2.5, 2.0), Gaussian(2.0) * Cauchy(3.0)])
def test_it_is_near_that_of_the_kernel(kernel):
    X, y = _records()
    Z = np.random.default_rng(1).normal(size=(50, 2))
    model = GaussianProcessRegressor(kernel, 0.2, 256, normalize_y=False, standardize=False, seed=1)
    model.learn_many(X, y)
    mean, variance = _exact(kernel, 0.2, X, y, Z)
    found = model.predict_many(Z, with_dist=True)
    assert paper.relative(found[:, 0], mean) < 0.03
    assert paper.relative(found[:, 1] ** 2, variance) < 0.15


@pytest.mark.long
def test_the_papers_setting():
    given = paper.setting()
    errors = np.array([[paper.least_squares(given, F, True, seed)[:2] for seed in range(3)] for F in (64, 512)])
    before, after = errors.mean(axis=1)
    assert (after < before).all()
    assert after[0] <= 0.10
    assert after[1] <= 0.05


def test_normalized_targets_are_those_of_all_records_by_the_moments_of_now():
    X, y = _records()
    arguments = {"kernel": Gaussian(1.5), "n_features": 24, "standardize": False, "seed": 1}
    model = GaussianProcessRegressor(**arguments)
    model.learn_many(X, y * 1e6 - 4e8)
    at_once = GaussianProcessRegressor(**arguments, normalize_y=False)
    at_once.learn_many(X, (y - y.mean()) / y.std())
    Z = np.random.default_rng(1).normal(size=(20, 2))
    found, expected = (one.predict_many(Z, with_dist=True) for one in (model, at_once))
    assert np.allclose(found[:, 0], (expected[:, 0] * y.std() + y.mean()) * 1e6 - 4e8, rtol=1e-9)
    assert np.allclose(found[:, 1], expected[:, 1] * y.std() * 1e6, rtol=1e-9)


def test_a_weight_is_so_many_records():
    X, y = _records(40)
    models = [GaussianProcessRegressor(Gaussian(1.5), n_features=8, normalize_y=False, seed=1) for _ in range(2)]
    models[0].learn_many(X[:1], y[:1])
    models[1].learn_many(X[:1], y[:1])
    models[0].learn_one({0: 0.3, 1: 0.2}, 2.0, w=3.0)
    for _ in range(3):
        models[1].learn_one({0: 0.3, 1: 0.2}, 2.0)
    posteriors = [machine_of(model).posterior.P for model in models]
    # The inputs' moments differ: those of three records are not those of one.
    assert not np.allclose(*posteriors)
    models = [GaussianProcessRegressor(Gaussian(1.5), 0.1, 8, None, False, standardize=False, seed=1) for _ in range(2)]
    models[0].learn_one({0: 0.3, 1: 0.2}, 2.0, w=3.0)
    for _ in range(3):
        models[1].learn_one({0: 0.3, 1: 0.2}, 2.0)
    assert np.allclose(*(machine_of(model).posterior.P for model in models), rtol=1e-10)
    assert np.isclose(*(model.predict_one({0: 1.0, 1: 0.0}) for model in models))
    before = models[0].predict_many(np.array([[1.0, 2.0]]), with_dist=True)
    models[0].learn_one({0: 0.3, 1: 0.2}, 99.0, w=0.0)
    assert np.array_equal(models[0].predict_many(np.array([[1.0, 2.0]]), with_dist=True), before)


def test_the_distribution_is_rivers():
    X, y = _records(60)
    models = [
        GaussianProcessRegressor(Gaussian(1.5), n_features=8, with_noise=noisy, seed=1) for noisy in (False, True)
    ]
    for model in models:
        assert model.predict_one({}) == 0.0
        assert model.predict_one({}, with_dist=True).sigma == pytest.approx(math.sqrt(1.1 if model.with_noise else 1.0))
        model.learn_many(X, y)
    latent, target = (model.predict_one({0: 0.5, 1: 0.0}, with_dist=True) for model in models)
    assert isinstance(latent, proba.Gaussian)
    assert latent.mu == target.mu == models[0].predict_one({0: 0.5, 1: 0.0})
    assert target.sigma**2 - latent.sigma**2 == pytest.approx(0.1 * y.var())
    assert models[0].predict_many(np.array([[0.5, 0.0]]), with_dist=True).tolist() == [[latent.mu, latent.sigma]]


def test_a_band_holds_what_it_says():
    rng = np.random.default_rng(0)
    model = GaussianProcessRegressor(noise=0.05, n_features=64, with_noise=True, seed=1)
    xs = [{"a": a} for a in rng.uniform(-3, 3, 1_500).tolist()]
    ys = [math.sin(x["a"]) + e for x, e in zip(xs, rng.normal(size=1_500) * 0.16, strict=True)]
    outcome = model.advance(xs, ys)
    inside = np.abs(np.array(outcome.predictions) - ys)[500:] < 1.96 * outcome.deviations[500:]
    assert 0.92 < inside.mean() < 0.98


def test_the_bandwidth_comes_from_the_first_records():
    X, y = _records(260)
    model = GaussianProcessRegressor(n_features=8, seed=1)
    assert model.bandwidth == 0.0
    model.learn_many(X[:11], y[:11])
    assert model.bandwidth == pytest.approx(0.7 * math.sqrt(2 * 2))
    model.learn_many(X[11:199], y[11:199])
    scaled = (X[:100] - X[:100].mean(axis=0)) / X[:100].std(axis=0)
    assert model.bandwidth == pytest.approx(Gaussian().median_bandwidth(scaled), rel=0.01)
    model.learn_many(X[199:], y[199:])
    scaled = (X[:200] - X[:200].mean(axis=0)) / X[:200].std(axis=0)
    assert model.bandwidth == pytest.approx(Gaussian().median_bandwidth(scaled), rel=0.01)
    # As one that has had it from the beginning, its rows scaled on arrival.
    twin = GaussianProcessRegressor(Gaussian(model.bandwidth), n_features=8, seed=1)
    twin.learn_many(X, y)
    assert np.allclose(machine_of(model).posterior.P, machine_of(twin).posterior.P)


def test_frequencies_follow_from_seed_and_name():
    """And of quasi-random ones from the place in the order of arrival; nothing of them is in the state."""
    X, y = _records(30)
    models = [
        GaussianProcessRegressor(Gaussian(1.0), n_features=64, quasi_random=q, seed=s)
        for q, s in ((True, 1), (True, 1), (True, 2), (False, 1))
    ]
    for model in models:
        model.learn_many(X, y)
    phi = [_features(model, X) for model in models]
    assert np.array_equal(phi[0], phi[1])
    assert all(np.abs(phi[0] - other).max() > 0.01 for other in phi[2:])
    other = GaussianProcessRegressor(Gaussian(1.0), n_features=64, quasi_random=True, seed=9)
    state = models[0].__getstate__()
    other.__setstate__({**state, "arguments": {**state["arguments"], "seed": 9}})
    assert np.array_equal(_features(other, X), phi[0])
    assert sum(value.nbytes for value in state.values() if isinstance(value, np.ndarray)) < 8 * (128 * 129 // 2 + 500)


def test_more_inputs_than_there_are_directions_are_drawn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 60))
    model = GaussianProcessRegressor(Gaussian(8.0) * Cauchy(30.0), n_features=256, standardize=False, seed=1)
    model.learn_many(X, X[:, 0])
    phi = _features(model, X)
    assert np.abs(phi @ phi.T - model.kernel.matrix(X, X, model.kernel.bandwidth)).max() < 0.25


def _endless(n, noise):
    """Copies, constants, quiet and colinear columns, heavy records, again and again."""
    rng = np.random.default_rng(0)
    model = GaussianProcessRegressor(noise=noise, n_features=12, seed=1)
    for start in range(0, n, 10_000):
        X = rng.normal(size=(10_000, 4))
        X[:, 2] = X[:, 0]
        X[:, 3] = 2.0
        if start // 10_000 % 2:
            X[:, 1] = 0.0
        model.learn_many(X, np.sin(2 * X[:, 0]), rng.choice([1.0, 1e6], 10_000, p=[0.99, 0.01]))
        P = machine_of(model).posterior.P
        assert np.linalg.eigvalsh(P)[0] > 0
        assert P.diagonal().max() <= 1.000001 / noise
    found = model.predict_many(rng.normal(size=(500, 4)), with_dist=True)
    assert np.isfinite(found).all()
    assert (found[:, 1] > 0).all()


@pytest.mark.parametrize("noise", [1e-6, 0.1])
def test_p_stays_positive_definite_for_20000_records(noise):
    _endless(20_000, noise)


@pytest.mark.long
@pytest.mark.parametrize("noise", [1e-6, 0.1])
def test_p_stays_positive_definite_for_a_million_records(noise):
    _endless(1_000_000, noise)


def test_other_kernels_with_bounded_features_fit():
    X = np.random.default_rng(0).uniform(0.1, 2, (100, 2))
    y = X[:, 0] * X[:, 1]
    model = GaussianProcessRegressor(SkewedChiSquared(1.0), 0.01, 128, seed=1)
    model.learn_many(X, y)
    assert not machine_of(model).inputs.standardize
    assert np.abs(model.predict_many(X) - y).mean() < 0.12
    with pytest.raises(ValueError, match="input 0 is -3"):
        model.learn_one({0: -3.0, 1: 1.0}, 1.0)
