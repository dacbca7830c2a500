"""The losses and the elastic net of the window solvers: values, derivatives, conjugates, dual and proximal steps.

A loss has a number here. `y` is the number that squared loss fits, for the others a label of -1 or 1; `beta`
is the dual variable of a record, an element of the domain of the loss's conjugate.

The primal-dual gap is a sum of what is never negative: it stays exact where both objectives' digits cancel.
"""

from typing import Any

import numpy as np

from streamkernel.compute.jit import Array, jit, jit_reduction
from streamkernel.compute.vectors import wide

SQUARED, LOGISTIC, SMOOTH_HINGE, SQUARED_HINGE = range(4)

# A share of so little is none: its logarithm is finite, and times itself 0.
_LEAST = 1e-300
# The largest number below 1.
_MOST = 1.0 - 2.0**-53


@jit
def loss_value(kind: int, z: float, y: float) -> Any:
    """phi(z), the loss of a score z."""
    if kind == SQUARED:
        return 0.5 * (z - y) ** 2
    u = y * z
    if kind == LOGISTIC:
        return np.log1p(np.exp(-u)) if u > 0.0 else np.log1p(np.exp(u)) - u
    missing = max(1.0 - u, 0.0)
    if kind == SMOOTH_HINGE and missing > 1.0:
        return missing - 0.5
    return 0.5 * missing * missing


@jit
def loss_derivative(kind: int, z: float, y: float) -> Any:
    """phi'(z)."""
    if kind == SQUARED:
        return z - y
    u = y * z
    if kind == LOGISTIC:
        return -y / (1.0 + np.exp(u)) if u < 0.0 else -y * np.exp(-u) / (1.0 + np.exp(-u))
    missing = max(1.0 - u, 0.0)
    if kind == SMOOTH_HINGE:
        missing = min(missing, 1.0)
    return -y * missing


@jit
def loss_conjugate(kind: int, beta: float, y: float) -> Any:
    """phi*(beta) = sup_z (z beta - phi(z)), infinite outside its domain."""
    if kind == SQUARED:
        return beta * (y + 0.5 * beta)
    a = -y * beta
    if a < 0.0 or (a > 1.0 and kind != SQUARED_HINGE):
        return np.inf
    if kind == LOGISTIC:
        entropy = a * np.log(max(a, _LEAST))
        if a < 1.0:
            entropy += (1.0 - a) * np.log1p(-a)
        return entropy
    return a * (0.5 * a - 1.0)


@jit
def dual_update(kind: int, beta: float, z: float, y: float, step: float) -> Any:
    """The maximizer over b of z b - phi*(b) - (b - beta)^2 / (2 step): a proximal step of the dual variable."""
    if kind == SQUARED:
        return (beta + step * (z - y)) / (1.0 + step)
    a = -y * beta
    u = y * z
    if kind == LOGISTIC:
        return -y * _logistic_share(a, u, step)
    a = max((a + step * (1.0 - u)) / (1.0 + step), 0.0)
    if kind == SMOOTH_HINGE:
        a = min(a, 1.0)
    return -y * a


@jit
def _logistic_share(a: float, u: float, step: float) -> Any:
    """The root in (0, 1) of log(s / (1 - s)) + u + (s - a) / step, by Newton's method between two bounds.

    In t = log(s / (1 - s)) the slope is at least 1, and the root lies between where s = a and t = -u. Where Newton's
    steps do not halve, as between two flat ends of the share, the bounds are halved instead.
    """
    a = min(max(a, _LEAST), _MOST)
    start = np.log(a) - np.log1p(-a)
    low, high = min(start, -u), max(start, -u)
    t = start
    moved = np.inf
    for _ in range(100):
        e = np.exp(-abs(t))
        share = 1.0 / (1.0 + e) if t >= 0.0 else e / (1.0 + e)
        value = t + u + (share - a) / step
        if value > 0.0:
            high = t
        else:
            low = t
        change = value / (1.0 + share * (1.0 - share) / step)
        following = t - change
        if not low <= following <= high or abs(change) > 0.5 * moved:
            following = 0.5 * (low + high)
        moved = abs(following - t)
        t = following
        if moved <= 1e-15 * (1.0 + abs(t)):
            break
    e = np.exp(-abs(t))
    return 1.0 / (1.0 + e) if t >= 0.0 else e / (1.0 + e)


