"""Polynomial kernels, by tensor sketches."""

import math

import numpy as np

from streamkernel.arguments import is_whole
from streamkernel.compute.laws import count_sketches, multiply_spectra
from streamkernel.compute.random_features import LARGEST_FEATURE
from streamkernel.kernels.base import LARGEST_BANDWIDTH, LARGEST_VALUE, Kernel, inner_products, is_coefficient
from streamkernel.state import Array, excerpt

#: Beyond, the numbers of usual inputs overflow.
_MOST = 32


class Polynomial(Kernel):
    """The polynomial kernel k(x, x') = (<x, x'> + c)^degree.

    Its features are tensor sketches: Fourier transforms convolve the count sketches of a row. The features of a block
    share their random numbers, so a larger `block_size` also makes a sketch more exact.

    Parameters
    ----------
    degree
        The power, a whole number from 1 to 32. Defaults to 2.
    c
        The constant, from 0 to 1e18. A larger one gives lower powers more weight. Defaults to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel.kernels import Polynomial
    >>> Polynomial(degree=2).matrix(np.array([[1.0, 2.0]]), np.array([[1.0, 1.0]]), bandwidth=1.0)
    array([[16.]])

    References
    ----------
    [^1]: Pham and Pagh, "Fast and scalable polynomial kernels via explicit feature maps", 2013, section 4.

    """

    by_block = True
    rows_at_once = True

    def __init__(self, degree: int = 2, c: float = 1.0) -> None:
        if not (is_whole(degree) and 1 <= degree <= _MOST):
            raise ValueError(f"degree must be a whole number from 1 to {_MOST}, got {excerpt(degree)}")
        if not is_coefficient(c):
            raise ValueError(f"c must be a number from 0 up, got {excerpt(c)}: {LARGEST_BANDWIDTH:g} is the most")
        self.degree = degree
        self.c = c

    def matrix(self, X: Array, Y: Array, bandwidth: float) -> Array:  # noqa: ARG002 - it has no length scale
        base = inner_products(X, Y) + float(self.c)
        most = LARGEST_VALUE ** (1 / self.degree)
        return np.asarray(np.clip(base, -most, most) ** int(self.degree))

    def features(self, X: Array, words: Array, keys: Array, bandwidth: float, out: Array) -> None:  # noqa: ARG002
        blocks, F = words.shape
        sketches = np.empty((len(X), blocks, int(self.degree), F))
        count_sketches(X, np.ascontiguousarray(words[:, 0]), keys, math.sqrt(self.c), sketches)
        spectra = np.fft.rfft(sketches, axis=3)
        product = np.empty((len(X), blocks, spectra.shape[3]), spectra.dtype)
        with np.errstate(all="ignore"):
            multiply_spectra(spectra, product)
            convolved = np.fft.irfft(product, n=F, axis=2) * math.sqrt(F)
        out[:] = np.clip(np.nan_to_num(convolved), -LARGEST_FEATURE, LARGEST_FEATURE).reshape(len(X), -1)
