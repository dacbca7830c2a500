"""Scrambled Sobol numbers against their twin, and that they fill intervals and squares evenly; quantiles of laws."""

import numpy as np
import pytest

from streamkernel.compute import sobol as kernels
from tests import naive

DIRECTIONS = kernels.directions()


def _numbers(place, n, seed=5, first=0):
    out = np.empty(n)
    kernels.sobol(DIRECTIONS[place], first, np.uint64(seed), out)
    return out


@pytest.mark.parametrize("place", [0, 1, 2, 17, 52])
def test_the_numbers_are_their_twins(place):
    assert _numbers(place, 37, seed=2**63 + 9, first=3).tolist() == naive.sobol(DIRECTIONS[place], 3, 2**63 + 9, 37)


@pytest.mark.parametrize("n", [1, 64, 512])
def test_each_place_has_one_number_in_each_interval(n):
    assert len(DIRECTIONS) == 53
    for place in range(len(DIRECTIONS)):
        assert sorted(np.floor(_numbers(place, n, seed=place) * n)) == list(range(n))


@pytest.mark.parametrize("law", [kernels.NORMAL, kernels.CAUCHY, kernels.LAPLACE])
def test_quantiles(law):
    U = np.array([[1e-9, 0.01, 0.0749, 0.3, 0.4], [0.5 + 1e-6, 0.6, 0.9251, 0.99, 1 - 2.0**-33]])
    out = np.empty(U.shape)
    kernels.quantiles(law, U, 1.5, out)
    assert np.allclose(out, naive.quantiles(law, U, 1.5), rtol=1e-7, atol=1e-12)
