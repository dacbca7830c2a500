"""The Laplacian kernel."""

import math

import numpy as np

from streamkernel.compute.laws import CAUCHY, draws
from streamkernel.compute.sobol import CAUCHY as CAUCHY_AT
from streamkernel.compute.sobol import quantiles
from streamkernel.kernels.base import FourierKernel, distances, median_of_pairs, require_bandwidth, usable
from streamkernel.state import Array

_METRIC = "cityblock"


class Laplacian(FourierKernel):
    """The Laplacian kernel k(x, x') = exp(-|x - x'|_1 / bandwidth), with the sum of the absolute differences.

    It is rougher than the Gaussian kernel. Its functions have kinks along each input, which suits thresholds.

    Parameters
    ----------
    bandwidth
        The length scale, in units of the scaled inputs. None (the default) starts with 2 d / sqrt(pi), the distance of
        independent standard normal inputs. At the 200th labeled record, the machine starts again with the median of
        those records' sums of absolute differences.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel.kernels import Laplacian
    >>> Laplacian().matrix(np.zeros((1, 2)), np.array([[3.0, 4.0]]), bandwidth=5.0).round(4)
    array([[0.2466]])

    References
    ----------
    [^1]: Rahimi and Recht, "Random features for large-scale kernel machines", 2007, figure 1.

    """

    is_smooth = False
    n_uniforms = 1

    def __init__(self, bandwidth: float | None = None) -> None:
        require_bandwidth(bandwidth)
        self.bandwidth = bandwidth

    def initial_bandwidth(self, d: float) -> float:
        return 2 * d / math.sqrt(math.pi)

    def median_bandwidth(self, Z: Array) -> float:
        """Return the median sum of absolute differences of rows of Z, shape (n, d); 1 if most are equal."""
        return median_of_pairs(distances(Z, Z, _METRIC)) or 1.0

    def matrix(self, X: Array, Y: Array, bandwidth: float) -> Array:
        return np.asarray(np.exp(-distances(X, Y, _METRIC) / usable(bandwidth)))

    def frequencies(self, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
        draws(CAUCHY, words, keys, 1 / (2 * math.pi * usable(bandwidth)), out)

    def frequencies_at(self, U: Array, words: Array, bandwidth: float, out: Array) -> None:  # noqa: ARG002 - all in U
        quantiles(CAUCHY_AT, U[0], 1 / (2 * math.pi * usable(bandwidth)), out)
