"""Matrix risk minimization in plain numpy: the iterations pair by pair, and another solver's optimum."""

import numpy as np

from tests.naive.window_losses import dual_update, loss_conjugate, loss_derivative, loss_value


def projected(S):
    w, V = np.linalg.eigh((S + S.T) / 2)
    return (V * np.maximum(w, 0.0)) @ V.T


def scores(D, X):
    return np.array([sum(np.sum(D[i, j] * X[j]) for j in range(len(X))) for i in range(len(D))])


def objective(kind, D, y, weights, l2, linear, X):
    losses = [w * loss_value(kind, z, b) for w, z, b in zip(weights, scores(D, X), y, strict=True)]
    return np.mean(losses) + sum(l2[j] / 2 * np.sum(X[j] ** 2) - np.sum(linear[j] * X[j]) for j in range(len(X)))


def dual_objective(kind, D, y, weights, l2, linear, beta):
    total = -np.mean([w * loss_conjugate(kind, a, b) for w, a, b in zip(weights, beta, y, strict=True)])
    for j in range(D.shape[1]):
        G = np.mean([w * a * D[i, j] for i, (w, a) in enumerate(zip(weights, beta, strict=True))], axis=0)
        total -= np.sum(projected(linear[j] - G) ** 2) / (2 * l2[j])
    return total


def iterate(kind, D, y, weights, l2, linear, X, beta, ahead, steps, records, blocks, m):
    """Algorithm 1 with the block updates (28) and (29), as they are written."""
    n = len(D)
    z = scores(D, ahead)
    new, betabar = beta.copy(), beta.copy()
    for i in records:
        new[i] = dual_update(kind, beta[i], z[i], y[i], steps.sigma / n)
        betabar[i] = beta[i] + n / m * (new[i] - beta[i])
    moved, beyond = X.copy(), X.copy()
    for j in blocks:
        G = sum(weights[i] * betabar[i] * D[i, j] for i in range(n)) / n
        V = X[j] - steps.tau * (G - linear[j])
        moved[j] = projected(V / (1 + steps.tau * l2[j]))
        beyond[j] = X[j] + (steps.theta + 1) * (moved[j] - X[j])
    return moved, new, beyond


def optimum(kind, D, y, weights, l2, linear, iterations=20_000):
    """The minimizer by accelerated projected gradients, with restarts: nothing of it is dual or random."""
    n, p = D.shape[:2]
    D = (D + D.transpose(0, 1, 3, 2)) / 2
    rows = D.reshape(n, -1)
    L = np.linalg.norm(rows.T * np.sqrt(weights), 2) ** 2 / n + max(l2)
    X, Y, t = np.zeros(D.shape[1:]), np.zeros(D.shape[1:]), 1.0
    for _ in range(iterations):
        z = rows @ Y.ravel()
        slopes = np.array([w * loss_derivative(kind, a, b) for w, a, b in zip(weights, z, y, strict=True)])
        G = (slopes @ rows / n).reshape(Y.shape) + np.asarray(l2)[:, None, None] * Y - linear
        new = np.array([projected(Y[j] - G[j] / L) for j in range(p)])
        if np.sum((Y - new) * (new - X)) > 0:
            t = 1.0
        following = (1 + np.sqrt(1 + 4 * t * t)) / 2
        Y = new + (t - 1) / following * (new - X)
        moved = np.abs(new - X).max()
        X, t = new, following
        if moved < 1e-15 * max(1.0, np.abs(X).max()):
            break
    return X
