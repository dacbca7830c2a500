"""Recursive least squares on half a matrix: P is symmetric, and only its lower triangle is read and written."""

from typing import Any

import numpy as np

from streamkernel.compute.jit import Array, jit, jit_reduction
from streamkernel.compute.packed import settled_products
from streamkernel.compute.vectors import multiply_add

#: What of a diagonal is rounding, in parts of its bound.
_ROUNDING = 1e-14


@jit_reduction
def _subtract(row: Array, factor: float, v: Array) -> None:
    for j in range(row.shape[0]):
        row[j] -= factor * v[j]


@jit_reduction
def dot(a: Array, b: Array) -> Any:
    """<a, b>, float64."""
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@jit_reduction
def symmetric_product(P: Array, deferred: Array | None, largest: float, x: Array, v: Array) -> None:
    """v = P x of a symmetric matrix, which first takes what it is deferred: one pass over its lower triangle.

    - P: float64 of shape (D, D), lower triangle, its diagonal at or below `largest`; updated if anything is deferred.
    - deferred: Of shape (D + 2,): u, gain and q of the least squares record learned last. P -= gain u u^T is due, and
      then q on the diagonal. Zeros, or None, where nothing is; None spares the writing.
    - largest: What the diagonal never exceeds.
    - x: Shape (D,).
    - v: Filled, shape (D,).
    """
    n = x.shape[0]
    u = x if deferred is None else deferred
    gain = 0.0 if deferred is None else deferred[n]
    drift = 0.0 if deferred is None else deferred[n + 1]
    # Four rows at a time, so that u, x and v are read, and v written, a quarter as often. Their block on the diagonal
    # is written out: loops this short cost more than they do.
    whole = n - n % 4
    for i in range(0, whole, 4):
        r0, r1, r2, r3 = P[i], P[i + 1], P[i + 2], P[i + 3]
        x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
        g0, g1, g2, g3 = gain * u[i], gain * u[i + 1], gain * u[i + 2], gain * u[i + 3]
        d0, d1, d2, d3 = r0[i], r1[i + 1], r2[i + 2], r3[i + 3]
        p10, p20, p21, p30, p31, p32 = r1[i], r2[i], r2[i + 1], r3[i], r3[i + 1], r3[i + 2]
        if deferred is not None:
            d0 = min(d0 - g0 * u[i] + drift, largest)
            d1 = min(d1 - g1 * u[i + 1] + drift, largest)
            d2 = min(d2 - g2 * u[i + 2] + drift, largest)
            d3 = min(d3 - g3 * u[i + 3] + drift, largest)
            p10 -= g1 * u[i]
            p20 -= g2 * u[i]
            p21 -= g2 * u[i + 1]
            p30 -= g3 * u[i]
            p31 -= g3 * u[i + 1]
            p32 -= g3 * u[i + 2]
            r0[i], r1[i + 1], r2[i + 2], r3[i + 3] = d0, d1, d2, d3
            r1[i], r2[i], r2[i + 1], r3[i], r3[i + 1], r3[i + 2] = p10, p20, p21, p30, p31, p32
        s0 = d0 * x0 + p10 * x1 + p20 * x2 + p30 * x3
        s1 = p10 * x0 + d1 * x1 + p21 * x2 + p31 * x3
        s2 = p20 * x0 + p21 * x1 + d2 * x2 + p32 * x3
        s3 = p30 * x0 + p31 * x1 + p32 * x2 + d3 * x3
        for j in range(i):
            p0, p1, p2, p3 = r0[j], r1[j], r2[j], r3[j]
            if deferred is not None:
                p0 -= g0 * u[j]
                p1 -= g1 * u[j]
                p2 -= g2 * u[j]
                p3 -= g3 * u[j]
                r0[j], r1[j], r2[j], r3[j] = p0, p1, p2, p3
            s0 += p0 * x[j]
            s1 += p1 * x[j]
            s2 += p2 * x[j]
            s3 += p3 * x[j]
            v[j] += p0 * x0 + p1 * x1 + p2 * x2 + p3 * x3
        v[i], v[i + 1], v[i + 2], v[i + 3] = s0, s1, s2, s3
    for i in range(whole, n):
        r0, x0, g0, d0 = P[i], x[i], gain * u[i], P[i, i]
        if deferred is not None:
            d0 = min(d0 - g0 * u[i] + drift, largest)
            r0[i] = d0
        s0 = d0 * x0
        for j in range(i):
            p0 = r0[j]
            if deferred is not None:
                p0 -= g0 * u[j]
                r0[j] = p0
            s0 += p0 * x[j]
            v[j] += p0 * x0
        v[i] = s0


