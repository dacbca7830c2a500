"""The slopes of a head against the twin, and against finite differences of its columns."""

import numpy as np
import pytest

from streamkernel.compute import slopes as kernels
from tests import naive

ROOT = 1.7


def _head(d, F, n_linear, K=1):
    rng = np.random.default_rng(d + F)
    W, scales = rng.normal(size=(d, F)) / 4, rng.uniform(0.3, 2, d)
    return rng.normal(size=(6, d)), rng.normal(size=(K, 2 * F + 1 + n_linear)), W, scales, ROOT, n_linear


@pytest.mark.parametrize(("d", "F", "n_linear"), [(1, 1, 0), (1, 4, 1), (3, 8, 3), (5, 2, 4), (9, 13, 0)])
class TestSlopes:
    def test_slopes(self, d, F, n_linear):
        X, (coefficients,), *how = _head(d, F, n_linear)
        for phi in naive.adaptive_columns(X, *how):
            out = np.full(d, np.nan)
            kernels.slopes(phi, coefficients, *how, np.full(F, np.nan), out)
            np.testing.assert_allclose(out, naive.slopes(phi, coefficients, *how), rtol=1e-10, atol=1e-10)

    def test_finite_differences(self, d, F, n_linear):
        X, (coefficients,), *how = _head(d, F, n_linear)
        out, h = np.empty(d), 1e-5
        for x, phi in zip(X, naive.adaptive_columns(X, *how), strict=True):
            kernels.slopes(phi, coefficients, *how, np.empty(F), out)
            up, down = (naive.adaptive_columns(x + sign * h * np.eye(d), *how) @ coefficients for sign in (1, -1))
            np.testing.assert_allclose(out, (up - down) / (2 * h), rtol=1e-7, atol=1e-7)

    @pytest.mark.parametrize("K", [1, 3])
    def test_squared_slopes(self, d, F, n_linear, K):
        X, coefficients, *how = _head(d, F, n_linear, K)
        Phi, out = naive.adaptive_columns(X, *how), np.full(d, np.nan)
        kernels.squared_slopes(Phi, coefficients, *how, out)
        np.testing.assert_allclose(out, naive.squared_slopes(Phi, coefficients, *how), rtol=1e-10, atol=1e-10)


def test_no_record_no_slope():
    _, coefficients, *how = _head(3, 4, 3)
    out = np.full(3, np.nan)
    kernels.squared_slopes(np.zeros((0, 12)), coefficients, *how, out)
    assert out.tolist() == [0, 0, 0]
