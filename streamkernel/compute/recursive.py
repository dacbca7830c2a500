"""Recursive least squares on half a matrix: P is symmetric, and only its lower triangle is read and written."""

from typing import Any

import numpy as np

from streamkernel.compute.jit import jit, jit_reduction

Array = np.ndarray[Any, np.dtype[Any]]


@jit_reduction
def _four_rows(
    r0: Array, r1: Array, r2: Array, r3: Array, x0: float, x1: float, x2: float, x3: float, x: Array, v: Array
) -> Any:
    """Four rows of the triangle, used twice: their sums with x, and their share in the entries above the diagonal.

    Four at a time, so that x and v are read, and v written, a quarter as often.
    """
    s0 = s1 = s2 = s3 = 0.0
    for j in range(r0.shape[0]):
        s0 += r0[j] * x[j]
        s1 += r1[j] * x[j]
        s2 += r2[j] * x[j]
        s3 += r3[j] * x[j]
        v[j] += r0[j] * x0 + r1[j] * x1 + r2[j] * x2 + r3[j] * x3
    return s0, s1, s2, s3


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


@jit
def symmetric_product(P: Array, x: Array, v: Array) -> None:
    """v = P x of a symmetric matrix of which only the lower triangle is read."""
    n = x.shape[0]
    v[:] = 0.0
    for i in range(0, n, 4):
        last = min(i + 4, n)
        if last == i + 4:
            s0, s1, s2, s3 = _four_rows(
                P[i, :i], P[i + 1, :i], P[i + 2, :i], P[i + 3, :i], x[i], x[i + 1], x[i + 2], x[i + 3], x, v
            )
            v[i] += s0
            v[i + 1] += s1
            v[i + 2] += s2
            v[i + 3] += s3
        else:
            for a in range(i, last):
                for b in range(i):
                    v[a] += P[a, b] * x[b]
                    v[b] += P[a, b] * x[a]
        for a in range(i, last):
            for b in range(i, a):
                v[a] += P[a, b] * x[b]
                v[b] += P[a, b] * x[a]
            v[a] += P[a, a] * x[a]


@jit
def downdate(P: Array, v: Array, factor: float) -> None:
    """P -= factor v v^T, on the lower triangle."""
    for i in range(v.shape[0]):
        _subtract(P[i, : i + 1], factor * v[i], v)


@jit
def learn_least_squares(
    P: Array, W: Array, phi: Array, errors: Array, weight: float, drift: float, largest: float, v: Array
) -> None:
    """One record of recursive least squares whose coefficients drift.

    Parameters
    ----------
    P
        (Phi^T Phi + rho I)^-1 so far, float64 of shape (D, D), lower triangle; updated.
    W
        Coefficients, float64 of shape (K, D); updated.
    phi
        The record's columns, float64 of shape (D,).
    errors
        Target minus score of each output, before this record; shape (K,).
    weight
        The record's weight, above 0.
    drift
        q, added to the diagonal of P after the record.
    largest
        1 / rho, which the diagonal never exceeds.
    v
        Room for P phi, shape (D,).
    """
    symmetric_product(P, phi, v)
    gain = 1.0 / (1.0 / weight + dot(phi, v))
    for k in range(W.shape[0]):
        _subtract(W[k], -errors[k] * gain, v)
    downdate(P, v, gain)
    for i in range(v.shape[0]):
        P[i, i] = min(P[i, i] + drift, largest)


@jit
def learn_newton(
    P: Array, W: Array, phi: Array, p: Array, label: int, weight: float, forgetting: float, rho: float, v: Array
) -> None:
    """One record of softmax regression by Newton steps on one curvature for all classes.

    Parameters
    ----------
    P
        The inverse curvature, float64 of shape (D, D), lower triangle; updated.
    W
        Coefficients, float64 of shape (K, D); updated.
    phi
        The record's columns, float64 of shape (D,).
    p
        Its probabilities before it is learnt, shape (K,).
    label
        Its class.
    weight
        The record's weight, above 0.
    forgetting
        lambda, 1 for none. Below 1 the trace of P is held at or below D / rho.
    rho
        The ridge.
    v
        Room for P phi, shape (D,).
    """
    D = v.shape[0]
    K = W.shape[0]
    curvature = 0.0
    for k in range(K):
        curvature += p[k] * (1.0 - p[k])
    curvature = weight * max(curvature / K, 0.02)
    symmetric_product(P, phi, v)
    gain = 1.0 / (forgetting + curvature * dot(phi, v))
    for k in range(K):
        error = p[k] - (1.0 if k == label else 0.0)
        _subtract(W[k], weight * error * gain, v)
    downdate(P, v, curvature * gain)
    if forgetting < 1.0:
        trace = 0.0
        for i in range(D):
            trace += P[i, i] / forgetting
        scale = min(1.0, D / rho / trace) / forgetting
        for i in range(D):
            for j in range(i + 1):
                P[i, j] *= scale
