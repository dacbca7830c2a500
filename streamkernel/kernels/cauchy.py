"""The Cauchy kernel."""

import math

import numpy as np

from streamkernel.compute.laws import LAPLACE, draws
from streamkernel.compute.sobol import LAPLACE as LAPLACE_AT
from streamkernel.compute.sobol import quantiles
from streamkernel.kernels.base import FourierKernel, columns_of, require_bandwidth, usable
from streamkernel.state import Array


class Cauchy(FourierKernel):
    """The Cauchy kernel k(x, x') = prod_j 1 / (1 + ((x_j - x'_j) / bandwidth)^2).

    It falls slowly, so distant records still influence each other.

    Parameters
    ----------
    bandwidth
        The length scale, in units of the scaled inputs. None (the default) starts with sqrt(2 d). At the 200th labeled
        record, the machine starts again with the median distance of those records.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel.kernels import Cauchy
    >>> Cauchy().matrix(np.zeros((1, 2)), np.array([[1.0, 2.0]]), bandwidth=1.0)
    array([[0.1]])

    References
    ----------
    [^1]: Rahimi and Recht, "Random features for large-scale kernel machines", 2007, figure 1.

    """

    n_uniforms = 1

    def __init__(self, bandwidth: float | None = None) -> None:
        require_bandwidth(bandwidth)
        self.bandwidth = bandwidth

    def initial_bandwidth(self, d: float) -> float:
        return math.sqrt(2 * d)

    def median_bandwidth(self, Z: Array) -> float:
        """Return the median distance of all pairs of rows of Z, shape (n, d); 1 if most are equal."""
        return super().median_bandwidth(Z) / 0.7

    def matrix(self, X: Array, Y: Array, bandwidth: float) -> Array:
        K = np.ones((len(X), len(Y)))
        for x, y in columns_of(X, Y):
            K /= 1 + np.square((x - y) / usable(bandwidth))
        return K

    def frequencies(self, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
        draws(LAPLACE, words, keys, 1 / (2 * math.pi * usable(bandwidth)), out)

    def frequencies_at(self, U: Array, words: Array, bandwidth: float, out: Array) -> None:  # noqa: ARG002 - all in U
        quantiles(LAPLACE_AT, U[0], 1 / (2 * math.pi * usable(bandwidth)), out)
