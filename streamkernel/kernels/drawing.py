"""Checks of the values that a kernel returns: one NaN would spread to every prediction."""

import math

import numpy as np

from streamkernel.finite import NotFiniteError
from streamkernel.kernels.base import FourierKernel, Kernel
from streamkernel.state import Array, excerpt, real

#: How far apart the two points of a difference are, in units of the scaled inputs.
APART = 0.25


def draw_frequencies(kernel: FourierKernel, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
    """Fill `out` with the kernel's frequencies, as `FourierKernel.frequencies` has them.

    NotFiniteError: One of them is not finite.
    """
    # Those of our own are finite at any bandwidth there may be, and are drawn again with every record.
    ours = is_ours(kernel)
    if not ours:
        out.fill(math.nan)  # what a method leaves as it was is no number of its own
    kernel.frequencies(words, keys, bandwidth, out)
    if not ours:
        _require_finite(kernel, "frequencies", out)


def slope_frequencies(kernel: FourierKernel, W: Array) -> Array:
    """Return the factors of the slopes of cosines along an input, in turns, from frequencies W of shape (d, F).

    These are the frequencies. A kernel without smooth functions is an exception, because a few very high frequencies
    would dominate its slopes. It uses the difference of two points that are `APART` from each other.
    """
    return W if kernel.is_smooth else np.asarray(np.sin(math.pi * APART * W) / (math.pi * APART))


def compute_features(kernel: Kernel, X: Array, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
    """Fill `out` with the kernel's features, as `Kernel.features` has them, each row's as if it were alone.

    NotFiniteError: One of them is not finite.
    """
    ours = is_ours(kernel)
    if not ours:
        out.fill(math.nan)
    if kernel.rows_at_once:
        kernel.features(X, words, keys, bandwidth, out)
    else:
        for r in range(len(X)):
            kernel.features(X[r : r + 1], words, keys, bandwidth, out[r : r + 1])
    if not ours:
        _require_finite(kernel, "features", out)


def kernel_matrix(kernel: Kernel, X: Array, Y: Array, bandwidth: float) -> Array:
    """The kernel matrix of rows X and Y, as `Kernel.matrix` has it.

    TypeError: It is no array of numbers of shape (n, m).
    NotFiniteError: One of its entries is not finite.
    """
    K = kernel.matrix(X, Y, bandwidth)
    if not (isinstance(K, np.ndarray) and K.shape == (len(X), len(Y)) and K.dtype.kind in "biuf"):
        given = f"an array of shape {K.shape}" if isinstance(K, np.ndarray) else excerpt(K)
        raise TypeError(
            f"the kernel {type(kernel).__name__} gave {given} in its method `matrix`: "
            f"it must give an array of numbers of shape ({len(X)}, {len(Y)})"
        )
    _require_finite(kernel, "matrix", K)
    return K


def median_bandwidth(kernel: Kernel, Z: Array) -> float:
    """The bandwidth by the median heuristic, as `Kernel.median_bandwidth` has it.

    TypeError: It is no number.
    NotFiniteError: It is not finite, or not above 0.
    """
    given = kernel.median_bandwidth(Z)
    bandwidth = real(np.asarray(given)[()])
    if bandwidth is None:
        raise TypeError(
            f"the kernel {type(kernel).__name__} gave the bandwidth {excerpt(given)} in its method `median_bandwidth`: "
            "it must give a finite number above 0"
        )
    if not 0 < bandwidth < math.inf:
        raise NotFiniteError(
            f"the kernel {type(kernel).__name__} gave the bandwidth {bandwidth} in its method `median_bandwidth`: "
            "it must give a finite number above 0"
        )
    return bandwidth


def is_ours(kernel: Kernel) -> bool:
    """Whether a kernel is one of streamkernel's own."""
    return type(kernel).__module__.partition(".")[0] == "streamkernel"


def _require_finite(kernel: Kernel, method: str, values: Array) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        raise NotFiniteError(
            f"the kernel {type(kernel).__name__} gave {float(values[~finite][0])} in its method `{method}`: "
            "it must give finite numbers only"
        )
