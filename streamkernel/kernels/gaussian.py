"""The Gaussian (RBF) kernel."""

import math

import numpy as np

from streamkernel.arguments import require_flag
from streamkernel.compute.gaussians import gaussians
from streamkernel.compute.sobol import NORMAL, quantiles
from streamkernel.kernels.base import FourierKernel, require_bandwidth, squared_distances, usable
from streamkernel.state import Array


class Gaussian(FourierKernel):
    """The Gaussian (RBF) kernel k(x, x') = exp(-|x - x'|^2 / (2 bandwidth^2)).

    Parameters
    ----------
    bandwidth
        The length scale, in units of the scaled inputs. None (the default) starts with .7 sqrt(2 d). At the 200th
        labeled record, the machine starts again with .7 times the median distance of those records.
    structured
        Whether frequencies are the rows of sign flips and Walsh-Hadamard transforms, orthogonal by the dozen, instead
        of independent draws. This estimates the kernel better (.3 of the error, from about 50 inputs on), and a feature
        costs about the same for any number of inputs. A frequency then belongs to the position of an input in the order
        of arrival, and not to its name. Only for the growing estimators, in float32. Defaults to False.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel.kernels import Gaussian
    >>> Gaussian().matrix(np.zeros((1, 2)), np.array([[3.0, 4.0]]), bandwidth=5.0).round(4)
    array([[0.6065]])

    References
    ----------
    [^1]: Rahimi and Recht, "Random features for large-scale kernel machines", 2007.
    [^2]: Dai et al., "Scalable kernel methods via doubly stochastic gradients", 2014, table 1.
    [^3]: Yu et al., "Orthogonal random features", 2016, section 4: structured orthogonal features.

    """

    n_uniforms = 1

    def __init__(self, bandwidth: float | None = None, structured: bool = False) -> None:
        require_bandwidth(bandwidth)
        require_flag("structured", structured)
        self.bandwidth = bandwidth
        self.structured = structured

    def matrix(self, X: Array, Y: Array, bandwidth: float) -> Array:
        return np.asarray(np.exp(squared_distances(X, Y) / (-2 * usable(bandwidth) ** 2)))

    def frequencies(self, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
        gaussians(words, keys, 1 / (2 * math.pi * usable(bandwidth)), out)

    def frequencies_at(self, U: Array, words: Array, bandwidth: float, out: Array) -> None:  # noqa: ARG002 - all in U
        quantiles(NORMAL, U[0], 1 / (2 * math.pi * usable(bandwidth)), out)
