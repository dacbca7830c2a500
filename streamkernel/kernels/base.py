"""The interface of a kernel, its exact matrix and its random features; and what all kernels share."""

import abc
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

import numpy as np
from river import base

from streamkernel.arguments import Representable, is_finite_number, is_number
from streamkernel.compute.features import SINE
from streamkernel.compute.random_features import project, waves
from streamkernel.domain import Domain
from streamkernel.state import Array, excerpt

if TYPE_CHECKING:
    from streamkernel.kernels.operators import Product, Scaled, Sum

#: Frequencies in float32 times inputs of any allowed size are finite for bandwidths between these.
SMALLEST_BANDWIDTH = 1e-15
LARGEST_BANDWIDTH = 1e18


def require_bandwidth(bandwidth: object) -> None:
    """Refuse a length scale that is neither a positive finite number nor None, by a ValueError."""
    if bandwidth is not None and not (is_finite_number(bandwidth) and bandwidth > 0):
        raise ValueError(f"bandwidth must be a positive number or None, got {excerpt(bandwidth)}")


def require_positive(
    name: str, value: object, least: float = SMALLEST_BANDWIDTH, most: float = LARGEST_BANDWIDTH
) -> None:
    """Refuse an argument that is not a number above 0, from `least` to `most`, by a ValueError."""
    if not (is_finite_number(value) and least <= value <= most):
        raise ValueError(
            f"{name} must be a number above 0 and at most {most:g}, {least:g} at least, got {excerpt(value)}"
        )


def is_coefficient(value: object) -> TypeGuard[float]:
    """Whether an argument is a number from 0 to `LARGEST_BANDWIDTH`."""
    return is_finite_number(value) and 0 <= value <= LARGEST_BANDWIDTH


def usable(bandwidth: float) -> float:
    """The bandwidth, clipped to the range in which frequencies and kernel are finite in float32."""
    return min(max(bandwidth, SMALLEST_BANDWIDTH), LARGEST_BANDWIDTH)


#: Kernels without a bound are cut here either way, so that they are finite.
LARGEST_VALUE = 1e150


def median_of_pairs(D: Array) -> float:
    """The median of a symmetric matrix over all pairs of different rows; 0 where there are none."""
    pairs = D[np.triu_indices(len(D), 1)]
    return float(np.median(pairs)) if len(pairs) else 0.0


def distances(X: Array, Y: Array, metric: str = "euclidean") -> Array:
    """The distances of all pairs of rows of X and Y, float64 of shape (n, m), by one of scipy's metrics."""
    X, Y = np.asarray(X, np.float64), np.asarray(Y, np.float64)
    if not X.shape[1]:
        return np.zeros((len(X), len(Y)))
    from scipy.spatial import distance  # it takes a tenth of a second, which few processes need

    return np.asarray(distance.cdist(X, Y, metric))


def columns_of(X: Array, Y: Array) -> Iterator[tuple[Array, Array]]:
    """Each input of all pairs of rows of X and Y, float64 of shapes (n, 1) and (m,)."""
    for x, y in zip(np.asarray(X, np.float64).T, np.asarray(Y, np.float64).T, strict=True):
        yield x[:, None], y


def inner_products(X: Array, Y: Array) -> Array:
    """The inner products of all pairs of rows of X and Y, float64 of shape (n, m)."""
    return np.asarray(np.asarray(X, np.float64) @ np.asarray(Y, np.float64).T)


def squared_distances(X: Array, Y: Array) -> Array:
    """The squared Euclidean distances of all pairs of rows of X and Y, float64 of shape (n, m), at least 0."""
    X = np.asarray(X, np.float64)
    Y = np.asarray(Y, np.float64)
    squared = (X * X).sum(axis=1)[:, None] + (Y * Y).sum(axis=1)[None, :] - 2 * X @ Y.T
    return np.asarray(np.maximum(squared, 0.0))


