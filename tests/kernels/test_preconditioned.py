"""Preconditioned steps with kernels of every kind of features, under every growth and loss."""

import numpy as np

from streamkernel import KernelRegressor
from streamkernel.growth import DSG
from streamkernel.kernels import Gaussian


def _stream(n):
    """Numbers from 0 up, of which `a` alone matters."""
    rng = np.random.default_rng(4)
    a, b = rng.uniform(0, 2, size=(2, n)).tolist()
    return [{"a": x, "b": y, "one": 1.0} for x, y in zip(a, b, strict=True)], a


def test_a_multiple_of_a_kernel_takes_the_same_preconditioned_steps():
    """The ridge is that of the features: how large a kernel is changes nothing."""
    xs, a = _stream(200)
    one, other = (
        KernelRegressor(k, growth=DSG(), regularization=0.0, batch_size=8, precondition=True, seed=1)
        for k in (Gaussian(1.0), 16 * Gaussian(1.0))
    )
    predicted = one.advance(xs, a).predictions
    np.testing.assert_allclose(other.advance(xs, a).predictions, predicted, rtol=1e-3, atol=1e-3)
