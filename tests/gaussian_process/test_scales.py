"""The scales of inputs are fixed by the first records and stay; an input that outgrows its own makes all start over."""

import math

import numpy as np
import pytest

from streamkernel import GaussianProcessRegressor
from streamkernel.estimators.base import machine_of
from streamkernel.gaussian_process import TestPointFunctions, VarianceOperator
from streamkernel.gaussian_process.machine import LOOK, STAGES
from streamkernel.kernels import Gaussian


def _records(n, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * [scale, 5.0] + [0.0, 30.0]
    return X, np.sin(2 * X[:, 0] / scale) + X[:, 1] / 10 + 0.1 * rng.normal(size=n)


def _fixed(model):
    return machine_of(model).inputs.scaler.fixed


@pytest.mark.parametrize("n", [STAGES[0], 30, STAGES[-1], 700])
def test_it_is_that_of_inputs_scaled_beforehand(n):
    """By the moments at the last stage: what was learned before and what is learned since."""
    X, y = _records(n)
    model = GaussianProcessRegressor(noise=0.05, n_features=32, seed=1)
    model.learn_many(X, y)
    first = X[: max(stage for stage in STAGES if stage <= n)]
    assert np.allclose(_fixed(model), np.stack([first.mean(axis=0), first.std(axis=0)], axis=1), rtol=0.02, atol=0.02)
    mean, deviation = _fixed(model).T
    twin = GaussianProcessRegressor(Gaussian(model.bandwidth), 0.05, 32, standardize=False, seed=1)
    twin.learn_many((X - mean) / deviation, y)
    Z = _records(20, seed=1)[0]
    found, expected = model.predict_many(Z, with_dist=True), twin.predict_many((Z - mean) / deviation, with_dist=True)
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_deviation_says_how_wrong_the_mean_is(seed):
    """Of the function's values, which is what running moments would spoil."""
    rng = np.random.default_rng(seed)
    model = GaussianProcessRegressor(noise=0.02, n_features=64, seed=seed)
    X = rng.uniform(-3, 3, (1_500, 1))
    model.learn_many(X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=1_500))
    Z = np.linspace(-2.8, 2.8, 50)[:, None]
    said = model.predict_many(Z, with_dist=True)
    assert (np.abs(said[:, 0] - np.sin(Z[:, 0])) < 3.5 * said[:, 1]).all()
    assert said[:, 1].max() < 0.05


@pytest.mark.parametrize("variance", [None, VarianceOperator(16, 4, 64), TestPointFunctions([{0: 0.0}], 16, 4, 64)])
def test_an_input_that_outgrows_its_scale_is_learned_anew(variance):
    model = GaussianProcessRegressor(noise=0.05, n_features=32, variance=variance, seed=1)
    X, y = _records(400)
    model.learn_many(X, y)
    before = _fixed(model).copy()
    X, y = _records(3_000, scale=50.0, seed=1)
    model.learn_many(X, y)
    assert _fixed(model)[0, 1] > 4 * before[0, 1]
    Z = _records(300, scale=50.0, seed=2)[0]
    wrong = model.predict_many(Z) - np.sin(Z[:, 0] / 25) - Z[:, 1] / 10
    assert np.abs(wrong).mean() < 0.15
    assert model.n_records == 3_400


def test_a_ramp_is_followed():
    """Its places would all move with each record."""
    model = GaussianProcessRegressor(noise=0.01, n_features=64, seed=1)
    xs = [{"t": float(t)} for t in range(3_000)]
    outcome = model.advance(xs, [math.sin(x["t"] / 150) for x in xs])
    wrong = np.abs(np.array(outcome.predictions) - [math.sin(x["t"] / 150) for x in xs])
    assert np.median(wrong[100:]) < 0.05


def test_an_input_that_comes_late_has_a_scale_when_it_came_often():
    rng = np.random.default_rng(0)
    model = GaussianProcessRegressor(n_features=8, seed=1)
    for i in range(3 * LOOK):
        x = {"a": rng.normal(), "constant": 7.0, "word": "xy"[i % 2]}
        if i >= LOOK + 50 and i % 2:
            x["late"] = rng.normal(100, 5)
        model.learn_one(x, rng.normal())
        if i + 1 in (LOOK, 2 * LOOK):
            assert (_fixed(model)[:, 1] > 0).sum() == 1
    fixed = dict(zip(model.input_names, _fixed(model).tolist(), strict=True))
    assert fixed["late"] == pytest.approx([100, 5], rel=0.15)
    assert fixed["constant"] == fixed["word=x"] == [0, 0]
