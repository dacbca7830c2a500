"""Twins of the stochastic gradient steps: gradients of whole mini-batches as vectors."""

import numpy as np

from tests.naive.gaussians import GOLDEN, WORD, mix64
from tests.naive.window_losses import elastic_net_step, loss_derivative, loss_value


def draw_row(state, n):
    """The next state, and the number."""
    state = (int(state) + GOLDEN) % WORD
    return state, (mix64(state) >> 32) * n >> 32


def draw_batch(state, X, n):
    """The next state, and the rows."""
    rows = []
    for _ in range(n):
        state, i = draw_row(state, len(X))
        rows.append(i)
    return state, rows


def derivative(kind, beta, z, y):
    return loss_derivative(kind, beta * (z - y) if beta else z, y)


def mean_loss(kind, beta, X, y, weights, w):
    losses = [
        loss_value(kind, beta * (z - t), t) / beta if beta else loss_value(kind, z, t)
        for z, t in zip(X @ w, y, strict=True)
    ]
    return np.mean(weights * np.array(losses))


def _derivatives(kind, beta, X, y, weights, w):
    return np.array([c * derivative(kind, beta, z, t) for z, t, c in zip(X @ w, y, weights, strict=True)])


def full_gradient(kind, beta, X, y, weights, w):
    """The rows' derivatives and the gradient."""
    d = _derivatives(kind, beta, X, y, weights, w)
    return d, X.T @ d / len(X)


def take_step(g, w, step, l2, l1):
    return np.array([elastic_net_step(a - step * b, step, l2, l1) for a, b in zip(w, g, strict=True)])


def variance_reduced_steps(kind, beta, data, derivatives, _graph, gradient, w, steps, batch, penalty, state):
    """The coefficients and the state, from the derivatives that the rows' parts of the gradient are made of."""
    X, y, weights = data
    for _ in range(steps):
        state, rows = draw_batch(state, X, batch)
        change = _derivatives(kind, beta, X[rows], y[rows], weights[rows], w) - derivatives[rows]
        w = take_step(gradient + X[rows].T @ change / batch, w, *penalty)
    return w, state


def anchor_gradient(kind, beta, anchors, labels, sums, offset, w):
    """The anchors' derivatives and the gradient."""
    d = np.array([derivative(kind, beta, z, label) for label in labels for z in anchors @ w])
    return d, offset + sums.T @ d


def propagated(d, places, shares, offset):
    return offset + sum(share * d[place] for place, share in zip(places, shares, strict=True))


def semi_stochastic_rounds(kind, beta, X, y, weights, graph, model, w, total, rounds, inner, batch, penalty, state):
    """Coefficients, their total and the state: steps as SVRG's, from approximate derivatives and their gradient."""
    for _ in range(rounds):
        d, H = anchor_gradient(kind, beta, *model, w)
        known = np.array([c * propagated(d, *own) for c, *own in zip(weights, *graph, strict=True)])
        w, state = variance_reduced_steps(kind, beta, (X, y, weights), known, None, H, w, inner, batch, penalty, state)
        total = total + w
    return w, total, state
