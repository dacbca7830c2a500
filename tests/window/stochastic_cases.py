"""Problems of the stochastic solvers, and their optima by a solver of scipy's."""

import numpy as np
from scipy import optimize

from tests import naive

# By loss: its number, and beta of the one that is made of another.
KINDS = {
    "squared": (0, 0.0),
    "log": (1, 0.0),
    "smooth_hinge": (2, 0.0),
    "squared_hinge": (3, 0.0),
    "modified_log": (1, 3.0),
}


def clusters(n=600, p=4, seed=1, labels=True):
    """Rows around eight centers, with labels that a linear model explains nearly, or numbers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8, p))[rng.integers(8, size=n)] + 0.3 * rng.normal(size=(n, p))
    scores = X @ rng.normal(size=p) + 0.5 * rng.normal(size=n)
    return X, np.where(scores > 0, 1.0, -1.0) if labels else scores


def objective(loss, X, y, w, l2, l1, weights=None):
    weights = np.ones(len(X)) if weights is None else weights
    return naive.mean_loss(*KINDS[loss], X, y, weights, w) + l2 / 2 * w @ w + l1 * np.abs(w).sum()


def optimum(loss, X, y, l2, l1, weights=None):
    """The least objective: by L-BFGS in the positive and the negative parts of the coefficients."""
    weights, p = np.ones(len(X)) if weights is None else weights, X.shape[1]

    def both(parts):
        w = parts[:p] - parts[p:]
        gradient = naive.full_gradient(*KINDS[loss], X, y, weights, w)[1] + l2 * w
        value = naive.mean_loss(*KINDS[loss], X, y, weights, w) + l2 / 2 * w @ w + l1 * parts.sum()
        return value, np.concatenate([gradient, -gradient]) + l1

    options = {"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-10}
    found = optimize.minimize(
        both, np.zeros(2 * p), jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * p), options=options
    )
    w = found.x[:p] - found.x[p:]
    return objective(loss, X, y, w, l2, l1, weights)
