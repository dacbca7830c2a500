"""The metric: inputs weighed by how much the prediction changes along them (AGOP, average gradient outer product)."""

import math

import numpy as np

from streamkernel.compute.arrival import FeatureMap, squared_slopes
from streamkernel.compute.gaussians import random_signs
from streamkernel.state import Array

#: No input is forgotten altogether: the least importance, in means.
LEAST = 1e-3
#: Outputs whose slopes are taken; where there are more, random sums of them.
WATCHED = 32
#: What is no finite number counts as this much, which makes all inputs alike.
HUGE = float(np.finfo(np.float64).max)
#: Records whose median distance sets the bandwidth.
NEAREST = 200


def energy(Phi: Array, coefficients: Array, feature_map: FeatureMap) -> Array:
    """Squared slopes of scores along each input, summed over records.

    Parameters
    ----------
    Phi
        AdaptiveFeatures of records, shape (n, D).
    coefficients
        A head's, shape (K, D).
    feature_map
        How the columns were made, with frequencies of slopes.

    Returns
    -------
    float64 of shape (d,), finite.

    """
    K = len(coefficients)
    if K > WATCHED:
        # The mean square of random sums of outputs is the sum of their squares.
        coefficients = np.einsum("sk,kd->sd", random_signs(np.uint64(K), WATCHED, K), coefficients)
    squares = np.empty(len(feature_map.W))
    squared_slopes(
        Phi,
        coefficients,
        feature_map.W.astype(np.float64),
        feature_map.scales.astype(np.float64),
        feature_map.root,
        feature_map.n_linear,
        squares,
    )
    return np.asarray(np.nan_to_num(squares, nan=HUGE, posinf=HUGE))


def importance(energies: Array) -> Array:
    """Squared slopes along each input, (d,), in units of their mean; at least `LEAST`."""
    with np.errstate(over="ignore"):
        mean = energies.mean() if len(energies) else 0.0
    if not 0 < mean < math.inf or energies.max() == HUGE:
        return np.ones(len(energies))
    return np.asarray(np.maximum(energies / mean, LEAST))


def scales_of(important: Array) -> Array:
    """What each input is multiplied by: the root of its importance in units of their mean."""
    return np.asarray(np.sqrt(important / important.mean())) if len(important) else important
