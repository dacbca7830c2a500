"""Twins of the primal-dual gap: the difference of both objectives' terms."""

import numpy as np

from tests.naive.features import _dot
from tests.naive.window_losses import elastic_net_conjugate, loss_conjugate, loss_value


def multiply(A, x):
    return [_dot(row, x) for row in A]


def multiply_transposed(A, y):
    return multiply(np.transpose(A), y)


def records_gap(kind, y, weights, beta, z):
    terms = list(zip(y, weights, beta, z, strict=True))
    loss = sum(w * loss_value(kind, score, target) for target, w, _, score in terms)
    dual = sum(w * (loss_conjugate(kind, b, target) - score * b) for target, w, b, score in terms)
    return loss / len(y), (loss + dual) / len(y)


def coefficients_gap(x, s, l2, l1):
    value = sum(l2 / 2 * a * a + l1 * abs(a) for a in x)
    return value, value + sum(elastic_net_conjugate(-b, l2, l1) + a * b for a, b in zip(x, s, strict=True))
