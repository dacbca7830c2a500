"""What predicts the median: the mixture weighs its experts by absolute errors."""

import numpy as np
import pytest

from streamkernel import AdaptiveKernelRegressor


def _skewed(n, seed=0):
    """Targets whose errors, once the inputs are known, are mostly small, and large upwards."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, 5 * np.sin(X[:, 0]) + 3 * rng.exponential(size=n) ** 2


def _records(X):
    return [dict(enumerate(row)) for row in X.tolist()]


def _errors(X, y, **arguments):
    model, errors = AdaptiveKernelRegressor(n_features=16, seed=1, **arguments), []
    for start in range(0, len(y), 100):
        part = slice(start, start + 100)
        errors.extend(model.advance(_records(X[part]), y[part].tolist()).predictions - y[part])
    return np.array(errors)[500:]


def test_half_of_all_targets_are_below_and_the_mean_absolute_error_is_smaller():
    X, y = _skewed(3_000)
    of_median, of_mean = (_errors(X, y, predicts=what) for what in ("median", "mean"))
    assert np.mean(of_median > 0) == pytest.approx(0.5, abs=0.02)
    assert np.mean(of_mean > 0) > 0.6
    assert np.abs(of_median).mean() < 0.98 * np.abs(of_mean).mean()
    assert (of_median**2).mean() > (of_mean**2).mean()


def test_its_losses_are_absolute_errors_in_deviations():
    X, y = _skewed(300)
    model = AdaptiveKernelRegressor(n_features=8, predicts="median", seed=1)
    model.learn_many(X[:200], y[:200])
    deviation = np.std(y[:201])  # none of these is far
    result = model.advance(_records(X[200:201]), y[200:201].tolist())
    assert result.losses[0] == pytest.approx(abs(result.predictions[0] - y[200]) / deviation, rel=1e-6)
    assert model.loss_of(3.0, 1.0, unit=2.0) == 1.0
    assert AdaptiveKernelRegressor(seed=1).loss_of(5.0, 1.0, unit=2.0) == 4.0
