"""Quantile regression: as many held-out targets are below the prediction as the quantile says."""

import numpy as np
import pytest

from streamkernel import KernelRegressor
from streamkernel.losses import Quantile


def widening(n, seed):
    """A sine whose noise widens with the input; rows and targets."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + (0.3 + 0.2 * X[:, 0]) * rng.normal(size=n)


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.5, 0.9])
def test_the_coverage_is_the_quantile(alpha):
    model = KernelRegressor(loss=Quantile(alpha), max_features=1024, seed=1)
    X, y = widening(30_000, seed=1)
    model.learn_many(X, y)
    X, y = widening(10_000, seed=2)
    below = y <= np.asarray(model.predict_many(X))
    assert below.mean() == pytest.approx(alpha, abs=0.02)
    # Not only in the mean: also where the noise is narrow, and where it is wide.
    assert below[X[:, 0] < 0].mean() == pytest.approx(alpha, abs=0.08)
    assert below[X[:, 0] > 0].mean() == pytest.approx(alpha, abs=0.08)
