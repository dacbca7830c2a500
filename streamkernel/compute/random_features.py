"""Random features of kernels of any kind: each row by itself, so that its bits do not depend on its company."""

from typing import Any

import numpy as np

from streamkernel.compute.features import cos_sin
from streamkernel.compute.jit import Array, jit, jit_reduction
from streamkernel.compute.laws import exp, log
from streamkernel.compute.vectors import multiply_add, wide

#: Features are cut here: sums of their squares over large mini-batches are finite in float32.
LARGEST_FEATURE = 1e15


@jit
def project(X: Array, W: Array, out: Array) -> None:
    """out = X W, (n, d) times (d, m), in the order of the inputs, without those that are 0."""
    wide()
    for r in range(X.shape[0]):
        row = out[r]
        for i in range(row.shape[0]):
            row[i] = 0.0
        for j in range(X.shape[1]):
            a = X[r, j]
            if a != 0:
                for i in range(row.shape[0]):
                    row[i] = multiply_add(a, W[j, i], row[i])


@jit
def waves(turns: Array, sine: Array, out: Array) -> None:
    """Cosines, then sines, of 2 pi turns (n, m); out is (n, 2 m) and `sine` the polynomial `features.SINE[dtype]`."""
    wide()
    m = turns.shape[1]
    for r in range(turns.shape[0]):
        cos_sin(turns[r], sine, out[r, :m], out[r, m:])


@jit
def decays(out: Array) -> None:
    """exp(-x) in place of every number x, which is at least 0."""
    for r in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[r, i] = exp(-np.float64(out[r, i]))


@jit
def logs(X: Array, c: float, out: Array) -> None:
    """log((x + c) / c) of every number, 0 where x is 0; out has the shape of X."""
    for r in range(X.shape[0]):
        for j in range(X.shape[1]):
            out[r, j] = log(max(np.float64(X[r, j]) / c + 1.0, 1e-30))


@jit
def homogeneous_waves(X: Array, signs: Array, turns: Array, sine: Array, out: Array) -> None:
    """sum_j r_j sqrt(x_j) (cos, sin)(omega log x_j): features of the additive homogeneous kernels.

    - X: Rows of numbers from 0 up, shape (n, d); 0 contributes nothing.
    - signs: r, shape (d, m), of the dtype of X.
    - turns: omega / 2 pi, shape (m,), of the dtype of X.
    - sine: The polynomial, `features.SINE[X.dtype]`.
    - out: Filled; shape (n, 2 m): cosines, then sines.
    """
    wide()
    m = turns.shape[0]
    angles = np.empty(m, X.dtype)
    cosines = np.empty(m, X.dtype)
    sines = np.empty(m, X.dtype)
    for r in range(X.shape[0]):
        for i in range(2 * m):
            out[r, i] = 0.0
        for j in range(X.shape[1]):
            x = X[r, j]
            if x > 0:
                root = np.sqrt(x)
                along = X.dtype.type(log(np.float64(x)))
                for i in range(m):
                    angles[i] = turns[i] * along
                cos_sin(angles, sine, cosines, sines)
                for i in range(m):
                    factor = root * signs[j, i]
                    out[r, i] += factor * cosines[i]
                    out[r, m + i] += factor * sines[i]


@jit_reduction
def _dot(phi: Array, alpha: Array) -> Any:
    wide()
    total = 0.0
    for i in range(phi.shape[0]):
        total += np.float64(phi[i]) * np.float64(alpha[i])
    return total


@jit
def add_parts(phi: Array, alpha: Array, first: int, scores: Array) -> None:
    """Add the products of features and their coefficients to the scores of rows.

    - phi: Features, shape (n, P m): the first number of each draw, then the second of each.
    - alpha: Coefficients, shape (K, P, at least first + m).
    - first: The first draw.
    - scores: Added to, float64 of shape (n, K).
    """
    parts = alpha.shape[1]
    m = phi.shape[1] // parts
    for r in range(phi.shape[0]):
        for o in range(alpha.shape[0]):
            for p in range(parts):
                scores[r, o] += _dot(phi[r, p * m : (p + 1) * m], alpha[o, p, first : first + m])
