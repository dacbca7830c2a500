"""The metric: inputs weighed by how much the prediction changes along them (AGOP, average gradient outer product)."""

import math

import numpy as np

from streamkernel.compute.arrival import FeatureMap
from streamkernel.compute.gaussians import random_signs
from streamkernel.compute.slopes import squared_slopes
from streamkernel.state import Array

#: No input is forgotten altogether: the least importance, in means.
LEAST = 1e-3
#: Outputs whose slopes are taken; where there are more, random sums of them.
WATCHED = 32
#: Records whose median distance sets the bandwidth.
NEAREST = 200


def importance(Phi: Array, coefficients: Array, feature_map: FeatureMap) -> Array:
    """Mean squared slope of scores along each input, in units of their mean; at least `LEAST`.

    Parameters
    ----------
    Phi
        AdaptiveFeatures of records, shape (n, D).
    coefficients
        A head's, shape (K, D).
    feature_map
        How the columns were made.

    Returns
    -------
    float64 of shape (d,).

    """
    K = len(coefficients)
    if K > WATCHED:
        # The mean square of random sums of outputs is the sum of their squares.
        coefficients = np.einsum("sk,kd->sd", random_signs(np.uint64(K), WATCHED, K), coefficients)
    energy = np.empty(len(feature_map.W))
    squared_slopes(
        Phi,
        coefficients,
        feature_map.W.astype(np.float64),
        feature_map.scales.astype(np.float64),
        feature_map.root,
        feature_map.n_linear,
        energy,
    )
    mean = energy.mean() if len(energy) else 0.0
    if not mean > 0 or not math.isfinite(mean):
        return np.ones(len(energy))
    return np.asarray(np.maximum(energy / mean, LEAST))


def scales_of(important: Array) -> Array:
    """What each input is multiplied by: the root of its importance in units of their mean."""
    return np.asarray(np.sqrt(important / important.mean())) if len(important) else important
