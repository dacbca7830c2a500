"""Paired random features: projection in turns, cosine and sine by one polynomial, sums against coefficients.

Every row takes the same path whether it comes alone or among a thousand, so its bits do not depend on the company.
"""

from typing import Any

import numpy as np

from streamkernel.compute.jit import jit, jit_reduction

Array = np.ndarray[Any, np.dtype[Any]]

TILE = 512  # features projected at a time: a tile of W for tens of inputs stays in the first-level cache


def _sine_coefficients(terms: int) -> Array:
    """Coefficients of sin(2 pi q) / q in q^2 on |q| <= 1/4, highest power first: interpolation at Chebyshev nodes."""
    nodes = 0.5 * (1 + np.cos((2 * np.arange(terms) + 1) * np.pi / (2 * terms))) / 16
    q = np.sqrt(nodes)
    # Solved for q^2 * 16 in [0, 1] and scaled back, which keeps the system well conditioned.
    scaled = np.linalg.solve(np.vander(nodes * 16, terms), np.sin(2 * np.pi * q) / q)
    return np.asarray(scaled * 16.0 ** np.arange(terms - 1, -1, -1))


# As many terms as the dtype can tell apart: 5 leave an error of 4e-9 beside float32's 6e-8, 10 one below 1e-15.
SINE = {
    np.dtype("float32"): _sine_coefficients(5).astype(np.float32),
    np.dtype("float64"): _sine_coefficients(10),
}


@jit
def _cos_sin(turns: Array, sine: Array, cosines: Array, sines: Array) -> None:
    """Cosine and sine of 2 pi turns; `rint` is exact, so that even absurdly many stay within a period."""
    quarter = turns.dtype.type(0.25)
    if sine.shape[0] == 5:
        # Written out: a loop over the coefficients inside the loop over the features would not be vectorised.
        c0, c1, c2, c3, c4 = sine[0], sine[1], sine[2], sine[3], sine[4]
        for i in range(turns.shape[0]):
            t = turns[i]
            r = t - np.rint(t)
            q = quarter - abs(r)
            p = quarter - abs(q)
            q2 = q * q
            p2 = p * p
            cosines[i] = ((((c0 * q2 + c1) * q2 + c2) * q2 + c3) * q2 + c4) * q
            sines[i] = np.copysign(((((c0 * p2 + c1) * p2 + c2) * p2 + c3) * p2 + c4) * p, r)
    else:
        for i in range(turns.shape[0]):
            t = turns[i]
            r = t - np.rint(t)
            q = quarter - abs(r)
            p = quarter - abs(q)
            c = sine[0]
            s = sine[0]
            for j in range(1, sine.shape[0]):
                c = c * q * q + sine[j]
                s = s * p * p + sine[j]
            cosines[i] = c * q
            sines[i] = np.copysign(s * p, r)


@jit
def _project(x: Array, W: Array, first: int, turns: Array) -> None:
    turns[:] = 0
    m = turns.shape[0]
    for j in range(x.shape[0]):
        value = x[j]
        if value != 0:  # one-hot inputs are mostly zeros
            row = W[j, first : first + m]
            for i in range(m):
                turns[i] += value * row[i]


