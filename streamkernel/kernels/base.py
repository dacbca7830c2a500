"""The interface of a kernel: its exact matrix, and its random frequencies."""

import abc

import numpy as np
from river import base

from streamkernel.representation import Component
from streamkernel.state import Array

#: Frequencies in float32 times inputs of any allowed size are finite for bandwidths between these.
SMALLEST_BANDWIDTH = 1e-15
LARGEST_BANDWIDTH = 1e18


class Kernel(Component, base.Base, abc.ABC):
    """A shift-invariant kernel with paired random Fourier features F^-1/2 [cos(x W), sin(x W)].

    A kernel has no state but its constructor arguments; a bandwidth that is learnt from data, where the argument is
    None, is part of the machine that uses it.

    References
    ----------
    [^1]: Rahimi and Recht, "Random features for large-scale kernel machines", 2007, section 3.

    """

    #: Whether inputs are centred and scaled unless the user says otherwise.
    shift_invariant = True
    #: Whether frequencies are stacks of orthogonal ones instead of independent draws.
    structured = False
    #: Length scale, or None to take it from the data.
    bandwidth: float | None

    @abc.abstractmethod
    def matrix(self, X: Array, Y: Array, bandwidth: float) -> Array:
        """The kernel matrix: k of all pairs of rows.

        Parameters
        ----------
        X, Y
            Scaled inputs, shapes (n, d) and (m, d).
        bandwidth
            The length scale in use, in units of the scaled inputs.

        Returns
        -------
        float64 of shape (n, m).

        """

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

    def median_bandwidth(self, Z: Array) -> float:
        """The bandwidth by the median heuristic: .7 times the median distance of all pairs of rows of Z, shape (n, d).

        .7 where most rows are alike.
        """
        squared = squared_distances(Z, Z)[np.triu_indices(len(Z), 1)]
        median = float(np.sqrt(np.median(squared))) if len(squared) else 0.0
        return 0.7 * (median or 1.0)


def usable(bandwidth: float) -> float:
    """The bandwidth, clipped to the range in which frequencies and kernel are finite in float32."""
    return min(max(bandwidth, SMALLEST_BANDWIDTH), LARGEST_BANDWIDTH)


def squared_distances(X: Array, Y: Array) -> Array:
    """The squared Euclidean distances of all pairs of rows of X and Y, float64 of shape (n, m), at least 0."""
    X = np.asarray(X, np.float64)
    Y = np.asarray(Y, np.float64)
    squared = (X * X).sum(axis=1)[:, None] + (Y * Y).sum(axis=1)[None, :] - 2 * X @ Y.T
    return np.asarray(np.maximum(squared, 0.0))
