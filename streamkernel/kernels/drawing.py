"""What a kernel of anyone's gives, refused where it is not finite: one NaN would become that of every prediction."""

import math

import numpy as np

from streamkernel.finite import NotFiniteError
from streamkernel.kernels.base import Kernel
from streamkernel.kernels.gaussian import Gaussian
from streamkernel.state import Array


def draw_frequencies(kernel: Kernel, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
    """Fill `out` with the kernel's frequencies, as `Kernel.frequencies` has them.

    Raises
    ------
    NotFiniteError
        One of them is not finite.

    """
    kernel.frequencies(words, keys, bandwidth, out)
    # Those of our own are finite at any bandwidth there may be, and are drawn again with every record.
    if type(kernel) is not Gaussian:
        _require_finite(kernel, "frequencies", out)


def kernel_matrix(kernel: Kernel, X: Array, Y: Array, bandwidth: float) -> Array:
    """The kernel matrix of rows X and Y, as `Kernel.matrix` has it.

    Raises
    ------
    NotFiniteError
        One of its entries is not finite.

    """
    K = kernel.matrix(X, Y, bandwidth)
    _require_finite(kernel, "matrix", K)
    return K


def median_bandwidth(kernel: Kernel, Z: Array) -> float:
    """The bandwidth by the median heuristic, as `Kernel.median_bandwidth` has it.

    Raises
    ------
    NotFiniteError
        It is not finite, or not above 0.

    """
    bandwidth = float(kernel.median_bandwidth(Z))
    if not 0 < bandwidth < math.inf:
        raise NotFiniteError(
            f"the kernel {type(kernel).__name__} gave the bandwidth {bandwidth} in its method `median_bandwidth`: "
            "it must give a finite number above 0"
        )
    return bandwidth


def _require_finite(kernel: Kernel, method: str, values: Array) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        raise NotFiniteError(
            f"the kernel {type(kernel).__name__} gave {float(values[~finite][0])} in its method `{method}`: "
            "it must give finite numbers only"
        )
