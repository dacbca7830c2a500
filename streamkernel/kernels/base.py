"""The interface of a kernel: its exact matrix, and its random features."""

import abc
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

import numpy as np
from river import base

from streamkernel.compute.features import SINE
from streamkernel.compute.random_features import project, waves
from streamkernel.domain import Domain
from streamkernel.kernels.arguments import is_number
from streamkernel.kernels.distances import median_of_pairs, squared_distances
from streamkernel.representation import Component
from streamkernel.state import Array, excerpt

if TYPE_CHECKING:
    from streamkernel.kernels.operators import Product, Scaled, Sum


class Kernel(Component, base.Base, abc.ABC):
    """A positive definite kernel k(x, x') with random features: the mean of their products is k.

    A kernel has no state but its constructor arguments; a bandwidth that is learnt from data, where the argument is
    None, is part of the machine that uses it. Kernels are added, multiplied and scaled by operators:
    `Gaussian() + 0.1 * Laplacian()`.

    A kernel of your own gives `matrix` and `features`, and what is said of it by the attributes below. Where it is
    shift-invariant, derive it from `FourierKernel` and give `matrix` and `frequencies` instead.

    Attributes
    ----------
    bandwidth
        The length scale; None takes it from the data, and 1 (the default) is that of a kernel without one.
    n_parts
        The numbers that one draw gives: 1 (the default), or 2 where a draw is a cosine and a sine.
    n_kernels
        The kernels that it is made of, 1 (the default) where it is none of the operators'.
    n_uniforms
        The uniform numbers of which `frequencies_at` makes a frequency of an input; 0 (the default) where it cannot.
    shift_invariant
        Whether k(x, x') depends on x - x' alone. Defaults to False.
    standardizes
        Whether `standardize=None` centres and scales the inputs. Defaults to `shift_invariant`.
    structured
        Whether frequencies are stacks of orthogonal ones instead of independent draws. Defaults to False.
    by_block
        Whether the features of a block are made together. Defaults to False.
    is_fourier
        Whether it draws frequencies, and its features are their cosines and sines. Defaults to False.
    transforms
        Whether it draws frequencies for a function of each input instead of the inputs themselves. Defaults to False.
    rows_at_once
        Whether `features` of several rows have the bits of each row alone; where not (the default), it is called with
        one row at a time.
    names_inputs
        Whether it knows inputs by their names: its matrix of a machine's rows is that of `on_rows`. For the growing
        estimators, and no part of another kernel. Defaults to False.
    domain
        The numbers that inputs may be; None (the default) is any.
    kappa
        The largest k(x, x); None (the default) is measured in the first mini-batch.
    feature_bound
        The largest sum of the squares of one draw's numbers; None (the default) is measured in the first mini-batch.

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
        """The kernel matrix: k of all pairs of rows.

        Parameters
        ----------
        X, Y
            Inputs as the machine has them, scaled if they are standardised, shapes (n, d) and (m, d).
        bandwidth
            The length scale in use, in units of these inputs.

        Returns
        -------
        float64 of shape (n, m).

        """

    @abc.abstractmethod
    def features(self, X: Array, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
        """Compute random features: the mean over draws of the product of two rows' features is k of the rows.

        A feature is a function of its word, the inputs' keys and the row, and nothing else: it is never stored, and the
        same whenever it is computed. An input that is 0, as an absent one is, must change nothing: then inputs may
        come later, and the features of earlier records stay as they are.

        Parameters
        ----------
        X
            Inputs as the machine has them, float32 or float64 of shape (n, d).
        words
            64 random bits for each draw, which follow from the seed and its number; uint64 of shape (m,). Where
            `by_block` is True, those of whole blocks, of shape (blocks, F).
        keys
            The inputs' keys, which follow from their names; uint64 of shape (d,).
        bandwidth
            The length scale in use, in units of the inputs.
        out
            The features, to be filled; of the dtype of X and shape (n, n_parts m): the first number of each draw, then
            the second of each, without the factor m^-1/2.

        """

    def on_rows(self, X: Array, keys: Array) -> "tuple[Kernel, Array]":  # noqa: ARG002 - of use where it is overridden
        """A kernel, and rows, whose kernel matrix is this kernel's of rows X (n, d) of inputs with these keys.

        The kernel itself and X; another one where `names_inputs` is True.
        """
        return self, X

    @property
    def standardizes(self) -> bool:
        """Whether `standardize=None` centres and scales the inputs."""
        return self.shift_invariant

    @property
    def terms(self) -> "list[tuple[float, Kernel]]":
        """The kernels that are added to give this one, each with the factor of its features."""
        return [(1.0, self)]

    def initial_bandwidth(self, d: float) -> float:
        """The bandwidth until there is data to take it from: .7 sqrt(2 d), d the mean squared norm of the inputs."""
        return float(0.7 * np.sqrt(2 * d))

    def median_bandwidth(self, Z: Array) -> float:
        """The bandwidth by the median heuristic: .7 times the median distance of all pairs of rows of Z, shape (n, d).

        .7 where most rows are alike.
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
                f"{excerpt(other)} is no kernel to add to one: the constant kernel c is DotProduct([c]), c above 0"
            )
        raise TypeError(f"a kernel is added to another kernel, got {excerpt(other)}")

    def __radd__(self, other: float) -> "Kernel":
        if is_number(other) and other == 0:  # as `sum` begins
            return self
        return self.__add__(other)

    def __mul__(self, other: "Kernel | float") -> "Product | Scaled":
        from streamkernel.kernels.operators import Product, Scaled

        if isinstance(other, Kernel):
            return Product(self, other)
        if not is_number(other):
            raise TypeError(f"a kernel is multiplied by another kernel or by a number above 0, got {excerpt(other)}")
        return Scaled(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: float) -> "Scaled":
        from streamkernel.kernels.operators import Scaled

        if not is_number(other):
            raise TypeError(f"a kernel is divided by a number above 0, got {excerpt(other)}")
        if not other > 0:
            raise ValueError(f"a kernel is divided by a number above 0, got {excerpt(other)}")
        return Scaled(self, 1 / other)


