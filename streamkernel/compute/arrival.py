"""How records arrive: scaled by running moments, and turned into the columns the experts live on."""

from typing import Any, NamedTuple

import numpy as np

from streamkernel.compute.features import adaptive_columns
from streamkernel.compute.jit import jit
from streamkernel.compute.moments import scale

Array = np.ndarray[Any, np.dtype[Any]]

#: Records that go through everything before the next ones do: their columns stay in the second-level cache.
BLOCK = 64


class Scaling(NamedTuple):
    """Moments of the inputs, as `scale` has them, and whether numbers are scaled by them or clipped only."""

    standardize: bool
    limit: float
    is_number: Array
    moments: Array


class FeatureMap(NamedTuple):
    """How scaled inputs become columns, as `adaptive_columns` has it."""

    W: Array
    scales: Array
    root: float
    n_linear: int
    sine: Array


@jit
def arrive(
    values: Array,
    extras: Array,
    learned: Array,
    scaling: Scaling,
    feature_map: FeatureMap,
    X: Array,
    Phi: Array,
) -> None:
    """Scale rows and make columns of them.

    Parameters
    ----------
    values
        Inputs as they came, float64 of shape (n, d); NaN where not observed.
    extras
        Inputs met in these records only, as they enter the features, float64 of shape (n, e).
    learned
        Bool of shape (n,): which rows stay in the moments.
    scaling, feature_map
        The moments are updated.
    X
        Filled: the rows scaled, float32 of shape (n, d + e).
    Phi
        Filled: columns, float64 of shape (n, D).

    """
    n, d = values.shape
    scale(
        values,
        learned,
        scaling.standardize,
        scaling.limit,
        scaling.is_number,
        scaling.moments,
        0,
        X,
    )
    for r in range(n):
        for j in range(extras.shape[1]):
            X[r, d + j] = extras[r, j]
    adaptive_columns(
        X, feature_map.W, feature_map.scales, feature_map.root, feature_map.n_linear, feature_map.sine, Phi
    )
