"""Mixtures of Fourier kernels, for machines that draw one set of frequencies for the inputs."""

from typing import TypeGuard

import numpy as np

from streamkernel.compute.laws import uniforms
from streamkernel.kernels.base import FourierKernel, Kernel, has_frequencies
from streamkernel.kernels.drawing import draw_frequencies
from streamkernel.kernels.operators import Product, Scaled, Sum
from streamkernel.state import Array

_PART = np.uint64(0x70617274)


class SpectralMixture(FourierKernel):
    """A sum of multiples of Fourier kernels as one Fourier kernel, divided by its k(x, x).

    Its frequencies come from the mixture of the parts' distributions. The word of a feature selects the part, the same
    one for all inputs.

    Parameters
    ----------
    kernel
        Sums, products and multiples of Fourier kernels that use cosines of the inputs. The factors of a sum are the
        shares of its parts. A factor of the whole kernel changes nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel.kernels import Cauchy, Gaussian, SpectralMixture
    >>> kernel = 3 * Gaussian(2.0) + Cauchy(1.0)
    >>> SpectralMixture(kernel).matrix(np.zeros((1, 1)), np.array([[0.0], [2.0]]), bandwidth=1.0).round(4)
    array([[1.    , 0.5049]])
    >>> kernel.matrix(np.zeros((1, 1)), np.array([[0.0], [2.0]]), bandwidth=1.0).round(4) / 4
    array([[1.    , 0.5049]])

    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.bandwidth = kernel.bandwidth
        parts = _weighted_parts(kernel)
        self._parts = [part for _, part in parts if _draws_of_inputs(part)]
        if len(self._parts) < len(parts):
            raise ValueError(f"kernel must be made of kernels whose features are cosines of the inputs, got {kernel!r}")
        factors = np.array([factor for factor, _ in parts])
        self._shares = factors / factors.sum()
        self.is_smooth = all(part.is_smooth for part in self._parts)

    @property
    def standardizes(self) -> bool:
        """Whether `standardize=None` centers and scales the inputs."""
        return self.kernel.standardizes

    def initial_bandwidth(self, d: float) -> float:
        return self.kernel.initial_bandwidth(d)

    def median_bandwidth(self, Z: Array) -> float:
        """Return the bandwidth by the kernel's heuristic."""
        return self.kernel.median_bandwidth(Z)

    def matrix(self, X: Array, Y: Array, bandwidth: float) -> Array:
        K = np.zeros((len(X), len(Y)))
        for share, part in zip(self._shares, self._parts, strict=True):
            K += share * np.asarray(part.matrix(X, Y, part.bandwidth or bandwidth))
        return K

    def frequencies(self, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
        drawn = np.empty(len(words))
        uniforms(words, _PART, drawn)
        chosen = np.minimum(np.searchsorted(np.cumsum(self._shares), drawn, side="right"), len(self._parts) - 1)
        for number, part in enumerate(self._parts):
            own = np.flatnonzero(chosen == number)
            if len(own):
                W = np.empty((len(keys), len(own)), out.dtype)
                draw_frequencies(part, words[own], keys, part.bandwidth or bandwidth, W)
                out[:, own] = W


def require_fourier(kernel: Kernel, estimator: str) -> FourierKernel:
    """Give the kernel as one whose features are cosines and sines of the inputs themselves.

    - estimator: The name of what takes only such kernels.

    Returns the kernel itself, or the `SpectralMixture` of a sum or multiple.
    ValueError: It is another, or its frequencies are structured.
    """
    if kernel.structured:
        raise ValueError("structured frequencies work only in KernelClassifier and KernelRegressor: use Gaussian()")
    require_nameless(kernel, estimator)
    if _draws_of_inputs(kernel):
        return kernel
    if all(_draws_of_inputs(part) for _, part in _weighted_parts(kernel)):
        return SpectralMixture(kernel)
    raise ValueError(
        f"{estimator} needs kernels whose features are cosines of the inputs (Gaussian, Laplacian, Cauchy, Matern, "
        f"their sums, products and multiples), got {kernel!r}: KernelClassifier and KernelRegressor accept any"
    )


def require_nameless(kernel: Kernel, estimator: str) -> None:
    """Refuse a kernel that knows inputs by their names, by a ValueError."""
    if kernel.names_inputs:
        raise ValueError(
            f"{estimator} does not accept {type(kernel).__name__}, which names its inputs: use KernelClassifier or "
            "KernelRegressor"
        )


def _draws_of_inputs(kernel: Kernel) -> TypeGuard[FourierKernel]:
    """Whether a kernel draws frequencies of the inputs themselves."""
    return has_frequencies(kernel) and not kernel.transforms


def _weighted_parts(kernel: Kernel) -> list[tuple[float, Kernel]]:
    """The kernels whose sum a kernel is, products of sums multiplied out, each with its factor."""
    if isinstance(kernel, Scaled):
        return [(kernel.factor * factor, part) for factor, part in _weighted_parts(kernel.kernel)]
    if isinstance(kernel, Sum):
        return _weighted_parts(kernel.left) + _weighted_parts(kernel.right)
    if isinstance(kernel, Product) and not kernel.is_fourier:
        return [
            (one * other, Product(left, right))
            for one, left in _weighted_parts(kernel.left)
            for other, right in _weighted_parts(kernel.right)
        ]
    return [(1.0, kernel)]
