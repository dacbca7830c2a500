"""A twin of the posterior: all records so far, and one system of equations for each prediction."""

import numpy as np


def pass_posterior(Phi, targets, weights, rho, centers):
    """The predictions of records, each by those before it; no outliers, no drift."""
    out = []
    kept = []
    for phi, y, w in zip(Phi, targets, weights, strict=True):
        rows = [Phi[i] for i in kept]
        ws = np.diag([weights[i] for i in kept])
        ys = np.array([targets[i] for i in kept])
        A = rho * np.eye(len(phi))
        if kept:
            A += np.transpose(rows) @ ws @ rows
        mean = ys.mean() if kept and centers else 0.0
        W = np.linalg.solve(A, np.transpose(rows) @ ws @ (ys - mean)) if kept else np.zeros(len(phi))
        deviation = ys.std() if kept else 0.0
        out.append([mean + phi @ W, phi @ np.linalg.solve(A, phi), deviation or 1.0])
        if not np.isnan(y) and w > 0:
            kept.append(len(out) - 1)
        out[-1].append(targets[kept].std() if kept else 0.0)
    return np.array(out)


def _settled(P, phi, rho, information, learns):
    """P, P phi and phi^T P phi, where rounding may have taken P below what so much information leaves of it."""
    P = np.array(P)
    norm = phi @ phi
    left = phi @ P @ phi
    least = norm / (rho + information) / 2
    if left < least:
        if learns:
            P += (2 * least - left) / norm**2 * np.outer(phi, phi)
        left = 2 * least
    return P, P @ phi, min(left, norm / rho)


def _recenter(W, center, mean):
    """Coefficients for the targets less the mean, from those for the targets less the center and those for 1."""
    return np.array([W[0] - (mean - center) * W[1], W[1]])


def _forget(D, rho):
    return np.eye(D) / rho, np.zeros((2, D))


def _learn(P, W, phi, targets, weight):
    """P and the coefficients of each column of targets, after one record more: by inverting what a record adds to."""
    after = np.linalg.inv(np.linalg.inv(P) + weight * np.outer(phi, phi))
    gains = weight * after @ phi
    return after, np.array([w + gains * (y - w @ phi) for w, y in zip(W, targets, strict=True)])
