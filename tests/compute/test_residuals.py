"""The ring of the last errors, against the list of all."""

import numpy as np

from streamkernel.compute import residuals as kernels
from tests import naive
from tests.naive.residuals import ring


def test_keep_residual():
    residuals, errors = np.zeros(1 + kernels.RESIDUALS), []
    for error in np.random.default_rng(0).normal(size=2 * kernels.RESIDUALS + 7):
        kernels.keep_residual(residuals, error)
        naive.keep_residual(errors, error)
        assert residuals.tolist() == ring(errors)
    assert sorted(residuals[1:]) == sorted(errors[-kernels.RESIDUALS :])
