"""How records arrive: scaled by running moments, turned into columns, and how scores change along the inputs."""

import math
from typing import NamedTuple

import numpy as np

from streamkernel.compute.features import adaptive_columns
from streamkernel.compute.jit import Array, jit
from streamkernel.compute.moments import scale
from streamkernel.compute.recursive import dot

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

    - values: Inputs as they came, float64 of shape (n, d); NaN where not observed.
    - extras: Inputs met in these records only, as they enter the features, float64 of shape (n, e).
    - learned: Bool of shape (n,): which rows stay in the moments.
    - scaling, feature_map: The moments are updated.
    - X: Filled: the rows scaled, float32 of shape (n, d + e).
    - Phi: Filled: columns, float64 of shape (n, D).
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


@jit
def slopes(
    phi: Array, coefficients: Array, W: Array, scales: Array, root: float, n_linear: int, along: Array, out: Array
) -> None:
    """df / dx_j of f(x) = coefficients . columns(x), at one record.

    - phi: The record's columns, float64 of shape (D,).
    - coefficients: Shape (D,).
    - W, scales, root, n_linear: As `adaptive_columns` has them; W float64 of shape (d, F).
    - along: Room, shape (F,).
    - out: Filled, shape (d,).
    """
    d, F = W.shape
    for i in range(F):
        along[i] = coefficients[F + i] * phi[i] - coefficients[i] * phi[F + i]
    for j in range(d):
        out[j] = 2.0 * math.pi * scales[j] * dot(along, W[j])
    for j in range(n_linear):
        out[j] += coefficients[2 * F + 1 + j] / root


@jit
def squared_slopes(
    Phi: Array, coefficients: Array, W: Array, scales: Array, root: float, n_linear: int, out: Array
) -> None:
    """Squared slopes, (d,), summed over records with columns (n, D) and outputs with coefficients (K, D)."""
    d, F = W.shape
    along, slope = np.empty(F), np.empty(d)
    out[:] = 0.0
    for r in range(Phi.shape[0]):
        for k in range(coefficients.shape[0]):
            slopes(Phi[r], coefficients[k], W, scales, root, n_linear, along, slope)
            for j in range(d):
                out[j] += slope[j] ** 2
