"""Twins of the derivatives of the heads along the inputs."""

import math

import numpy as np


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
