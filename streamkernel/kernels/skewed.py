"""Skewed multiplicative kernels: shift-invariant in the logarithms of the inputs."""

import abc
import math
from typing import ClassVar

import numpy as np

from streamkernel.compute.laws import CAUCHY, SECH, draws
from streamkernel.compute.random_features import logs
from streamkernel.domain import Domain
from streamkernel.kernels.base import FourierKernel, columns_of, require_positive
from streamkernel.state import Array


class _Skewed(FourierKernel):
    """A shift-invariant kernel of log((x + c) / c), which is 0 of an absent input."""

    shift_invariant = False
    transforms = True
    #: The law of the frequencies, and its scale.
    law: ClassVar[tuple[int, float]]

    def __init__(self, c: float = 1.0) -> None:
        require_positive("c", c)
        self.c = c
        self.domain = Domain(-float(c), is_open=True)

    def transform(self, X: Array) -> Array:
        """log((x + c) / c) of every input."""
        out = np.empty_like(X)
        logs(X, float(self.c), out)
        return out

    def frequencies(self, words: Array, keys: Array, bandwidth: float, out: Array) -> None:  # noqa: ARG002
        law, scale = self.law
        draws(law, words, keys, scale / (2 * math.pi), out)

    def matrix(self, X: Array, Y: Array, bandwidth: float) -> Array:  # noqa: ARG002 - it has no length scale
        K = np.ones((len(X), len(Y)))
        for x, y in columns_of(X, Y):
            K *= self._of_one(x + self.c, y + self.c)
        return K

    @abc.abstractmethod
    def _of_one(self, x: Array, y: Array) -> Array:
        """The kernel of one input, elementwise, of x + c and x' + c."""


class SkewedChiSquared(_Skewed):
    """The skewed chi-squared kernel k(x, x') = prod_j 2 sqrt(x_j + c) sqrt(x'_j + c) / (x_j + x'_j + 2 c).

    Parameters
    ----------
    c
        The skewness, from 1e-15 to 1e18; inputs must be above -c. Defaults to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel.kernels import SkewedChiSquared
    >>> SkewedChiSquared().matrix(np.array([[0.0]]), np.array([[3.0]]), bandwidth=1.0)
    array([[0.8]])

    References
    ----------
    [^1]: Li, Ionescu and Sminchisescu, "Random Fourier approximations for skewed multiplicative histogram kernels",
          2010, section 3.

    """

    law = (SECH, 1.0)

    def _of_one(self, x: Array, y: Array) -> Array:
        return np.asarray(2 * np.sqrt(x) * np.sqrt(y) / (x + y))


class SkewedIntersection(_Skewed):
    """The skewed intersection kernel k(x, x') = prod_j exp(-|log(x_j + c) - log(x'_j + c)| / 2).

    Parameters
    ----------
    c
        The skewness, from 1e-15 to 1e18; inputs must be above -c. Defaults to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel.kernels import SkewedIntersection
    >>> SkewedIntersection().matrix(np.array([[0.0]]), np.array([[3.0]]), bandwidth=1.0)
    array([[0.5]])

    References
    ----------
    [^1]: Li, Ionescu and Sminchisescu, "Random Fourier approximations for skewed multiplicative histogram kernels",
          2010, section 3.

    """

    law = (CAUCHY, 0.5)

    def _of_one(self, x: Array, y: Array) -> Array:
        return np.asarray(np.sqrt(np.minimum(x, y) / np.maximum(x, y)))
