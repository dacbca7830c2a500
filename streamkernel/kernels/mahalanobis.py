"""Fourier kernels with a learned metric instead of the Euclidean one."""

from collections.abc import Hashable, Sequence
from typing import Any, TypeGuard

import numpy as np

from streamkernel.compute.random_features import project
from streamkernel.kernels.base import FourierKernel, Kernel, has_frequencies
from streamkernel.kernels.drawing import draw_frequencies
from streamkernel.kernels.gaussian import Gaussian
from streamkernel.state import Array, excerpt, key_of, tag

#: The most inputs of a metric: a checkpoint lists its numbers one by one.
MOST_INPUTS = 256
#: Eigenvalues, and pivots, of less than so much of the largest are rounding.
_ROUNDING = 1e-9
_LARGEST = 1e30
#: What rows are cut to, as inputs are.
_CUT = 1e15


class Mahalanobis(FourierKernel):
    """A Fourier kernel of the Mahalanobis distance: k(C^T x, C^T x'), for a kernel k and a metric M = C C^T.

    With the Gaussian kernel, it is exp(-(x - x')^T M (x - x') / (2 bandwidth^2)). A metric is
    any positive semi-definite matrix, for example L^T L of scikit-learn's `NeighborhoodComponentsAnalysis`. The kernel
    finds its inputs by name. It ignores all other inputs, and string inputs.

    By default, inputs are neither centered nor scaled, because the metric has their units. Only the growing estimators
    support this kernel, and it cannot be part of a sum, product or multiple.

    Parameters
    ----------
    inputs
        The names of the inputs, 1 to 256, in the order of the metric's rows.
    metric
        M: symmetric and positive semi-definite, d rows of d numbers.
    kernel
        The kernel k: `Gaussian` (None, the default), `Laplacian`, `Cauchy`, `Matern`, a product of them, or a custom
        Fourier kernel. Its bandwidth is in units of the metric's distances.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel.kernels import Gaussian, Mahalanobis
    >>> kernel = Mahalanobis(["a", "b"], [[4.0, 0.0], [0.0, 0.0]], Gaussian(2.0))
    >>> kernel.matrix(np.zeros((1, 2)), np.array([[1.0, 9.0]]), bandwidth=2.0).round(4)
    array([[0.6065]])

    References
    ----------
    [^1]: Weinberger and Tesauro, "Metric learning for kernel regression", 2007, section 2.

    """

    names_inputs = True

    def __init__(
        self, inputs: Sequence[Hashable], metric: Sequence[Sequence[float]], kernel: Kernel | None = None
    ) -> None:
        own: Kernel = Gaussian() if kernel is None else kernel
        if not (isinstance(own, Kernel) and _takes_place(own)):
            raise ValueError(
                "kernel must be one whose features are cosines of independent frequencies of the inputs (Gaussian, "
                f"Laplacian, Cauchy, Matern, their products), got {excerpt(kernel)}"
            )
        self.inputs = inputs
        self.metric = metric.tolist() if isinstance(metric, np.ndarray) else metric
        self.kernel = kernel
        self._kernel = own
        self._places = _places(inputs)
        self._factor = _factor(_checked(self.metric, len(self._places)))
        self._latent = (np.arange(len(self._factor), dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        self.n_kernels = own.n_kernels + 1
        self.bandwidth = own.bandwidth
        self.is_smooth = own.is_smooth

    @property
    def standardizes(self) -> bool:
        """Whether `standardize=None` centers and scales the inputs: False."""
        return False

    def initial_bandwidth(self, d: float) -> float:
        return self._kernel.initial_bandwidth(d)

    def median_bandwidth(self, Z: Array) -> float:
        """Return the bandwidth by the heuristic of k, for rows with the metric's inputs as columns."""
        return self._kernel.median_bandwidth(self._mapped(Z))

    def matrix(self, X: Array, Y: Array, bandwidth: float) -> Array:
        """Return the kernel matrix of rows with the metric's inputs as columns, in their order."""
        return self._kernel.matrix(self._mapped(X), self._mapped(Y), bandwidth)

    def on_rows(self, X: Array, keys: Array) -> tuple[Kernel, Array]:
        """Return the kernel k, and the rows C^T x of a machine's rows x."""
        columns, places = self._known(keys)
        rows = np.empty((len(X), len(self._factor)))
        project(np.ascontiguousarray(X[:, columns], np.float64), self._factor[places], rows)
        return self._kernel, np.clip(rows, -_CUT, _CUT)

    def frequencies(self, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
        columns, places = self._known(keys)
        latent = np.empty((len(self._factor), len(words)), out.dtype)
        draw_frequencies(self._kernel, words, self._latent, bandwidth, latent)
        known = np.empty((len(columns), len(words)), out.dtype)
        project(self._factor[places].astype(out.dtype), latent, known)
        out[:] = 0
        out[columns] = known

    def _known(self, keys: Array) -> tuple[Array, Array]:
        """The columns of inputs that the metric knows, and their places in it."""
        places = np.array([self._places.get(int(key), -1) for key in keys], np.int64)
        columns = np.flatnonzero(places >= 0)
        return columns, places[columns]

    def _mapped(self, X: Array) -> Array:
        X = np.asarray(X, np.float64)
        if X.ndim != 2 or X.shape[1] != len(self._factor):
            raise ValueError(f"rows must have a column for each of the metric's {len(self._factor)} inputs")
        return np.asarray(np.clip(X @ self._factor, -_CUT, _CUT))


def _takes_place(kernel: Kernel) -> TypeGuard[FourierKernel]:
    """Whether a kernel draws independent frequencies of the inputs themselves."""
    return has_frequencies(kernel) and not (kernel.transforms or kernel.structured or kernel.names_inputs)


def _places(inputs: Any) -> dict[int, int]:
    """The place of each input by its key."""
    some = isinstance(inputs, list | tuple) and 0 < len(inputs) <= MOST_INPUTS
    if not some:
        raise ValueError(f"inputs must be a list of 1 to {MOST_INPUTS} names, got {excerpt(inputs)}")
    places = {key_of(["number", tag(name)]): place for place, name in enumerate(inputs)}
    if len(places) < len(inputs):
        raise ValueError(f"inputs must be different names, got {excerpt(inputs)}")
    return places


def _checked(metric: Any, d: int) -> Array:
    """The metric as a symmetric matrix, its rounding errors removed."""
    try:
        M = np.array(metric, np.float64)
    except (TypeError, ValueError):
        M = np.empty(0)
    if M.shape != (d, d) or not (np.abs(M) <= _LARGEST).all():
        raise ValueError(
            f"metric must be {d} rows of {d} numbers of at most {_LARGEST:g}, one for each input, got {excerpt(metric)}"
        )
    rounding = _ROUNDING * float(np.abs(M).max())
    if np.abs(M - M.T).max() > rounding:
        raise ValueError("metric must be symmetric: give (M + M.T) / 2")
    least = float(np.linalg.eigvalsh(M)[0])
    if least < -rounding:
        raise ValueError(f"metric must be positive semi-definite, its least eigenvalue is {least:g}")
    return np.asarray((M + M.T) / 2)


def _factor(M: Array) -> Array:
    """C, lower triangular, of C C^T = M: the Cholesky factor, whose columns of no pivot are 0.

    Sums are formed number by number, in one order: features drawn by it are the same on every machine.
    """
    left, C = M.copy(), np.zeros_like(M)
    least = _ROUNDING * np.maximum(np.diag(M), _ROUNDING * np.abs(M).max())
    for k in range(len(M)):
        if left[k, k] > least[k]:
            C[k:, k] = left[k:, k] / np.sqrt(left[k, k])
            left[k:, k:] -= C[k:, k, None] * C[None, k:, k]
    return C
