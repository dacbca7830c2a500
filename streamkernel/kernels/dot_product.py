"""Dot product kernels: power series of the inner product."""

from collections.abc import Sequence

import numpy as np

from streamkernel.compute.laws import sign_products, uniforms
from streamkernel.compute.random_features import LARGEST_FEATURE
from streamkernel.kernels.base import LARGEST_BANDWIDTH, LARGEST_VALUE, Kernel, inner_products, is_coefficient
from streamkernel.state import Array, excerpt

#: The most powers: the signs of a feature are the bits of a word.
_MOST = 65
_ORDER = np.uint64(0x6F72646572)


class DotProduct(Kernel):
    """The dot product kernel k(x, x') = sum_n a_n <x, x'>^n, by default the linear kernel <x, x'>.

    A feature is a product of n random sums of the inputs, and each feature draws its own power n. Powers with a
    coefficient of 0 never occur. Each of the others is half as likely as the previous one.

    Parameters
    ----------
    coefficients
        a_0, a_1, ... of the powers from 0 up, at most 65 numbers from 0 to 1e18, not all of them 0. Defaults to (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel.kernels import DotProduct
    >>> DotProduct([1.0, 2.0, 1.0]).matrix(np.array([[1.0, 2.0]]), np.array([[1.0, 1.0]]), bandwidth=1.0)
    array([[16.]])

    References
    ----------
    [^1]: Kar and Karnick, "Random feature maps for dot product kernels", 2012, algorithm 1.

    """

    rows_at_once = True

    def __init__(self, coefficients: Sequence[float] = (0.0, 1.0)) -> None:
        some = isinstance(coefficients, tuple | list) and 0 < len(coefficients) <= _MOST
        if not (some and all(map(is_coefficient, coefficients)) and any(coefficients)):
            raise ValueError(
                f"coefficients must be 1 to {_MOST} numbers from 0 up, not all of them 0, "
                f"{LARGEST_BANDWIDTH:g} at most, got {excerpt(coefficients)}"
            )
        self.coefficients = coefficients

    @property
    def standardizes(self) -> bool:
        """Whether `standardize=None` centers and scales the inputs: False."""
        return False

    def matrix(self, X: Array, Y: Array, bandwidth: float) -> Array:  # noqa: ARG002 - it has no length scale
        products = inner_products(X, Y)
        K = np.zeros_like(products)
        for a in reversed(self.coefficients):
            K = np.clip(K * products + a, -LARGEST_VALUE, LARGEST_VALUE)
        return K

    def features(self, X: Array, words: Array, keys: Array, bandwidth: float, out: Array) -> None:  # noqa: ARG002
        a = np.array(self.coefficients, np.float64)
        powers = np.flatnonzero(a)
        shares = 0.5 ** np.arange(1, len(powers) + 1)
        shares /= shares.sum()
        drawn = np.empty(len(words))
        uniforms(words, _ORDER, drawn)
        chosen = np.minimum(np.searchsorted(np.cumsum(shares), drawn), len(powers) - 1)
        weights = np.sqrt(a[powers] / shares)
        sign_products(X, words, keys, powers[chosen], weights[chosen], LARGEST_FEATURE, out)