@jit
def apply_deferred(P: Array, deferred: Array, largest: float) -> None:
    """Apply the deferred update of P, to the bits with which the next record would have found it."""
    n = deferred.shape[0] - 2
    symmetric_product(P, deferred, largest, np.zeros(n), np.empty(n))
    deferred[:] = 0.0


@jit_reduction
def downdate(P: Array, v: Array, factor: float, scale: float) -> None:
    """P = scale (P - factor v v^T), on the lower triangle."""
    for i in range(v.shape[0]):
        row = P[i]
        share = factor * v[i]
        for j in range(i + 1):
            row[j] = scale * (row[j] - share * v[j])


@jit
def _absorb(W: Array, phi: Array, errors: Array, weight: float, v: Array) -> Any:
    """The coefficients take a record of least squares, given v = P phi; returns its gain."""
    gain = 1.0 / (1.0 / weight + dot(phi, v))
    for k in range(W.shape[0]):
        _subtract(W[k], -errors[k] * gain, v)
    return gain


@jit
def learn_least_squares(
    P: Array, W: Array, phi: Array, errors: Array, weight: float, drift: float, largest: float, v: Array
) -> None:
    """One record of recursive least squares whose coefficients drift.

    - P: (Phi^T Phi + rho I)^-1 so far, float64 of shape (D, D), lower triangle; updated.
    - W: Coefficients, float64 of shape (K, D); updated.
    - phi: The record's columns, float64 of shape (D,).
    - errors: Target minus score of each output, before this record; shape (K,).
    - weight: The record's weight, above 0.
    - drift: q, added to the diagonal of P after the record.
    - largest: 1 / rho, which the diagonal never exceeds.
    - v: Room for P phi, shape (D,).
    """
    symmetric_product(P, None, largest, phi, v)
    downdate(P, v, _absorb(W, phi, errors, weight, v), 1.0)
    for i in range(v.shape[0]):
        P[i, i] = min(P[i, i] + drift, largest)


@jit
def late_product(late: Array, n_late: int, diagonals: Array, x: Array, v: Array) -> None:
    """v = P x of a packed matrix from which some outer products, and on whose diagonal some drift, are still due.

    - late: Vectors c whose c c^T are due, the first `n_late` of (8, padded D).
    - diagonals: Of shape (2, D): the diagonal of P, and what the matrix and the products alone would make it.
    - x: Shape (padded D,).
    - v: The product of the matrix, as `settled_products` gives it, shape (padded D,); updated.
    """
    for m in range(n_late):
        _subtract(v, dot(late[m], x), late[m])
    for i in range(diagonals.shape[1]):
        v[i] += (diagonals[0, i] - diagonals[1, i]) * x[i]


@jit
def move_diagonal(c: Array, drift: float, largest: float, diagonals: Array) -> None:
    """P -= c c^T, then P_ii = min(P_ii + drift, largest), of the diagonals as `late_product` has them alone."""
    for i in range(diagonals.shape[1]):
        diagonals[0, i] = min(multiply_add(-c[i], c[i], diagonals[0, i]) + drift, largest)
        diagonals[1, i] = multiply_add(-c[i], c[i], diagonals[1, i])


@jit
def settle(tiles: Array, late: Array, diagonals: Array) -> None:
    """Let a packed matrix take what is due."""
    settled_products(tiles, True, late, diagonals, late, late, 0)


