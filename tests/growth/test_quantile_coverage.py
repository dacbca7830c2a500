"""Quantile regression: as many targets are below a prediction as the quantile says, on the way and of a model left."""

import math

import numpy as np
import pytest

from streamkernel import KernelRegressor
from streamkernel.losses import Quantile

#: What is promised of the coverage, beside what chance makes of a sample.
PROMISED = 0.02


def widening(n, seed):
    """A sine whose noise widens with the input, from a deviation of .1 to .9; rows and targets."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + (0.5 + 0.2 * X[:, 0]) * rng.normal(size=n)


def assert_covers(alpha, X, y, bounds):
    """In the mean; and, with three deviations of a binomial count, where the noise is narrow and where it is wide."""
    below = y <= np.asarray(bounds)
    assert below.mean() == pytest.approx(alpha, abs=PROMISED)
    for half in (X[:, 0] < 0, X[:, 0] > 0):
        chance = 3 * math.sqrt(alpha * (1 - alpha) / half.sum())
        assert below[half].mean() == pytest.approx(alpha, abs=PROMISED + chance)


@pytest.mark.parametrize("alpha", [0.05, 0.5, 0.9])
def test_the_coverage_of_predictions_on_the_way_is_the_quantile(alpha):
    model = KernelRegressor(loss=Quantile(alpha), max_features=1024, seed=1)
    X, y = widening(30_000, seed=1)
    model.learn_many(X[:15_000], y[:15_000])
    X, y = X[15_000:], y[15_000:]
    assert_covers(alpha, X, y, model.advance([dict(enumerate(row)) for row in X.tolist()], y.tolist()).predictions)


@pytest.mark.parametrize(("alpha", "seed"), [(0.1, 1), (0.5, 2), (0.95, 1)])
def test_the_coverage_of_an_averaged_model_that_is_left_as_it_stands_is_the_quantile(alpha, seed):
    model = KernelRegressor(loss=Quantile(alpha), max_features=1024, average=True, seed=seed)
    model.learn_many(*widening(30_000, seed=seed))
    X, y = widening(10_000, seed=100 + seed)
    assert_covers(alpha, X, y, model.predict_many(X))
