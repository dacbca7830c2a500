"""Sums and multiples of Fourier kernels as one of them, which the adaptive estimators draw their columns by."""

import numpy as np
import pytest

from streamkernel import AdaptiveKernelRegressor
from streamkernel.finite import NotFiniteError
from streamkernel.kernels import Cauchy, ChiSquared, FourierKernel, Gaussian, Laplacian, Matern
from streamkernel.kernels.spectral import SpectralMixture, require_fourier


@pytest.mark.parametrize(
    ("kernel", "twin"),
    [
        (Gaussian(2.0) + Laplacian(3.0), 0.5 * Gaussian(2.0) + 0.5 * Laplacian(3.0)),
        (4 * (Gaussian(2.0) + 3 * Cauchy()), 0.25 * Gaussian(2.0) + 0.75 * Cauchy()),
        (
            (Gaussian(2.0) + Matern()) * (Cauchy(1.0) + 3 * Laplacian(2.0)),
            0.125 * (Gaussian(2.0) * Cauchy(1.0) + Matern() * Cauchy(1.0))
            + 0.375 * (Gaussian(2.0) * Laplacian(2.0) + Matern() * Laplacian(2.0)),
        ),
    ],
    ids=["sum", "multiple of a sum", "product of sums"],
)
def test_its_matrix_is_the_sum_over_its_largest_value(kernel, twin):
    X = np.random.default_rng(2).normal(size=(6, 3))
    mixture = SpectralMixture(kernel)
    K = kernel.matrix(X, X, 0.8)
    assert np.allclose(mixture.matrix(X, X, 0.8), K / K.max())
    assert np.allclose(mixture.matrix(X, X, 0.8), twin.matrix(X, X, 0.8))
    assert (mixture.kappa, mixture.feature_bound, mixture.bandwidth) == (1.0, 1.0, kernel.bandwidth)
    if kernel.bandwidth is None:
        assert mixture.median_bandwidth(X) == kernel.median_bandwidth(X)
        assert mixture.initial_bandwidth(3.0) == kernel.initial_bandwidth(3.0)


def test_each_part_draws_its_share_of_the_features_whole():
    """A part of bandwidth 1e12 gives frequencies near 0, at every input of a feature or at none."""
    rng = np.random.default_rng(3)
    words, keys = rng.integers(0, 2**64, 4000, dtype=np.uint64), rng.integers(0, 2**64, 3, dtype=np.uint64)
    W = np.empty((3, 4000))
    SpectralMixture(3 * Laplacian(1e12) + Laplacian(1.0)).frequencies(words, keys, 1.0, W)
    near_0 = np.abs(W) < 1e-8
    assert np.array_equal(near_0.any(axis=0), near_0.all(axis=0))
    assert near_0[0].mean() == pytest.approx(0.75, abs=0.03)


def test_factors_of_any_size_are_shares():
    words, keys = np.arange(50, dtype=np.uint64), np.array([7], np.uint64)
    W, alone = np.empty((1, 50)), np.empty((1, 50))
    SpectralMixture(1e30 * Gaussian(1.0) + 1e-30 * Laplacian()).frequencies(words, keys, 1.0, W)
    Gaussian(1.0).frequencies(words, keys, 1.0, alone)
    assert np.array_equal(W, alone)


def test_it_is_as_smooth_as_its_roughest_part():
    assert require_fourier(Gaussian() + Cauchy(), "model").is_smooth
    assert not require_fourier(Gaussian() + Cauchy() * Laplacian(), "model").is_smooth


def test_fourier_kernels_stay_as_they_are():
    for kernel in (Gaussian(), Gaussian() * Laplacian()):
        assert require_fourier(kernel, "model") is kernel
    with pytest.raises(ValueError, match="kernel must be made of kernels whose features are cosines of the inputs"):
        SpectralMixture(Gaussian() + ChiSquared())


class Spoilt(FourierKernel):
    """Frequencies that are not finite."""

    def matrix(self, X, Y, bandwidth):
        return Gaussian().matrix(X, Y, bandwidth)

    def frequencies(self, words, keys, bandwidth, out):  # noqa: ARG002
        out[:] = np.nan


def test_a_part_that_is_not_finite_is_named():
    with pytest.raises(NotFiniteError, match="the kernel Spoilt gave nan in its method `frequencies`"):
        AdaptiveKernelRegressor(Gaussian() + Spoilt(), n_features=16, seed=1).learn_one({"a": 1.0}, 1.0)
