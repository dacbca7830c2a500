"""How records arrive: scaled by running moments, remembered, and turned into the columns the experts live on."""

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


class Window(NamedTuple):
    """A ring of the last scaled rows (n, d), targets (n,) and weights (n,), and how many came: int64 of shape (1,)."""

    rows: Array
    targets: Array
    weights: Array
    seen: Array


@jit
def remember(window: Window, x: Array, target: float, weight: float) -> None:
    """Take a row, (d,), in the place of the oldest."""
    place = window.seen[0] % window.rows.shape[0]
    for j in range(x.shape[0]):
        window.rows[place, j] = x[j]
    window.targets[place] = target
    window.weights[place] = weight
    window.seen[0] += 1


@jit
def arrive(
    values: Array,
    extras: Array,
    targets: Array,
    weights: Array,
    learnt: Array,
    scaling: Scaling,
    feature_map: FeatureMap,
    window: Window,
    Phi: Array,
) -> None:
    """Scale rows, remember those to be learnt, and make columns of all.

    Parameters
    ----------
    values
        Inputs as they came, float64 of shape (n, d); NaN where not observed.
    extras
        Inputs met in these records only, as they enter the features, float64 of shape (n, e).
    targets, weights
        Shape (n,), for the window.
    learnt
        Bool of shape (n,).
    scaling, feature_map, window
        The moments and the window are updated.
    Phi
        Filled: columns, float64 of shape (n, D).

    """
    n, d = values.shape
    X = np.empty((n, d + extras.shape[1]), feature_map.W.dtype)
    scale(
        values,
        learnt,
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
        if learnt[r]:
            remember(window, X[r, :d], targets[r], weights[r])
    adaptive_columns(
        X, feature_map.W, feature_map.scales, feature_map.root, feature_map.n_linear, feature_map.sine, Phi
    )
