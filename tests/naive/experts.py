"""Twins of the experts: scores, Hedge's weights, temperatures, and a predict-then-learn step of the heads."""

import math

import numpy as np

from tests.naive.features import _dot
from tests.naive.moments import take_target
from tests.naive.packed import settled_products, unpack
from tests.naive.recursive import learn_least_squares_late, settle
from tests.naive.softmax import softmax_into


def predict_experts(heads_W, linear_W, phi):
    scores = [[_dot(w, phi) for w in W] for W in heads_W]
    return scores + [[_dot(w, phi[len(phi) - len(w) :]) for w in W] for W in linear_W]


def hedge_weights(losses, prior, eta):
    return softmax_into(np.array(losses) - np.log(prior) / eta, -eta)


def step_temperature(log_temperature, scores, p, label):
    slope = math.exp(log_temperature) * (np.dot(p, scores) - scores[label])
    return float(np.clip(log_temperature - 0.05 * np.clip(slope, -2, 2), 0, 4))


def count_loss(block, loss):
    return np.add(block, [1, loss, loss**2])


def settled_heads(heads):
    """Matrices to which nothing is due, coefficients, drifts and ridge, of what compiled code has."""
    tiles, W, late, n_late, diagonals, drifts, ridge = heads
    parts = zip(tiles, late, diagonals, strict=True)
    P = [settle(unpack(t, W.shape[2]), c[: n_late[0], : W.shape[2]], d) for t, c, d in parts]
    return P, W, drifts, ridge


def multiply_ahead(heads, Phi, learned, is_due):
    """Records that are learned next, as many as fill what is due, and their products with each matrix."""
    D, n_late = heads.W.shape[2], 0 if is_due else heads.n_late[0]
    X = Phi[learned][: 8 - n_late]
    parts = zip(heads.tiles, heads.late[:, :, :D], heads.diagonals, strict=True)
    return X, [settled_products(unpack(tiles, D), is_due, late, diagonals, X)[1] for tiles, late, diagonals in parts]


def look_ahead(heads, Phi, learned):
    return multiply_ahead(heads, Phi, learned, False)


def update_heads(heads, phi, truth, scores, weight):
    """The heads' matrices and coefficients after the record; nothing is late."""
    P, W, drifts, ridge = heads
    learned = [
        learn_least_squares_late(P[j], W[j], phi, truth - scores[j], weight, drifts[j], 1 / ridge)
        for j in range(len(W))
    ]
    return [P for P, _ in learned], [W for _, W in learned]


def replay(Phi, truths, sample_weights, heads):
    P, W, drifts, ridge = heads
    for phi, truth, weight in zip(Phi, truths, sample_weights, strict=True):
        if weight > 0:
            scores = np.array(predict_experts(W, [], phi))
            P, W = update_heads((P, W, drifts, ridge), phi, truth, scores, weight)
    return P, W


def standardize_targets(targets, sample_weights, moments):
    """Each target as those up to it standardize it; the moments learn them."""
    return [take_target(moments, y)[0] if weight > 0 else 0 for y, weight in zip(targets, sample_weights, strict=True)]


def named_parts(parts):
    return parts
