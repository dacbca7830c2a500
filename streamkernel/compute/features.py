"""Paired random features: projection in turns, cosine and sine by one polynomial, sums against coefficients.

Every row takes the same path whether it comes alone or among a thousand, so its bits do not depend on the company.

Records arrive scaled by running moments, are turned into columns, and scores change along the inputs.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from streamkernel.compute.jit import Array, jit, jit_reduction
from streamkernel.compute.moments import scale
from streamkernel.compute.recursive import dot
from streamkernel.compute.vectors import copysign, multiply_add, rint, wide

TILE = 512  # features projected at a time: a tile of W for tens of inputs stays in the first-level cache
#: Inputs that are columns themselves are clipped here: the square of a larger one is past what least squares in float64
#: can take back from 1 / ridge.
LINEAR_LIMIT = 1e6
# Of more inputs than this some rows at a time share as many rows of a tile, copied to lie close to each other.
_INPUTS = 64
_AT_ONCE = 32


def _sine_coefficients(terms: int) -> Array:
    """Coefficients of sin(2 pi q) / q in q^2 on |q| <= 1/4, highest power first: interpolation at Chebyshev nodes."""
    nodes = 0.5 * (1 + np.cos((2 * np.arange(terms) + 1) * np.pi / (2 * terms))) / 16
    q = np.sqrt(nodes)
    # Solved for q^2 * 16 in [0, 1] and scaled back, which keeps the system well conditioned.
    scaled = np.linalg.solve(np.vander(nodes * 16, terms), np.sin(2 * np.pi * q) / q)
    return np.asarray(scaled * 16.0 ** np.arange(terms - 1, -1, -1))


# As many terms as the dtype can tell apart: 5 leave an error of 4e-9, under float32's 6e-8, 10 one below 1e-15.
SINE = {
    np.dtype("float32"): _sine_coefficients(5).astype(np.float32),
    np.dtype("float64"): _sine_coefficients(10),
}


@jit
def cos_sin(turns: Array, sine: Array, cosines: Array, sines: Array) -> None:
    """Cosine and sine of 2 pi turns; `rint` is exact, so that even absurdly many stay within a period."""
    wide()
    quarter = turns.dtype.type(0.25)
    if sine.shape[0] == 5:
        # Written out: a loop over the coefficients inside the loop over the features would not be vectorized.
        c0, c1, c2, c3, c4 = sine[0], sine[1], sine[2], sine[3], sine[4]
        for i in range(turns.shape[0]):
            t = turns[i]
            r = t - rint(t)
            q = quarter - abs(r)
            p = quarter - abs(q)
            q2 = q * q
            p2 = p * p
            c = multiply_add(multiply_add(multiply_add(c0, q2, c1), q2, c2), q2, c3)
            s = multiply_add(multiply_add(multiply_add(c0, p2, c1), p2, c2), p2, c3)
            cosines[i] = multiply_add(c, q2, c4) * q
            sines[i] = copysign(multiply_add(s, p2, c4) * p, r)
    else:
        for i in range(turns.shape[0]):
            t = turns[i]
            r = t - rint(t)
            q = quarter - abs(r)
            p = quarter - abs(q)
            c = sine[0]
            s = sine[0]
            for j in range(1, sine.shape[0]):
                c = multiply_add(c, q * q, sine[j])
                s = multiply_add(s, p * p, sine[j])
            cosines[i] = c * q
            sines[i] = copysign(s * p, r)


@jit
def observed(x: Array, columns: Array) -> int:
    """The columns of a row that are not 0, as one-hot inputs mostly are; how many."""
    n = 0
    for j in range(x.shape[0]):
        if x[j] != 0:
            columns[n] = j
            n += 1
    return n


@jit
def project_columns(x: Array, columns: Array, W: Array, above: int, first: int, turns: Array) -> None:
    """Add x W over some columns, one after the other, to `turns`; `above` rows of W, the first ones, are left out.

    Four at a time change no bit and spare three quarters of the traffic.
    """
    wide()
    n, m = columns.shape[0], turns.shape[0]
    fours = n - n % 4
    for k in range(0, fours, 4):
        a, b, c, d = x[columns[k]], x[columns[k + 1]], x[columns[k + 2]], x[columns[k + 3]]
        A = W[columns[k] - above, first : first + m]
        B = W[columns[k + 1] - above, first : first + m]
        C = W[columns[k + 2] - above, first : first + m]
        D = W[columns[k + 3] - above, first : first + m]
        for i in range(m):
            turns[i] = multiply_add(
                d, D[i], multiply_add(c, C[i], multiply_add(b, B[i], multiply_add(a, A[i], turns[i])))
            )
    for k in range(fours, n):
        a = x[columns[k]]
        A = W[columns[k] - above, first : first + m]
        for i in range(m):
            turns[i] = multiply_add(a, A[i], turns[i])


@jit
def _project_some(
    X: Array, columns: Array, ends: Array, W: Array, first: int, m: int, strip: Array, turns: Array
) -> None:
    """turns (n, :m) = X W of some rows, whose observed columns end at `ends`, with the bits of each row alone."""
    wide()
    n = X.shape[0]
    turns[:] = 0
    begins = np.zeros(n, np.int64)
    for above in range(0, X.shape[1], strip.shape[0]):
        below = min(above + strip.shape[0], X.shape[1])
        for j in range(above, below):
            for i in range(m):  # assigning a slice takes much longer to compile
                strip[j - above, i] = W[j, first + i]
        for r in range(n):
            k = begins[r]
            while k < ends[r] and columns[r, k] < below:
                k += 1
            project_columns(X[r], columns[r, begins[r] : k], strip, above, 0, turns[r, :m])
            begins[r] = k


@jit_reduction
def _dot_pairs(cosines: Array, sines: Array, a: Array, b: Array) -> Any:
    wide()
    total = a.dtype.type(0)
    for i in range(a.shape[0]):
        total += cosines[i] * a[i] + sines[i] * b[i]
    return total


@jit
def add_tile(turns: Array, alpha: Array, first: int, sine: Array, cosines: Array, sines: Array, scores: Array) -> None:
    """Add what a tile of features says of one row to its scores (K,).

    - turns: The row projected, shape (m,).
    - alpha: Coefficients, shape (K, 2, at least first + m): of the cosines, then of the sines.
    - first: The tile's first feature.
    - sine: The polynomial, `SINE[turns.dtype]`.
    - cosines, sines: Room to work in, shape (m,) or more.
    - scores: Added to, float64.
    """
    wide()
    m = turns.shape[0]
    cos_sin(turns, sine, cosines, sines)
    for o in range(scores.shape[0]):
        scores[o] += _dot_pairs(cosines, sines, alpha[o, 0, first : first + m], alpha[o, 1, first : first + m])


@jit
def add_projected(turns: Array, alpha: Array, first: int, sine: Array, scores: Array) -> None:
    """Add what a tile says of rows that are projected already, turns (n, m), to their scores (n, K)."""
    wide()
    cosines = np.empty(turns.shape[1], turns.dtype)
    sines = np.empty(turns.shape[1], turns.dtype)
    for r in range(turns.shape[0]):
        add_tile(turns[r], alpha, first, sine, cosines, sines, scores[r])


@jit
def add_scores(X: Array, W: Array, alpha: Array, first: int, n_features: int, sine: Array, scores: Array) -> None:
    """Add sum_k phi_k(x) . alpha_k, without the factor F^-1/2, to every row of `scores`.

    - X: Rows, shape (n, d).
    - W: Frequencies in turns of the features from `first` on, shape (d, at least n_features), of the dtype of X.
    - alpha: Coefficients, shape (K, 2, at least first + n_features): of the cosines, then of the sines.
    - first, n_features: The features to add; `first` is a multiple of `TILE`.
    - sine: The polynomial, `SINE[X.dtype]`.
    - scores: Added to, float64 of shape (n, K), tile by tile.
    """
    wide()
    at_once = _AT_ONCE if X.shape[1] > _INPUTS and X.shape[0] >= 8 else 1
    strip = np.empty((_INPUTS if at_once > 1 else 0, TILE), W.dtype)
    turns = np.empty((at_once, TILE), X.dtype)
    cosines = np.empty(TILE, X.dtype)
    sines = np.empty(TILE, X.dtype)
    columns = np.empty(X.shape, np.int64)
    ends = np.empty(X.shape[0], np.int64)
    for r in range(X.shape[0]):
        ends[r] = observed(X[r], columns[r])
    for start in range(0, n_features, TILE):
        m = min(TILE, n_features - start)
        for begin in range(0, X.shape[0], at_once):
            end = min(begin + at_once, X.shape[0])
            if at_once > 1:
                _project_some(X[begin:end], columns[begin:end], ends[begin:end], W, start, m, strip, turns)
            else:
                turns[0] = 0
                project_columns(X[begin], columns[begin, : ends[begin]], W, 0, start, turns[0, :m])
            for r in range(begin, end):
                add_tile(turns[r - begin, :m], alpha, first + start, sine, cosines, sines, scores[r])


@jit
def paired_features(X: Array, W: Array, first: int, sine: Array, out: Array) -> None:
    """phi(x) = F^-1/2 [cos, sin] of the F features from column `first` of W on, for every row; out is (n, 2 F)."""
    wide()
    F = out.shape[1] // 2
    turns = np.empty(F, X.dtype)
    columns = np.empty(X.shape[1], np.int64)
    norm = X.dtype.type(1 / np.sqrt(F))
    for r in range(X.shape[0]):
        turns[:] = 0
        project_columns(X[r], columns[: observed(X[r], columns)], W, 0, first, turns)
        cos_sin(turns, sine, out[r, :F], out[r, F:])
        for i in range(2 * F):
            out[r, i] *= norm


@jit
def adaptive_columns(X: Array, W: Array, scales: Array, root: float, n_linear: int, sine: Array, out: Array) -> None:
    """[cos, sin] F^-1/2 of the scaled inputs, 1, and the first inputs themselves over a root, clipped.

    - X: Rows, float32 of shape (n, d).
    - W: Frequencies in turns, float32 of shape (d, F).
    - scales: What each input is multiplied by before it is projected, float32 of shape (d,).
    - root: The divisor of the inputs themselves.
    - n_linear: How many of these there are.
    - sine: The polynomial, `SINE[X.dtype]`.
    - out: Filled; float64 of shape (n, 2 F + 1 + n_linear).
    """
    F = W.shape[1]
    turns = np.empty(F, X.dtype)
    scaled = np.empty(X.shape[1], X.dtype)
    columns = np.empty(X.shape[1], np.int64)
    norm = 1 / np.sqrt(F)
    for r in range(X.shape[0]):
        row = out[r]
        for j in range(X.shape[1]):
            scaled[j] = X[r, j] * scales[j]
        turns[:] = 0
        project_columns(scaled, columns[: observed(scaled, columns)], W, 0, 0, turns)
        cos_sin(turns, sine, row[:F], row[F : 2 * F])
        for i in range(2 * F):
            row[i] *= norm
        row[2 * F] = 1.0
        for j in range(n_linear):
            row[2 * F + 1 + j] = min(max(X[r, j] / root, -LINEAR_LIMIT), LINEAR_LIMIT)


@jit
def column_means(g: Array) -> Array:
    """The mean row of g (B, K), row by row, in order."""
    out = np.zeros(g.shape[1])
    for i in range(g.shape[0]):
        for o in range(g.shape[1]):
            out[o] += g[i, o] / g.shape[0]
    return out


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
        for i in range(n):
            v[i] = w[i] / norm
        if abs(norm - value) <= 1e-6 * norm:
            return norm
        value = norm
    return value


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
