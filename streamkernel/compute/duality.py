"""The primal-dual gap, as sums of what is never negative: it stays exact where both objectives' digits cancel."""

from streamkernel.compute.intrinsics import wide
from streamkernel.compute.jit import Array, jit, jit_reduction
from streamkernel.compute.window_losses import elastic_net_conjugate, loss_conjugate, loss_derivative, loss_value


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


@jit
def dual_start(kind: int, y: Array, z: Array, beta: Array) -> None:
    """beta_i = phi'(z_i): the dual variables that leave no gap at scores z but the regularizer's."""
    for i in range(y.shape[0]):
        beta[i] = loss_derivative(kind, z[i], y[i])
