"""Twins of what a record goes through before the experts: scaling and columns."""

import math

import numpy as np

from tests.naive.features import adaptive_columns
from tests.naive.moments import scale


def arrive(values, extras, learned, scaling, feature_map):
    """All rows scaled, their columns, and what every input has observed by now.

    `scaling` is whether to standardize, the limit, which inputs are numbers, and what each had observed before.
    """
    standardize, limit, is_number, observed = scaling
    scaled, observed = scale(values, learned, standardize, limit, is_number, observed)
    W, scales, root, n_linear = feature_map
    X = np.concatenate([scaled, extras], axis=1)
    return X, adaptive_columns(X, W, scales, root, n_linear), observed


def slopes(phi, coefficients, W, scales, root, n_linear):
    """Of the cosines and sines by the chain rule, and of the inputs that are columns."""
    d, F = W.shape
    out = []
    for j in range(d):
        slope = 0.0
        for i in range(F):
            turning = 2 * math.pi * scales[j] * W[j, i]
            slope += turning * (coefficients[F + i] * phi[i] - coefficients[i] * phi[F + i])
        out.append(slope + (coefficients[2 * F + 1 + j] / root if j < n_linear else 0))
    return out


def squared_slopes(Phi, coefficients, W, scales, root, n_linear):
    return sum(np.square(slopes(phi, c, W, scales, root, n_linear)) for phi in Phi for c in coefficients)
