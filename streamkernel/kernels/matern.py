"""The Matern kernels."""

import math

import numpy as np
from scipy import special

from streamkernel.compute.gaussians import gaussians
from streamkernel.compute.laws import LARGEST_DRAW, gammas
from streamkernel.compute.sobol import NORMAL, quantiles
from streamkernel.kernels.base import FourierKernel, distances, require_bandwidth, require_positive, usable
from streamkernel.state import Array

_GAMMA = np.uint64(0x6761_6D6D_61)


class Matern(FourierKernel):
    """The Matern kernel of smoothness nu, 2^(1 - nu) / Gamma(nu) s^nu K_nu(s) with s = sqrt(2 nu) |x - x'| / bandwidth.

    With nu = .5 it is exp(-|x - x'| / bandwidth). A larger nu brings it closer to the Gaussian kernel. Its functions
    are m times differentiable for each whole number m below nu.

    Parameters
    ----------
    nu
        The smoothness, from 1e-15 to 1e18. Defaults to 1.5.
    bandwidth
        The length scale, in units of the scaled inputs. None (the default) starts with .7 sqrt(2 d). At the 200th
        labeled record, the machine starts again with .7 times the median distance of those records.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel.kernels import Matern
    >>> Matern(nu=0.5).matrix(np.zeros((1, 2)), np.array([[3.0, 4.0]]), bandwidth=5.0).round(4)
    array([[0.3679]])

    References
    ----------
    [^1]: Rasmussen and Williams, "Gaussian processes for machine learning", 2006, section 4.2.1.

    """

    n_uniforms = 1

    def __init__(self, nu: float = 1.5, bandwidth: float | None = None) -> None:
        require_positive("nu", nu)
        require_bandwidth(bandwidth)
        self.nu = nu
        # Below, the squares of slopes have no variance: those of a few frequencies would outweigh all others.
        self.is_smooth = nu > 2
        self.bandwidth = bandwidth

    def matrix(self, X: Array, Y: Array, bandwidth: float) -> Array:
        nu = float(self.nu)
        s = math.sqrt(2 * nu) * distances(X, Y) / usable(bandwidth)
        if nu == 0.5:
            return np.asarray(np.exp(-s))
        if nu == 1.5:
            return np.asarray((1 + s) * np.exp(-s))
        if nu == 2.5:
            return np.asarray((1 + s + s * s / 3) * np.exp(-s))
        with np.errstate(all="ignore"):
            bessel = np.log(special.kve(nu, s)) - s
            K = np.exp((1 - nu) * math.log(2) - special.gammaln(nu) + nu * np.log(s) + bessel)
            # Where the Bessel function overflows, that of the smallest distances and of the largest nu.
            return np.where(np.isfinite(K), np.minimum(K, 1.0), np.exp(-s * s / (4 * nu)))

    def frequencies(self, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
        # A multivariate t law of 2 nu degrees of freedom: one chi-squared number for all inputs of a feature.
        gaussians(words, keys, 1 / (2 * math.pi * usable(bandwidth)), out)
        self._stretch(words, out)

    def frequencies_at(self, U: Array, words: Array, bandwidth: float, out: Array) -> None:
        quantiles(NORMAL, U[0], 1 / (2 * math.pi * usable(bandwidth)), out)
        self._stretch(words, out)

    def _stretch(self, words: Array, out: Array) -> None:
        """Divide the normal numbers of each feature by the root of its own chi-squared number."""
        chi = np.empty(len(words))
        gammas(words, _GAMMA, float(self.nu), chi)
        stretch = np.minimum(np.sqrt(float(self.nu) / chi), LARGEST_DRAW).astype(out.dtype)
        np.clip(out * stretch, -LARGEST_DRAW, LARGEST_DRAW, out=out)