@jit
def score_losses(kind: int, z: Array, y: Array, out: Array) -> None:
    """Fill `out` with phi_i(z_i), all float64 of shape (n,)."""
    for i in range(z.shape[0]):
        out[i] = loss_value(kind, z[i], y[i])


@jit
def score_derivatives(kind: int, z: Array, y: Array, out: Array) -> None:
    """Fill `out` with phi_i'(z_i), all float64 of shape (n,)."""
    for i in range(z.shape[0]):
        out[i] = loss_derivative(kind, z[i], y[i])


@jit
def dual_steps(kind: int, beta: Array, z: Array, y: Array, step: float, out: Array) -> None:
    """Fill `out` with the proximal step of each dual variable, `dual_update`; arrays are float64 of shape (m,)."""
    for i in range(beta.shape[0]):
        out[i] = dual_update(kind, beta[i], z[i], y[i], step)


@jit
def soft_threshold(v: float, by: float) -> Any:
    """The number moved towards 0 by `by`, and no farther than 0."""
    if v > by:
        return v - by
    if v < -by:
        return v + by
    return 0.0


@jit
def elastic_net_step(v: float, step: float, l2: float, l1: float) -> Any:
    """The minimizer over x of l2/2 x^2 + l1 |x| + (x - v)^2 / (2 step)."""
    return soft_threshold(v, step * l1) / (1.0 + step * l2)


@jit
def elastic_net_conjugate(s: float, l2: float, l1: float) -> Any:
    """sup_x (s x - l2/2 x^2 - l1 |x|), of l2 > 0."""
    excess = soft_threshold(s, l1)
    return 0.5 * excess * excess / l2


@jit_reduction
def multiply(A: Array, x: Array, out: Array) -> None:
    """out = A x, of shapes (n, p), (p,) and (n,)."""
    wide()
    for i in range(A.shape[0]):
        row = A[i]
        total = 0.0
        for j in range(row.shape[0]):
            total += row[j] * x[j]
        out[i] = total


@jit_reduction
def multiply_transposed(A: Array, y: Array, out: Array) -> None:
    """out = A^T y, of shapes (n, p), (n,) and (p,)."""
    wide()
    for j in range(out.shape[0]):
        out[j] = 0.0
    for i in range(A.shape[0]):
        row = A[i]
        for j in range(row.shape[0]):
            out[j] += y[i] * row[j]


@jit
def records_gap(kind: int, y: Array, weights: Array, beta: Array, z: Array) -> tuple[float, float]:
    """The mean weighted loss of scores z, and the mean of phi(z) + phi*(beta) - z beta, likewise weighted."""
    total = 0.0
    gap = 0.0
    for i in range(y.shape[0]):
        loss = loss_value(kind, z[i], y[i])
        total += weights[i] * loss
        gap += weights[i] * max(loss + loss_conjugate(kind, beta[i], y[i]) - z[i] * beta[i], 0.0)
    return total / y.shape[0], gap / y.shape[0]


@jit
def coefficients_gap(x: Array, s: Array, l2: float, l1: float) -> tuple[float, float]:
    """The elastic net's value g(x), and g(x) + g*(-s) + x s, of l2 > 0."""
    total = 0.0
    gap = 0.0
    for j in range(x.shape[0]):
        value = 0.5 * l2 * x[j] * x[j] + l1 * abs(x[j])
        total += value
        gap += max(value + elastic_net_conjugate(-s[j], l2, l1) + x[j] * s[j], 0.0)
    return total, gap
