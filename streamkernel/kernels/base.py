"""What every kernel offers: its exact matrix, and frequencies drawn as a function of (seed, feature, input)."""

import abc

import numpy as np
from river import base

from streamkernel.state import Array

#: Frequencies in float32 times inputs of any allowed size are finite for bandwidths between these.
SMALLEST_BANDWIDTH = 1e-15
LARGEST_BANDWIDTH = 1e18


class Kernel(base.Base, abc.ABC):
    """A shift-invariant kernel with paired random features F^-1/2 [cos(x W), sin(x W)].

    A kernel is its constructor arguments and nothing else; what is learnt from data (the bandwidth, where the
    argument is None) lives in the state of the machine that uses it.
    """

    #: Whether inputs are centred and scaled unless the user says otherwise.
    shift_invariant = True
    #: Whether frequencies are stacks of orthogonal ones instead of independent draws.
    structured = False
    #: Length scale, or None to take it from the data.
    bandwidth: float | None

    @abc.abstractmethod
    def matrix(self, X: Array, Y: Array, bandwidth: float) -> Array:
        """The exact kernel.

        Parameters
        ----------
        X, Y
            Rows, shapes (n, d) and (m, d).
        bandwidth
            The length scale in use.

        Returns
        -------
        float64 of shape (n, m).

        """

    @abc.abstractmethod
    def frequencies(self, words: Array, keys: Array, bandwidth: float, out: Array) -> None:
        """Draw frequencies in turns (divided by 2 pi).

        Parameters
        ----------
        words
            The features' words, uint64 of shape (m,).
        keys
            The inputs' keys, uint64 of shape (d,).
        bandwidth
            The length scale in use.
        out
            Filled; shape (d, m), float32 or float64.

        """

    def median_bandwidth(self, Z: Array) -> float:
        """.7 times the median distance of all pairs of rows of Z (n, d); .7 where most rows are alike."""
        squared = squared_distances(Z, Z)[np.triu_indices(len(Z), 1)]
        median = float(np.sqrt(np.median(squared))) if len(squared) else 0.0
        return 0.7 * (median or 1.0)


def usable(bandwidth: float) -> float:
    """The bandwidth, or the nearest with which frequencies and kernel are finite."""
    return min(max(bandwidth, SMALLEST_BANDWIDTH), LARGEST_BANDWIDTH)


def squared_distances(X: Array, Y: Array) -> Array:
    """|x - y|^2 of all pairs, float64 of shape (n, m), never below 0."""
    X = np.asarray(X, np.float64)
    Y = np.asarray(Y, np.float64)
    squared = (X * X).sum(axis=1)[:, None] + (Y * Y).sum(axis=1)[None, :] - 2 * X @ Y.T
    return np.asarray(np.maximum(squared, 0.0))
