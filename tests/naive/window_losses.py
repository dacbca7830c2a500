"""Twins of the window solvers' losses: the conjugate and the dual update as searches."""

import math

from scipy import optimize

from streamkernel.compute.window_losses import LOGISTIC, SMOOTH_HINGE, SQUARED


def loss_value(kind, z, y):
    if kind == SQUARED:
        return (z - y) ** 2 / 2
    u = y * z
    if kind == LOGISTIC:
        return math.log1p(math.exp(-abs(u))) + max(-u, 0.0)
    if u >= 1:
        return 0.0
    if kind == SMOOTH_HINGE and u <= 0:
        return 0.5 - u
    return (1 - u) ** 2 / 2


def loss_derivative(kind, z, y):
    if kind == SQUARED:
        return z - y
    u = y * z
    if kind == LOGISTIC:
        return -y * (1 - math.tanh(u / 2)) / 2
    if u >= 1:
        return 0.0
    if kind == SMOOTH_HINGE and u <= 0:
        return -y
    return -y * (1 - u)


def loss_conjugate(kind, beta, y):
    """The supremum by its condition phi'(z) = beta, where there is such a z."""
    if kind == SQUARED:
        return beta * (beta + y) - beta**2 / 2
    a = -y * beta
    if a < 0 or (kind in (LOGISTIC, SMOOTH_HINGE) and a > 1):
        return math.inf
    if kind == LOGISTIC:
        return sum(share * math.log(share) for share in (a, 1 - a) if share)
    u = 1 - a
    return -a * u - (1 - u) ** 2 / 2


def dual_update(kind, beta, z, y, step):
    if kind == SQUARED:
        return (beta / step + z - y) / (1 / step + 1)
    a, u = -y * beta, y * z
    if kind == LOGISTIC:
        return -y * _logistic_share(a, u, step)
    most = 1.0 if kind == SMOOTH_HINGE else math.inf
    return -y * min(max((a / step + 1 - u) / (1 / step + 1), 0.0), most)


def _logistic_share(a, u, step):
    """By bisection."""

    def slope(t):
        return t + u + ((1 + math.tanh(t / 2)) / 2 - a) / step

    far = abs(u) + 1 / step + 1
    return (1 + math.tanh(optimize.brentq(slope, -far, far, xtol=1e-14, rtol=1e-14) / 2)) / 2


def score_losses(kind, z, y):
    return [loss_value(kind, z[i], y[i]) for i in range(len(z))]


def score_derivatives(kind, z, y):
    return [loss_derivative(kind, z[i], y[i]) for i in range(len(z))]


def dual_steps(kind, beta, z, y, step):
    return [dual_update(kind, b, score, label, step) for b, score, label in zip(beta, z, y, strict=True)]


def soft_threshold(v, by):
    return math.copysign(max(abs(v) - by, 0.0), v)


def elastic_net_step(v, step, l2, l1):
    return soft_threshold(v / step, l1) / (1 / step + l2)


def elastic_net_conjugate(s, l2, l1):
    x = soft_threshold(s, l1) / l2
    return s * x - l2 / 2 * x * x - l1 * abs(x)