@jit_reduction
def _dot(a: Array, b: Array) -> Any:
    total = a.dtype.type(0)
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@jit
def add_scores(X: Array, W: Array, alpha: Array, sine: Array, scores: Array) -> None:
    """Add sum_k phi_k(x) . alpha_k, without the factor F^-1/2, to every row of `scores`.

    Parameters
    ----------
    X
        Rows, shape (n, d).
    W
        Frequencies in turns, shape (d, blocks * F), of the dtype of X.
    alpha
        Coefficients, shape (blocks, K, 2 F): of each block's F cosines, then its F sines.
    sine
        The polynomial, `SINE[X.dtype]`.
    scores
        Added to, float64 of shape (n, K). The sum goes over the blocks in their order, one after the other.
    """
    n_blocks, n_outputs, width = alpha.shape
    F = width // 2
    per_tile = max(TILE // F, 1)
    turns = np.empty(per_tile * F, X.dtype)
    cosines = np.empty(per_tile * F, X.dtype)
    sines = np.empty(per_tile * F, X.dtype)
    for start in range(0, n_blocks, per_tile):
        stop = min(start + per_tile, n_blocks)
        m = (stop - start) * F
        for r in range(X.shape[0]):
            _project(X[r], W, start * F, turns[:m])
            _cos_sin(turns[:m], sine, cosines[:m], sines[:m])
            for k in range(start, stop):
                at = (k - start) * F
                for o in range(n_outputs):
                    scores[r, o] += _dot(cosines[at : at + F], alpha[k, o, :F]) + _dot(
                        sines[at : at + F], alpha[k, o, F:]
                    )


@jit
def paired_features(X: Array, W: Array, first: int, sine: Array, out: Array) -> None:
    """phi(x) = F^-1/2 [cos, sin] of the F features from column `first` of W on, for every row; out is (n, 2 F)."""
    F = out.shape[1] // 2
    turns = np.empty(F, X.dtype)
    norm = X.dtype.type(1 / np.sqrt(F))
    for r in range(X.shape[0]):
        _project(X[r], W, first, turns)
        _cos_sin(turns, sine, out[r, :F], out[r, F:])
        for i in range(2 * F):
            out[r, i] *= norm


@jit
def adaptive_columns(X: Array, W: Array, scales: Array, root: float, n_linear: int, sine: Array, out: Array) -> None:
    """[cos, sin] F^-1/2 of the scaled inputs, 1, and the first inputs themselves over a root.

    Parameters
    ----------
    X
        Rows, float32 of shape (n, d).
    W
        Frequencies in turns, float32 of shape (d, F).
    scales
        What each input is multiplied by before it is projected, float32 of shape (d,).
    root
        The divisor of the inputs themselves.
    n_linear
        How many of these there are.
    sine
        The polynomial, `SINE[X.dtype]`.
    out
        Filled; float64 of shape (n, 2 F + 1 + n_linear).
    """
    F = W.shape[1]
    turns = np.empty(F, X.dtype)
    scaled = np.empty(X.shape[1], X.dtype)
    norm = 1 / np.sqrt(F)
    for r in range(X.shape[0]):
        row = out[r]
        for j in range(X.shape[1]):
            scaled[j] = X[r, j] * scales[j]
        _project(scaled, W, 0, turns)
        _cos_sin(turns, sine, row[:F], row[F : 2 * F])
        for i in range(2 * F):
            row[i] *= norm
        row[2 * F] = 1.0
        for j in range(n_linear):
            row[2 * F + 1 + j] = X[r, j] / root


@jit
def mean_outer(phi: Array, g: Array, out: Array) -> None:
    """G = (1/B) sum_i g_i phi_i, float64 of shape (K, 2 F), from phi (B, 2 F) and g (B, K); row by row, in order."""
    out[:] = 0
    n = phi.shape[0]
    for i in range(n):
        for o in range(g.shape[1]):
            factor = g[i, o] / n
            if factor != 0:
                row = out[o]
                for j in range(phi.shape[1]):
                    row[j] += factor * phi[i, j]


@jit
def largest_eigenvalue(A: Array) -> Any:
    """The largest eigenvalue of a symmetric positive semi-definite matrix, by power iteration to a relative 1e-6."""
    n = A.shape[0]
    v = np.full(n, 1 / np.sqrt(n))
    w = np.empty(n)
    value = 0.0
    for _ in range(200):
        norm = 0.0
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += A[i, j] * v[j]
            w[i] = total
            norm += total * total
        norm = np.sqrt(norm)
        if norm == 0:
            return 0.0
        v[:] = w / norm
        if abs(norm - value) <= 1e-6 * norm:
            return norm
        value = norm
    return value
