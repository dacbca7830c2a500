"""Semigroup kernels: functions of the sum of two records of numbers from 0 up."""

import abc

import numpy as np

from streamkernel.compute.laws import EXPONENTIAL, LEVY, draws
from streamkernel.compute.random_features import decays, project
from streamkernel.domain import Domain
from streamkernel.kernels.base import Kernel, columns_of, require_positive, usable
from streamkernel.state import Array


class _Semigroup(Kernel):
    """A kernel k(x + x'), the mean of exp(-w (x + x')) over weights w from 0 up; a feature is exp(-w x)."""

    rows_at_once = True
    domain = Domain(0.0)
    kappa = 1.0
    feature_bound = 1.0

    def features(self, X: Array, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
        W = np.empty((len(keys), len(words)), X.dtype)
        self._weights(words, keys, bandwidth, W)
        project(np.maximum(X, 0), W, out)
        decays(out)

    @abc.abstractmethod
    def _weights(self, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
        """Draw the weights, shape (d, m)."""


class ExponentialSemigroup(_Semigroup):
    """The exponential semigroup kernel k(x, x') = exp(-beta sum_j sqrt(x_j + x'_j)), for numbers from 0 up.

    Parameters
    ----------
    beta
        How fast the kernel falls, from 1e-15 to 1e6. Defaults to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel.kernels import ExponentialSemigroup
    >>> ExponentialSemigroup().matrix(np.array([[1.0]]), np.array([[3.0]]), bandwidth=1.0).round(4)
    array([[0.1353]])

    References
    ----------
    [^1]: Yang et al., "Random Laplace feature maps for semigroup kernels on histograms", 2014, table 1.

    """

    def __init__(self, beta: float = 1.0) -> None:
        require_positive("beta", beta, most=1e6)
        self.beta = beta

    def matrix(self, X: Array, Y: Array, bandwidth: float) -> Array:  # noqa: ARG002 - it has no length scale
        total = np.zeros((len(X), len(Y)))
        for x, y in columns_of(X, Y):
            total += np.sqrt(x + y)
        return np.asarray(np.exp(-float(self.beta) * total))

    def _weights(self, words: Array, keys: Array, bandwidth: float, out: Array) -> None:  # noqa: ARG002
        draws(LEVY, words, keys, float(self.beta) ** 2 / 2, out)


class ReciprocalSemigroup(_Semigroup):
    """The reciprocal semigroup kernel k(x, x') = prod_j bandwidth / (x_j + x'_j + bandwidth), for numbers from 0 up.

    Parameters
    ----------
    bandwidth
        The length scale, in units of the inputs, from 1e-15 to 1e18. Defaults to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel.kernels import ReciprocalSemigroup
    >>> ReciprocalSemigroup().matrix(np.array([[1.0]]), np.array([[2.0]]), bandwidth=1.0)
    array([[0.25]])

    References
    ----------
    [^1]: Yang et al., "Random Laplace feature maps for semigroup kernels on histograms", 2014, table 1.

    """

    def __init__(self, bandwidth: float = 1.0) -> None:
        require_positive("bandwidth", bandwidth)
        self.bandwidth = bandwidth

    def matrix(self, X: Array, Y: Array, bandwidth: float) -> Array:
        K = np.ones((len(X), len(Y)))
        for x, y in columns_of(X, Y):
            K *= usable(bandwidth) / (x + y + usable(bandwidth))
        return K

    def _weights(self, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
        draws(EXPONENTIAL, words, keys, 1 / usable(bandwidth), out)
