"""Sums, products and multiples of kernels."""

import math

import numpy as np
import pytest

from streamkernel.kernels import (
    ArcCosine,
    Cauchy,
    ChiSquared,
    DotProduct,
    Gaussian,
    Laplacian,
    Matern,
    SkewedChiSquared,
    Sum,
)
from streamkernel.kernels.base import has_frequencies


def test_operators_and_their_matrices():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    a, b, c = (kernel.matrix(X, Y, 2.0) for kernel in (Gaussian(2.0), Laplacian(2.0), DotProduct()))
    kernel = Gaussian(2.0) + 0.5 * Laplacian(2.0) * DotProduct()
    assert np.allclose(kernel.matrix(X, Y, 1.0), a + 0.5 * b * c)
    assert np.allclose((np.float64(0.5) * Laplacian(2.0)).matrix(X, Y, 1.0), 0.5 * b)
    assert repr(Gaussian() * Cauchy()) == "Product(left=Gaussian(), right=Cauchy())"


@pytest.mark.parametrize("factor", [0, -1.0, math.nan, math.inf])
def test_a_factor_is_a_number_above_0(factor):
    with pytest.raises(ValueError, match="factor must be a number above 0"):
        factor * Gaussian()


def test_division_by_a_number():
    assert repr(Gaussian() / 4) == "Scaled(kernel=Gaussian(), factor=0.25)"
    for number in (0, -2.0, math.nan):
        with pytest.raises(ValueError, match="a kernel can only be divided by a number above 0, got"):
            Gaussian() / number
    with pytest.raises(TypeError):
        Gaussian() / Gaussian()


def test_parts_are_kernels_and_not_structured():
    with pytest.raises(ValueError, match=r"right must be a Kernel such as streamkernel.kernels.Gaussian\(\), got 1"):
        Sum(Gaussian(), 1)
    for make in (lambda k: k + Gaussian(), lambda k: Gaussian() * k, lambda k: 2 * k):
        with pytest.raises(ValueError, match="is structured"):
            make(Gaussian(structured=True))


def test_what_is_known_of_the_parts():
    kernel = Gaussian() + 3.0 * SkewedChiSquared()
    assert (kernel.kappa, kernel.feature_bound, kernel.n_parts) == (4.0, 4.0, 4)
    assert kernel.bandwidth is None
    assert kernel.domain == SkewedChiSquared().domain
    assert not kernel.standardizes
    kernel = Gaussian(2.0) + DotProduct()
    assert (kernel.kappa, kernel.feature_bound, kernel.bandwidth) == (None, None, 1.0)
    assert kernel.standardizes
    assert not DotProduct().standardizes
    assert not kernel.shift_invariant
    assert (ArcCosine(0) * SkewedChiSquared()).feature_bound == 2.0
    assert (Gaussian() * ChiSquared()).kappa is None


def test_a_product_of_fourier_kernels_is_one():
    assert has_frequencies(Gaussian() * Laplacian() * Matern())
    assert (Gaussian() * Laplacian()).n_parts == 2
    assert not has_frequencies(Gaussian() * SkewedChiSquared())
    assert not has_frequencies(Gaussian() + Laplacian())
    assert not has_frequencies(2 * Gaussian())


def test_a_bandwidth_left_to_the_data_is_of_the_first_part_that_leaves_it():
    Z = np.random.default_rng(1).normal(size=(30, 4))
    for kernel in (
        Laplacian() + DotProduct(),
        DotProduct() + Laplacian(),
        Gaussian(2.0) * Laplacian(),
        2 * Laplacian(),
    ):
        assert kernel.median_bandwidth(Z) == Laplacian().median_bandwidth(Z)
        assert kernel.initial_bandwidth(4.0) == Laplacian().initial_bandwidth(4.0)


def test_a_kernel_made_of_too_many_others_is_refused():
    doubled = ArcCosine()
    for _ in range(5):
        doubled = doubled + doubled
    assert (doubled.n_kernels, doubled.n_parts) == (32, 32)
    with pytest.raises(
        ValueError, match="a Sum of 64 kernels with 64 numbers per draw is too large: at most 32 kernels"
    ):
        doubled + doubled
    wide = sum((Gaussian() for _ in range(7)), Gaussian()) * sum((Gaussian() for _ in range(7)), Gaussian())
    assert (wide.n_kernels, wide.n_parts) == (16, 256)
    with pytest.raises(ValueError, match="a Product of 21 kernels with 2,560 numbers per draw is too large"):
        wide * (Gaussian() + sum((Gaussian() for _ in range(3)), Gaussian()))