@jit
def sound_gain(spread: float, weight: float, diagonal: Array, largest: float, v: Array) -> Any:
    """The gain of a record, 1 / (1 / weight + spread), or less where rounding has left P not quite positive.

    A positive P has v_i^2 <= P_ii x.v for each v = P x. Where that is not so, a gain as large would make P less
    positive, by more with each record; one that leaves no P_ii below 0, but for rounding, does not.

    - spread: x.v; where it is not above 0, v is rounding alone, and nothing is gained.
    - weight: The record's weight, above 0.
    - diagonal, largest: P_ii, shape (D,), and their bound.
    - v: P x, of shape (D,) or more.
    """
    if not spread > 0:
        return 0.0
    beyond, least = np.uint8(0), _ROUNDING * largest
    for i in range(diagonal.shape[0]):  # in bytes, so that the compiler takes vectors
        beyond = np.uint8(beyond | np.uint8(v[i] * v[i] > (diagonal[i] + least) * spread))
    if beyond:
        for i in range(diagonal.shape[0]):
            spread = max(spread, v[i] * v[i] / max(diagonal[i], least))
    return 1.0 / (1.0 / weight + spread)


@jit
def learn_soundly(
    P: Array, W: Array, phi: Array, errors: Array, weight: float, drift: float, largest: float, room: Array
) -> None:
    """As `learn_least_squares`, of a P that rounding may have left not quite positive; room has shape (2, D)."""
    v, diagonal = room[0], room[1]
    symmetric_product(P, None, largest, phi, v)
    for i in range(v.shape[0]):
        diagonal[i] = P[i, i]
    gain = sound_gain(dot(phi, v), weight, diagonal, largest, v)
    for k in range(W.shape[0]):
        _subtract(W[k], -errors[k] * gain, v)
    downdate(P, v, gain, 1.0)
    for i in range(v.shape[0]):
        P[i, i] = min(P[i, i] + drift, largest)


@jit
def learn_least_squares_late(
    W: Array,
    late: Array,
    n_late: int,
    diagonals: Array,
    x: Array,
    errors: Array,
    weight: float,
    drift: float,
    largest: float,
    v: Array,
) -> None:
    """As `learn_least_squares`, but only every eighth record changes a packed P, by all that is due then.

    So a large P is read and written once in eight records, where these come together.

    - late, n_late, diagonals: As `late_product` has them; updated, but for the number, which is one more after each
      record. After 8 the matrix is to be settled.
    - W, errors, weight, drift, largest: As `learn_least_squares` has them.
    - x, v: The record's columns, and its product, as `late_product` has them, shape (padded D,); the latter is updated.
    """
    late_product(late, n_late, diagonals, x, v)
    gain = sound_gain(dot(x, v), weight, diagonals[0], largest, v)
    for k in range(W.shape[0]):
        _subtract(W[k], -errors[k] * gain, v)
    root = np.sqrt(gain)
    for i in range(v.shape[0]):
        late[n_late, i] = root * v[i]
    move_diagonal(late[n_late], drift, largest, diagonals)


@jit
def learn_newton(
    P: Array, W: Array, phi: Array, p: Array, label: int, weight: float, forgetting: float, rho: float, v: Array
) -> None:
    """One record of softmax regression by Newton steps on one curvature for all classes.

    - P: The inverse curvature, float64 of shape (D, D), lower triangle; updated.
    - W: Coefficients, float64 of shape (K, D); updated.
    - phi: The record's columns, float64 of shape (D,).
    - p: Its probabilities before it is learned, shape (K,).
    - label: The column of the record's class.
    - weight: The record's weight, above 0.
    - forgetting: lambda, 1 for none. Below 1 the trace of P is held at or below D / rho.
    - rho: The ridge.
    - v: Room for P phi, shape (D,).
    """
    D = v.shape[0]
    K = W.shape[0]
    curvature = 0.0
    for k in range(K):
        curvature += p[k] * (1.0 - p[k])
    curvature = weight * max(curvature / K, 0.02)
    symmetric_product(P, None, np.inf, phi, v)
    gain = 1.0 / (forgetting + curvature * dot(phi, v))
    for k in range(K):
        error = p[k] - (1.0 if k == label else 0.0)
        _subtract(W[k], weight * error * gain, v)
    scale = 1.0
    if forgetting < 1.0:
        trace = 0.0
        for i in range(D):
            trace += P[i, i] - curvature * gain * v[i] * v[i]
        scale = min(1.0 / forgetting, D / rho / trace)
    downdate(P, v, curvature * gain, scale)
