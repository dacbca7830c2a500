"""Additive kernels for numbers from 0 up, such as counts and histograms: a sum over a kernel of each input."""

import abc
import math
from typing import ClassVar

import numpy as np
from scipy import special

from streamkernel.compute.features import SINE
from streamkernel.compute.laws import CAUCHY, JENSEN_SHANNON, SECH, draws, signs
from streamkernel.compute.random_features import homogeneous_waves, project
from streamkernel.domain import Domain
from streamkernel.kernels.base import Kernel, columns_of
from streamkernel.state import Array

_OMEGA = np.array([0x6F6D656761], np.uint64)


class _Additive(Kernel):
    """A sum over the inputs of a kernel of numbers from 0 up; an input that is 0 contributes nothing."""

    rows_at_once = True
    domain = Domain(0.0)

    def matrix(self, X: Array, Y: Array, bandwidth: float) -> Array:  # noqa: ARG002 - it has no length scale
        K = np.zeros((len(X), len(Y)))
        for x, y in columns_of(X, Y):
            K += self._of_one(*np.broadcast_arrays(x, y))
        return K

    @abc.abstractmethod
    def _of_one(self, x: Array, y: Array) -> Array:
        """The kernel of one input, elementwise."""


class Hellinger(_Additive):
    """The Hellinger (Bhattacharyya) kernel k(x, x') = sum_j sqrt(x_j x'_j), for numbers from 0 up.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel.kernels import Hellinger
    >>> Hellinger().matrix(np.array([[1.0, 4.0]]), np.array([[9.0, 1.0]]), bandwidth=1.0)
    array([[5.]])

    References
    ----------
    [^1]: Vedaldi and Zisserman, "Efficient additive kernels via explicit feature maps", 2012, table 1.

    """

    def _of_one(self, x: Array, y: Array) -> Array:
        return np.asarray(np.sqrt(x * y))

    def features(self, X: Array, words: Array, keys: Array, bandwidth: float, out: Array) -> None:  # noqa: ARG002
        r = np.empty((len(keys), len(words)), X.dtype)
        signs(words, keys, r)
        project(np.sqrt(np.maximum(X, 0)), r, out)


class _Homogeneous(_Additive):
    """An additive kernel of which each part is sqrt(x x') times a function of log x - log x'."""

    n_parts = 2
    #: The law of omega, and its scale.
    law: ClassVar[tuple[int, float]]

    def features(self, X: Array, words: Array, keys: Array, bandwidth: float, out: Array) -> None:  # noqa: ARG002
        r = np.empty((len(keys), len(words)), X.dtype)
        signs(words, keys, r)
        turns = np.empty((1, len(words)), X.dtype)
        law, scale = self.law
        draws(law, words, _OMEGA, scale / (2 * math.pi), turns)
        homogeneous_waves(X, r, turns[0], SINE[X.dtype], out)


class ChiSquared(_Homogeneous):
    """The additive chi-squared kernel k(x, x') = sum_j 2 x_j x'_j / (x_j + x'_j), for numbers from 0 up.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel.kernels import ChiSquared
    >>> ChiSquared().matrix(np.array([[1.0, 0.0]]), np.array([[3.0, 2.0]]), bandwidth=1.0)
    array([[1.5]])

    References
    ----------
    [^1]: Vedaldi and Zisserman, "Efficient additive kernels via explicit feature maps", 2012, table 1.

    """

    law = (SECH, 1.0)

    def _of_one(self, x: Array, y: Array) -> Array:
        return np.asarray(np.divide(2 * x * y, x + y, out=np.zeros_like(x), where=x + y > 0))


class Intersection(_Homogeneous):
    """The additive intersection kernel k(x, x') = sum_j min(x_j, x'_j), for numbers from 0 up.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel.kernels import Intersection
    >>> Intersection().matrix(np.array([[1.0, 4.0]]), np.array([[3.0, 2.0]]), bandwidth=1.0)
    array([[3.]])

    References
    ----------
    [^1]: Vedaldi and Zisserman, "Efficient additive kernels via explicit feature maps", 2012, table 1.

    """

    law = (CAUCHY, 0.5)

    def _of_one(self, x: Array, y: Array) -> Array:
        return np.asarray(np.minimum(x, y))


class JensenShannon(_Homogeneous):
    """The additive Jensen-Shannon kernel, for numbers from 0 up.

    k(x, x') = sum_j x_j / 2 log2((x_j + x'_j) / x_j) + x'_j / 2 log2((x_j + x'_j) / x'_j).

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel.kernels import JensenShannon
    >>> JensenShannon().matrix(np.array([[1.0, 0.0]]), np.array([[1.0, 2.0]]), bandwidth=1.0)
    array([[1.]])

    References
    ----------
    [^1]: Vedaldi and Zisserman, "Efficient additive kernels via explicit feature maps", 2012, table 1.

    """

    law = (JENSEN_SHANNON, 1.0)

    def _of_one(self, x: Array, y: Array) -> Array:
        total = x + y
        return np.asarray((special.xlogy(total, total) - special.xlogy(x, x) - special.xlogy(y, y)) / math.log(4))
