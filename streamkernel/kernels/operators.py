"""Sums, products and multiples of kernels, by the operators `+` and `*`."""

import math
from dataclasses import dataclass

import numpy as np

from streamkernel.compute.laws import LARGEST_DRAW, salted
from streamkernel.compute.random_features import LARGEST_FEATURE
from streamkernel.domain import narrower
from streamkernel.kernels.base import LARGEST_VALUE, Kernel, fourier_features, has_frequencies, require_positive
from streamkernel.kernels.drawing import compute_features, draw_frequencies
from streamkernel.state import Array, excerpt

#: What a draw is multiplied by in all: features times the root of a larger factor may overflow in float32, and those
#: of a smaller one are nothing compared to any regularization.
LEAST_FACTOR, LARGEST_FACTOR = 1e-30, 1e30
#: A kernel of more parts, or with more numbers a draw, is a mistake, or comes from a forged checkpoint.
MOST_KERNELS, MOST_NUMBERS = 32, 1024


@dataclass(eq=False)
class _Pair(Kernel):
    """A kernel of two others; a bandwidth left to the data is one for all that leave it."""

    left: Kernel
    right: Kernel

    rows_at_once = True

    def __post_init__(self) -> None:
        for name, kernel in (("left", self.left), ("right", self.right)):
            _require_part(name, kernel)
        self.n_kernels = self.left.n_kernels + self.right.n_kernels
        self.bandwidth = 1.0 if self.left.bandwidth and self.right.bandwidth else None
        self.shift_invariant = self.left.shift_invariant and self.right.shift_invariant
        self.by_block = self.left.by_block or self.right.by_block
        self.domain = narrower(self.left.domain, self.right.domain)

    @property
    def standardizes(self) -> bool:
        """Whether `standardize=None` centers and scales the inputs: one part asks for it, and none forbids it."""
        return self.domain is None and (self.left.standardizes or self.right.standardizes)

    def initial_bandwidth(self, d: float) -> float:
        return self._first_without_bandwidth.initial_bandwidth(d)

    def median_bandwidth(self, Z: Array) -> float:
        """The bandwidth by the heuristic of the first part that leaves it to the data."""
        return self._first_without_bandwidth.median_bandwidth(Z)

    @property
    def _first_without_bandwidth(self) -> Kernel:
        return self.right if self.left.bandwidth else self.left

    def _features_of_parts(self, X: Array, words: Array, keys: Array, bandwidth: float) -> tuple[Array, Array]:
        """The features of both parts, each drawn by words of its own."""
        left, right = (
            _features(part, X, _own_words(words, number), keys, bandwidth)
            for number, part in enumerate((self.left, self.right), start=1)
        )
        return left, right