class FourierKernel(Kernel):
    """A kernel with paired random Fourier features: the cosine and the sine of random frequencies times the inputs.

    It gives `matrix` and `frequencies`: by Bochner's theorem, a shift-invariant kernel is the mean of cos(w (x - x'))
    over frequencies w drawn from its Fourier transform.

    References
    ----------
    [^1]: Rahimi and Recht, "Random features for large-scale kernel machines", 2007, section 3.

    """

    n_parts = 2
    shift_invariant = True
    kappa = 1.0
    feature_bound = 1.0
    is_fourier = True
    rows_at_once = True
    #: Whether slopes of what is learnt say how much inputs matter: the squares of frequencies have a variance.
    is_smooth: bool = True

    @abc.abstractmethod
    def frequencies(self, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
        """Draw random frequencies from the kernel's spectral distribution, in turns (radians divided by 2 pi).

        A frequency is a function of its word and its key and nothing else: the same whenever it is drawn.

        Parameters
        ----------
        words
            64 random bits for each feature, which follow from the seed and its number; uint64 of shape (m,).
        keys
            The inputs' keys, which follow from their names; uint64 of shape (d,).
        bandwidth
            The length scale in use, in units of the scaled inputs.
        out
            The frequencies, to be filled: float32 or float64 of shape (d, m).

        """

    def frequencies_at(self, U: Array, words: Array, bandwidth: float, out: Array) -> None:
        """Make frequencies, in turns, of given uniform numbers: of independent ones they have the kernel's law.

        For quasi-random features, of a kernel whose `n_uniforms` is above 0.

        Parameters
        ----------
        U
            Numbers in (0, 1), float64 of shape (n_uniforms, d, m).
        words
            As for `frequencies`, for what of a frequency is not made of U.
        bandwidth
            The length scale in use, in units of the scaled inputs.
        out
            The frequencies, to be filled: float32 or float64 of shape (d, m).

        """
        raise NotImplementedError(f"{type(self).__name__} makes no frequencies of given uniform numbers")

    def transform(self, X: Array) -> Array:
        """What frequencies are multiplied by, of the shape and dtype of X and 0 where it is 0: the inputs themselves.

        Of a kernel whose `transforms` is True, a function of each number alone.
        """
        return X

    def features(self, X: Array, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
        fourier_features(self, X, words, keys, bandwidth, out)


def fourier_features(kernel: FourierKernel, X: Array, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
    """Fill `out` with cosines and sines, as `Kernel.features` has them."""
    W = np.full((len(keys), len(words)), np.nan, X.dtype)  # one that is not filled is then told of
    kernel.frequencies(words, keys, bandwidth, W)
    turns = np.empty((len(X), len(words)), X.dtype)
    project(kernel.transform(X), W, turns)
    waves(turns, SINE[X.dtype], out)


def has_frequencies(kernel: Kernel) -> TypeGuard[FourierKernel]:
    """Whether a kernel draws frequencies: a Fourier kernel, or a product of such."""
    return kernel.is_fourier
