"""Distributions of many predictions at once are those of `predict_one`."""

import pickle

import numpy as np
import pytest
from river import proba

from streamkernel import AdaptiveKernelRegressor

X = np.random.default_rng(0).normal(size=(120, 2))


def _skewed(n, seed=0):
    """Records whose errors, once x is known, are far from normal: mostly small, and large upwards."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 2))
    return rows, 10 * rows[:, 0] + rng.exponential(size=n) ** 2


def test_bands_hold_as_many_targets_as_they_say_and_are_narrower():
    rows, y = _skewed(4_000)
    model, inside, widths, gaussian = AdaptiveKernelRegressor(n_features=16, n_trees=2, seed=1), [], [], []
    for i, (row, target) in enumerate(zip(rows.tolist(), y.tolist(), strict=True)):
        x = dict(zip("ab", row, strict=True))
        if i >= 1_000:
            said = model.predict_one(x, with_dist=True)
            low, high = said.quantile(0.05), said.quantile(0.95)
            inside.append(low <= target <= high)
            widths.append(high - low)
            gaussian.append(2 * 1.645 * said.sigma)
        model.learn_one(x, target)
    assert 0.88 < np.mean(inside) < 0.92
    assert np.mean(widths) < 0.85 * np.mean(gaussian)


def test_quantiles_are_those_of_the_last_errors():
    rows, y = _skewed(700)
    model, errors = AdaptiveKernelRegressor(n_features=16, seed=1), []
    for row, target in zip(rows.tolist(), y.tolist(), strict=True):
        x = dict(zip("ab", row, strict=True))
        said = model.predict_one(x)
        model.learn_one(x, target)
        errors.append(target - said)
        model.learn_one(x, target + 1e3, 0.0)  # a record of weight 0 is no error
    said = model.predict_one({"a": 0.5, "b": 0.0}, with_dist=True)
    for p in (0.002, 0.05, 0.5, 0.95, 0.998):
        expected = said.mu + np.quantile(errors[-500:], p, method="weibull")
        assert said.quantile(p) == pytest.approx(expected, abs=1e-9)
    assert said.quantile(1e-9) == pytest.approx(said.mu + min(errors[-500:]), abs=1e-9)


@pytest.mark.parametrize("p", [0, 1, True, -0.1, 1.5, float("nan"), None, "0.5", [0.1, 0.9], np.array([0.1, 0.9])])
def test_a_quantile_is_asked_for_between_0_and_1(p):
    with pytest.raises(ValueError, match="p must be a number between 0 and 1, both excluded, got"):
        AdaptiveKernelRegressor(seed=1).predict_one({}, with_dist=True).quantile(p)


def test_a_distribution_is_rivers_and_stays_as_it_was():
    rows, y = _skewed(300)
    model = AdaptiveKernelRegressor(n_features=16, seed=1)
    model.learn_many(rows[:200], y[:200])
    said = model.predict_one({0: 0.5, 1: 0.0}, with_dist=True)
    again, before = pickle.loads(pickle.dumps(said)), said.quantile(0.9)
    model.learn_many(rows[200:], y[200:])
    assert isinstance(said, proba.Gaussian)
    assert again.quantile(0.9) == said.quantile(0.9) == before
    assert model.predict_one({0: 0.5, 1: 0.0}, with_dist=True).quantile(0.9) != before
