"""The shift that makes a median of a mean, against its twin."""

import numpy as np
import pytest

from streamkernel.compute import median as kernels
from tests import naive


def test_at_and_follow_median():
    rng = np.random.default_rng(0)
    median, twin = np.zeros(kernels.SIZE), [0.0] * kernels.SIZE
    for error in rng.normal(size=200) ** 3 + 1:
        kernels.follow_median(median, error, 0.7, 2.0)
        twin = naive.follow_median(twin, error, 0.7, 2.0)
        np.testing.assert_allclose(median, twin, rtol=1e-12, atol=1e-12)
        assert kernels.at_median(median, 5.0) == pytest.approx(naive.at_median(twin, 5.0), rel=1e-12)


def test_the_shift_comes_to_the_median_of_the_errors():
    errors = np.random.default_rng(1).exponential(size=20_000)
    median, shifts = np.zeros(kernels.SIZE), []
    for error in errors:
        kernels.follow_median(median, error, 1.0, 2.0)
        shifts.append(median[kernels.SHIFT])
    assert np.mean(shifts[5_000:]) == pytest.approx(np.median(errors), abs=0.02)
    # And there it is taken almost whole.
    assert kernels.at_median(median, 0.0) > 0.9 * median[kernels.SHIFT]