class Sum(_Pair):
    """The sum of two kernels, k(x, x') = left(x, x') + right(x, x'), as `left + right` gives it.

    Its features are the features of both parts. If both parts leave their bandwidth open, they share one, by the
    heuristic of the first. Inputs are standardized if one part asks for it and no part has a domain.

    Parameters
    ----------
    left, right
        Any kernels except structured ones, at most 32 in all, with 1,024 numbers a draw.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel.kernels import Cauchy, Gaussian
    >>> kernel = Gaussian(2.0) + Cauchy(1.0)
    >>> kernel
    Sum(left=Gaussian(bandwidth=2.0), right=Cauchy(bandwidth=1.0))
    >>> kernel.matrix(np.zeros((1, 1)), np.array([[0.0], [2.0]]), bandwidth=1.0).round(4)
    array([[2.    , 0.8065]])

    """

    def __init__(self, left: Kernel, right: Kernel) -> None:
        super().__init__(left, right)
        self.n_parts = left.n_parts + right.n_parts
        _require_few(self)
        self.kappa = None if left.kappa is None or right.kappa is None else left.kappa + right.kappa
        bounds = left.feature_bound, right.feature_bound
        self.feature_bound = None if bounds[0] is None or bounds[1] is None else bounds[0] + bounds[1]

    @property
    def terms(self) -> list[tuple[float, Kernel]]:
        """Return the terms of both parts."""
        return self.left.terms + self.right.terms

    def matrix(self, X: Array, Y: Array, bandwidth: float) -> Array:
        return _cut(_matrix(self.left, X, Y, bandwidth) + _matrix(self.right, X, Y, bandwidth))

    def features(self, X: Array, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
        np.concatenate(self._features_of_parts(X, words, keys, bandwidth), axis=1, out=out)


class Product(_Pair):
    """The product of two kernels, k(x, x') = left(x, x') right(x, x'), as `left * right` gives it.

    Its features are products of one number from a draw of each part. If both are Fourier kernels, the product is one
    too, and its frequencies are sums of theirs.

    Parameters
    ----------
    left, right
        Any kernels except structured ones, at most 32 in all, with 1,024 numbers a draw.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel.kernels import Cauchy, Gaussian
    >>> kernel = Gaussian(2.0) * Cauchy(1.0)
    >>> kernel.matrix(np.zeros((1, 1)), np.array([[0.0], [2.0]]), bandwidth=1.0).round(4)
    array([[1.    , 0.1213]])

    """

    def __init__(self, left: Kernel, right: Kernel) -> None:
        super().__init__(left, right)
        self.is_fourier = all(part.is_fourier and not part.transforms for part in (left, right))
        self.is_smooth = all(getattr(part, "is_smooth", False) for part in (left, right))
        uniforms = [part.n_uniforms if self.is_fourier else 0 for part in (left, right)]
        self.n_uniforms = sum(uniforms) if all(uniforms) else 0
        self.n_parts = 2 if self.is_fourier else left.n_parts * right.n_parts
        _require_few(self)
        _require_factors(self)
        self.kappa = None if left.kappa is None or right.kappa is None else left.kappa * right.kappa
        bounds = left.feature_bound, right.feature_bound
        self.feature_bound = None if bounds[0] is None or bounds[1] is None else bounds[0] * bounds[1]

    def matrix(self, X: Array, Y: Array, bandwidth: float) -> Array:
        return _cut(_matrix(self.left, X, Y, bandwidth) * _matrix(self.right, X, Y, bandwidth))

    def frequencies(self, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
        """Draw sums of a frequency of each part, for two Fourier kernels; see `FourierKernel.frequencies`."""
        of_right = np.empty_like(out)
        for number, (part, drawn) in enumerate(((self.left, out), (self.right, of_right)), start=1):
            assert has_frequencies(part)
            draw_frequencies(part, _own_words(words, number), keys, part.bandwidth or bandwidth, drawn)
        np.clip(out + of_right, -LARGEST_DRAW, LARGEST_DRAW, out=out)

    def frequencies_at(self, U: Array, words: Array, bandwidth: float, out: Array) -> None:
        """Compute sums of a frequency of each part from uniform numbers; see `FourierKernel.frequencies_at`."""
        of_right = np.empty_like(out)
        first = 0
        for number, (part, made) in enumerate(((self.left, out), (self.right, of_right)), start=1):
            assert has_frequencies(part)
            own = U[first : first + part.n_uniforms]
            part.frequencies_at(own, _own_words(words, number), part.bandwidth or bandwidth, made)
            first += part.n_uniforms
        np.clip(out + of_right, -LARGEST_DRAW, LARGEST_DRAW, out=out)

    def transform(self, X: Array) -> Array:
        """Return the inputs unchanged."""
        return X

    def features(self, X: Array, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
        if has_frequencies(self):
            fourier_features(self, X, words, keys, bandwidth, out)
            return
        left, right = self._features_of_parts(X, words, keys, bandwidth)
        n, m = len(X), words.size
        with np.errstate(over="ignore"):
            pairs = left.reshape(n, -1, 1, m) * right.reshape(n, 1, -1, m)
        np.clip(pairs.reshape(n, -1), -LARGEST_FEATURE, LARGEST_FEATURE, out=out)


class Scaled(Kernel):
    """A multiple of a kernel, k(x, x') = factor kernel(x, x'), as `factor * kernel` gives it.

    Parameters
    ----------
    kernel
        Any kernel except a structured one.
    factor
        A number from 1e-30 to 1e30. Nested factors of the same kernel multiply to such a number. `regularization` has
        more weight if k(x, x) is small. The default of 1e-6 outweighs a kernel with a factor below 1e-6, which then
        learns nothing useful.

    Examples
    --------
    >>> from streamkernel.kernels import Gaussian, Laplacian
    >>> Gaussian() + 0.1 * Laplacian()
    Sum(left=Gaussian(), right=Scaled(kernel=Laplacian(), factor=0.1))

    """

    rows_at_once = True

    def __init__(self, kernel: Kernel, factor: float) -> None:
        _require_part("kernel", kernel)
        require_positive("factor", factor, LEAST_FACTOR, LARGEST_FACTOR)
        self.kernel = kernel
        self.factor = factor
        _require_factors(self)
        self.n_kernels = kernel.n_kernels + 1
        self.bandwidth = kernel.bandwidth
        self.n_parts = kernel.n_parts
        _require_few(self)
        self.shift_invariant = kernel.shift_invariant
        self.by_block = kernel.by_block
        self.domain = kernel.domain
        self.kappa = None if kernel.kappa is None else float(factor) * kernel.kappa
        self.feature_bound = None if kernel.feature_bound is None else float(factor) * kernel.feature_bound

    @property
    def standardizes(self) -> bool:
        """Whether `standardize=None` centers and scales the inputs."""
        return self.kernel.standardizes

    @property
    def terms(self) -> list[tuple[float, Kernel]]:
        """Return the kernel's terms, each with its factor scaled."""
        return [(factor * math.sqrt(self.factor), kernel) for factor, kernel in self.kernel.terms]

    def initial_bandwidth(self, d: float) -> float:
        return self.kernel.initial_bandwidth(d)

    def median_bandwidth(self, Z: Array) -> float:
        """Return the bandwidth by the kernel's heuristic."""
        return self.kernel.median_bandwidth(Z)

    def matrix(self, X: Array, Y: Array, bandwidth: float) -> Array:
        return _cut(float(self.factor) * _matrix(self.kernel, X, Y, bandwidth))

    def features(self, X: Array, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
        compute_features(self.kernel, X, words, keys, bandwidth, out)
        out *= out.dtype.type(math.sqrt(self.factor))


def _require_part(name: str, kernel: Kernel) -> None:
    if not isinstance(kernel, Kernel):
        raise ValueError(f"{name} must be a Kernel such as streamkernel.kernels.Gaussian(), got {excerpt(kernel)}")
    if kernel.structured:
        raise ValueError(f"{name} is structured, which a sum, product or multiple cannot contain: use Gaussian()")
    if kernel.names_inputs:
        raise ValueError(f"{name} is a {type(kernel).__name__}, which a sum, product or multiple cannot contain")


def _require_few(kernel: Kernel) -> None:
    if kernel.n_kernels > MOST_KERNELS or kernel.n_parts > MOST_NUMBERS:
        raise ValueError(
            f"a {type(kernel).__name__} of {kernel.n_kernels:,} kernels with {kernel.n_parts:,} numbers per draw is "
            f"too large: at most {MOST_KERNELS} kernels and {MOST_NUMBERS:,} numbers"
        )


def _factors(kernel: Kernel) -> tuple[float, float]:
    """The least and the largest product of factors that a draw of the kernel is multiplied by."""
    if isinstance(kernel, Scaled):
        least, most = _factors(kernel.kernel)
        return least * float(kernel.factor), most * float(kernel.factor)
    if isinstance(kernel, _Pair):
        (l_least, l_most), (r_least, r_most) = _factors(kernel.left), _factors(kernel.right)
        if isinstance(kernel, Product):
            return l_least * r_least, l_most * r_most
        return min(l_least, r_least), max(l_most, r_most)
    return 1.0, 1.0


def _require_factors(kernel: Kernel) -> None:
    least, most = _factors(kernel)
    # To rounding: a product of two may be a little past the bound.
    wrong = [value for value in (most, least) if not LEAST_FACTOR * (1 - 1e-9) <= value <= LARGEST_FACTOR * (1 + 1e-9)]
    if wrong:
        raise ValueError(
            f"factor must be at least {LEAST_FACTOR:g} and at most {LARGEST_FACTOR:g} when multiplied with the inner "
            f"factors, got {wrong[0]:g}"
        )


def _own_words(words: Array, number: int) -> Array:
    """The words of a part, of the shape of the whole's."""
    own = np.empty(words.size, np.uint64)
    salted(np.ascontiguousarray(words).reshape(-1), number, own)
    return own.reshape(words.shape)


def _features(part: Kernel, X: Array, words: Array, keys: Array, bandwidth: float) -> Array:
    out = np.empty((len(X), part.n_parts * words.size), X.dtype)
    words = words if part.by_block else words.reshape(-1)
    compute_features(part, X, words, keys, part.bandwidth or bandwidth, out)
    return out


def _matrix(part: Kernel, X: Array, Y: Array, bandwidth: float) -> Array:
    return np.asarray(part.matrix(X, Y, part.bandwidth or bandwidth), np.float64)


def _cut(K: Array) -> Array:
    return np.asarray(np.clip(K, -LARGEST_VALUE, LARGEST_VALUE))
