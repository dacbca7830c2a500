"""The baselines of the papers' experiments, each against a closed form or a plain twin."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC

from benchmarks.paper.baselines.gaussian import FourierMap, NystromMap, gaussian, kernel_sums
from benchmarks.paper.baselines.learner import hinge, logistic, softmax, square
from benchmarks.paper.baselines.norma import Norma
from benchmarks.paper.baselines.sdca import FeatureSDCA, KernelSDCA

N, D, S = 60, 3, 1.3
ROWS = np.arange(N)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)).astype(np.float32)
    return X, np.sign(X[:, :1] * X[:, 1:2] + 0.1)


def test_the_kernel_and_its_sums(data):
    X, T = data
    K = rbf_kernel(X, X[:7], gamma=0.5 / S**2)
    np.testing.assert_allclose(gaussian(X, X[:7], S), K, atol=1e-6)
    np.testing.assert_allclose(kernel_sums(X, X[:7], T[:7], S), K @ T[:7], atol=1e-5)
    assert not kernel_sums(X, X[:0], T[:0], S).any()


def test_features_whose_products_are_the_kernel(data):
    X, _ = data
    K = gaussian(X, X, S)
    fourier, nystrom = FourierMap(D, 20_000, S, seed=1)(X), NystromMap(X, N, S, seed=1)(X)
    assert np.abs(fourier @ fourier.T - K).max() < 0.05
    np.testing.assert_allclose(nystrom @ nystrom.T, K, atol=1e-2)  # 1e-10 of the eigenvalues is cut


@pytest.mark.parametrize("derivative", [square, logistic, softmax])
def test_derivatives_are_those_of_the_losses(derivative):
    values = {
        square: lambda f, T: 0.5 * (f - T) ** 2,
        logistic: lambda f, T: np.logaddexp(0, -T * f),
        softmax: lambda f, T: (np.log(np.exp(f).sum(axis=1)) - f[T > 0])[:, None],
    }[derivative]
    rng = np.random.default_rng(1)
    f, T = rng.normal(size=(5, 3)), np.where(np.eye(3)[[0, 1, 2, 0, 1]] > 0, 1.0, -1.0)
    e = 1e-6
    slopes = [(values(f + e * unit, T) - values(f - e * unit, T)).sum(axis=1) / (2 * e) for unit in np.eye(3)]
    np.testing.assert_allclose(derivative(f, T), np.stack(slopes, axis=1), atol=1e-6)


def test_norma_is_the_recursion_on_the_kernel_matrix(data):
    X, T = data
    B, nu = 10, 0.01
    K = rbf_kernel(X, gamma=0.5 / S**2)
    model = Norma(S, nu, hinge)
    c = np.zeros((N, 1))
    gamma_0 = 1 / (np.linalg.eigvalsh(K[:B, :B])[-1] / B + 1 / B)
    for t in range(18):
        rows = np.arange(t * B, (t + 1) * B) % N
        model.learn(X[rows], T[rows], rows)
        gamma = gamma_0 / (1 + t / 200)
        g = hinge(K[rows] @ c, T[rows])
        c *= 1 - gamma * nu
        c[rows] -= gamma / B * g
    np.testing.assert_allclose(model.scores(X), K @ c, rtol=1e-4, atol=1e-4)
    assert model.nbytes % (4 * (D + 1)) == 0


def test_sdca_comes_to_the_support_vector_machine(data):
    X, T = data
    nu = 0.02
    features = FourierMap(D, 8, S, seed=1)
    model = FeatureSDCA(N, features, nu)
    kernel = KernelSDCA(N, S, nu)
    for _ in range(150):
        model.learn(X, T, ROWS)
        kernel.learn(X, T, ROWS)
    phi = features(X).astype(np.float64)
    other = LinearSVC(C=1 / (nu * N), loss="hinge", fit_intercept=False, max_iter=100_000, tol=1e-8).fit(phi, T[:, 0])
    np.testing.assert_allclose(model.scores(X)[:, 0], phi @ other.coef_[0], atol=2e-3)
    # Of the kernel machine: its dual variables are in the box, and those at margins beyond 1 are 0.
    a = (T * kernel._alpha)[:, 0]
    assert a.min() >= 0
    assert a.max() <= 1
    assert not a[(T * kernel.scores(X))[:, 0] > 1.01].any()
    assert (a[(T * kernel.scores(X))[:, 0] < 0.99] == 1).all()
