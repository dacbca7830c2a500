"""A twin of the posterior: all records so far, and one system of equations for each prediction."""

import numpy as np


def pass_posterior(Phi, targets, weights, rho, centres):
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
        mean = ys.mean() if kept and centres else 0.0
        W = np.linalg.solve(A, np.transpose(rows) @ ws @ (ys - mean)) if kept else np.zeros(len(phi))
        deviation = ys.std() if kept else 0.0
        out.append([mean + phi @ W, phi @ np.linalg.solve(A, phi), deviation or 1.0])
        if not np.isnan(y) and w > 0:
            kept.append(len(out) - 1)
    return np.array(out)