class Kernel(Representable, base.Base, abc.ABC):
    """The base class of kernels: a positive definite k(x, x') with random features.

    The mean of the products of two rows' features is k. A kernel's only state is its constructor arguments. If the
    argument `bandwidth` is None, the machine that uses the kernel holds the learned bandwidth. Operators add, multiply
    and scale kernels: `Gaussian() + 0.1 * Laplacian()`.

    A custom kernel implements `matrix` and `features`, and sets the attributes below. If it is shift-invariant, derive
    it from `FourierKernel` and implement `matrix` and `frequencies` instead.

    Attributes
    ----------
    bandwidth
        The length scale. None takes it from the data. 1 (the default) suits a kernel without one.
    n_parts
        The number of values of one draw: 1 (the default), or 2 if a draw is a cosine and a sine.
    n_kernels
        The number of kernels that operators combine in it. 1 (the default) for a single kernel.
    n_uniforms
        The number of uniform numbers that `frequencies_at` needs for one frequency of an input. 0 (the default) if it
        is not supported.
    shift_invariant
        Whether k(x, x') depends only on x - x'. Defaults to False.
    standardizes
        Whether `standardize=None` centers and scales the inputs. Defaults to `shift_invariant`.
    structured
        Whether frequencies form stacks of orthogonal ones, instead of independent draws. Defaults to False.
    by_block
        Whether `features` computes whole blocks. Defaults to False.
    is_fourier
        Whether its features are cosines and sines of random frequencies. Defaults to False.
    transforms
        Whether its frequencies apply to a function of each input, instead of the inputs. Defaults to False.
    rows_at_once
        Whether `features` of several rows gives the same bits as for each row alone. If False (the default), it
        receives one row at a time.
    names_inputs
        Whether it identifies inputs by name. Its matrix of a machine's rows then comes from `on_rows`. Only growing
        estimators support this, and such a kernel cannot be part of another one. Defaults to False.
    domain
        The allowed values of inputs. None (the default) allows any.
    kappa
        The largest k(x, x). None (the default) measures it in the first mini-batch.
    feature_bound
        The largest sum of squares of one draw's numbers. None (the default) measures it in the first mini-batch.

    References
    ----------
    [^1]: Rahimi and Recht, "Random features for large-scale kernel machines", 2007, section 3.
    [^2]: Dai et al., "Scalable kernel methods via doubly stochastic gradients", 2014, table 1.

    """

    bandwidth: float | None = 1.0
    n_parts: int = 1
    n_kernels: int = 1
    n_uniforms: int = 0
    shift_invariant: bool = False
    structured: bool = False
    by_block: bool = False
    is_fourier: bool = False
    transforms: bool = False
    rows_at_once: bool = False
    names_inputs: bool = False
    domain: Domain | None = None
    kappa: float | None = None
    feature_bound: float | None = None
    #: numpy leaves the product of one of its numbers and a kernel to the kernel.
    __array_ufunc__: ClassVar[None] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "frequencies" in vars(cls) and getattr(cls.features, "__isabstractmethod__", False):
            raise TypeError(f"{cls.__name__} has frequencies: derive it from streamkernel.kernels.FourierKernel")
        if "frequencies" in vars(cls) and "frequencies_at" not in vars(cls):
            cls.n_uniforms = 0  # those that a parent makes are of another law

    @abc.abstractmethod
    def matrix(self, X: Array, Y: Array, bandwidth: float) -> Array:
        """Return the kernel matrix: k of all pairs of rows.

        Parameters
        ----------
        X, Y
            Inputs of the machine, scaled if it standardizes them, of shapes (n, d) and (m, d).
        bandwidth
            The length scale in use, in units of these inputs.

        Returns
        -------
        float64 of shape (n, m).

        """

    @abc.abstractmethod
    def features(self, X: Array, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
        """Compute random features. The product of two rows' features, averaged over draws, is k of the rows.

        A feature may depend only on its word, the inputs' keys and the row. It is never stored, and must be the same at
        each computation. An input of 0, which includes a missing one, must change nothing. Then inputs may come later
        without changing the features of earlier records.

        Parameters
        ----------
        X
            Inputs of the machine, float32 or float64 of shape (n, d).
        words
            64 random bits for each draw, determined by the seed and the number of the draw; uint64 of shape (m,). If
            `by_block` is True, the bits of whole blocks, of shape (blocks, F).
        keys
            The inputs' keys, determined by their names; uint64 of shape (d,).
        bandwidth
            The length scale in use, in units of the inputs.
        out
            The array to fill with features, of the dtype of X and shape (n, n_parts m). The first number of each draw
            comes first, then the second of each, without the factor m^-1/2.

        """

    def on_rows(self, X: Array, keys: Array) -> "tuple[Kernel, Array]":  # noqa: ARG002 - of use where it is overridden
        """Return a kernel and rows with the kernel matrix of X (n, d), for inputs with these keys.

        These are the kernel itself and X, unless `names_inputs` is True.
        """
        return self, X

    @property
    def standardizes(self) -> bool:
        """Whether `standardize=None` centers and scales the inputs."""
        return self.shift_invariant

    @property
    def terms(self) -> "list[tuple[float, Kernel]]":
        """Return the terms of this kernel as a sum, each with the factor of its features."""
        return [(1.0, self)]

    def initial_bandwidth(self, d: float) -> float:
        """Return the bandwidth before there is data: .7 sqrt(2 d), with d the mean squared norm of the inputs."""
        return float(0.7 * np.sqrt(2 * d))

    def median_bandwidth(self, Z: Array) -> float:
        """Return the bandwidth by the median heuristic: .7 times the median distance of rows of Z, shape (n, d).

        .7 if most rows are equal.
        """
        return 0.7 * (float(np.sqrt(median_of_pairs(squared_distances(Z, Z)))) or 1.0)

    def __getstate__(self) -> dict[str, Any] | None:
        return {name: getattr(self, name) for name in self._get_params()} or None

    def __setstate__(self, state: dict[str, Any]) -> None:
        # By the constructor: what it refuses cannot come from a checkpoint.
        type(self).__init__(self, **state)

    def __add__(self, other: "Kernel | float") -> "Sum":
        from streamkernel.kernels.operators import Sum

        if isinstance(other, Kernel):
            return Sum(self, other)
        if is_number(other):
            raise TypeError(
                f"{excerpt(other)} is not a kernel: to add the constant c, use DotProduct([c]) with c above 0"
            )
        raise TypeError(f"a kernel can only be added to another kernel, got {excerpt(other)}")

    def __radd__(self, other: float) -> "Kernel":
        if is_number(other) and other == 0:  # as `sum` begins
            return self
        return self.__add__(other)

    def __mul__(self, other: "Kernel | float") -> "Product | Scaled":
        from streamkernel.kernels.operators import Product, Scaled

        if isinstance(other, Kernel):
            return Product(self, other)
        if not is_number(other):
            raise TypeError(f"a kernel can only be multiplied by a kernel or a number above 0, got {excerpt(other)}")
        return Scaled(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: float) -> "Scaled":
        from streamkernel.kernels.operators import Scaled

        if not is_number(other):
            raise TypeError(f"a kernel can only be divided by a number above 0, got {excerpt(other)}")
        if not other > 0:
            raise ValueError(f"a kernel can only be divided by a number above 0, got {excerpt(other)}")
        return Scaled(self, 1 / other)


class FourierKernel(Kernel):
    """The base class of kernels with cosines and sines of random frequencies as features.

    A subclass implements `matrix` and `frequencies`. By Bochner's theorem, a shift-invariant kernel is the mean of
    cos(w (x - x')) over frequencies w from its Fourier transform.
    """

    n_parts = 2
    shift_invariant = True
    kappa = 1.0
    feature_bound = 1.0
    is_fourier = True
    rows_at_once = True
    #: Whether slopes of what is learned say how much inputs matter: the squares of frequencies have a variance.
    is_smooth: bool = True

    @abc.abstractmethod
    def frequencies(self, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
        """Draw random frequencies from the kernel's spectral distribution, in turns (radians divided by 2 pi).

        A frequency may depend only on its word and its key, and must be the same at each draw.

        Parameters
        ----------
        words
            64 random bits for each feature, determined by the seed and the number of the feature; uint64 of shape (m,).
        keys
            The inputs' keys, determined by their names; uint64 of shape (d,).
        bandwidth
            The length scale in use, in units of the scaled inputs.
        out
            The array to fill with frequencies, float32 or float64 of shape (d, m).

        """

    def frequencies_at(self, U: Array, words: Array, bandwidth: float, out: Array) -> None:
        """Compute frequencies, in turns, from given uniform numbers.

        Independent uniform numbers give frequencies with the kernel's distribution. Quasi-random features use this, for
        kernels with `n_uniforms` above 0.

        Parameters
        ----------
        U
            Numbers in (0, 1), float64 of shape (n_uniforms, d, m).
        words
            As for `frequencies`, for the parts of a frequency that do not come from U.
        bandwidth
            The length scale in use, in units of the scaled inputs.
        out
            The array to fill with frequencies, float32 or float64 of shape (d, m).

        """
        raise NotImplementedError(f"{type(self).__name__} cannot make frequencies from given uniform numbers")

    def transform(self, X: Array) -> Array:
        """Return the factors of the frequencies, with shape and dtype of X and 0 where X is 0: by default X.

        If `transforms` is True, each factor is a function of one number of X.
        """
        return X

    def features(self, X: Array, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
        fourier_features(self, X, words, keys, bandwidth, out)


def fourier_features(kernel: FourierKernel, X: Array, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
    """Fill `out` with cosines and sines, as `Kernel.features` has them."""
    W = np.full((len(keys), len(words)), np.nan, X.dtype)  # so that one that is not filled is noticed
    kernel.frequencies(words, keys, bandwidth, W)
    turns = np.empty((len(X), len(words)), X.dtype)
    project(kernel.transform(X), W, turns)
    waves(turns, SINE[X.dtype], out)


def has_frequencies(kernel: Kernel) -> TypeGuard[FourierKernel]:
    """Whether a kernel draws frequencies: a Fourier kernel, or a product of such."""
    return kernel.is_fourier
