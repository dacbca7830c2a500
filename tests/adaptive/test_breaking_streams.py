"""Streams that try to break it, at default settings: all that is said is finite, and P stays positive definite."""

import math

import numpy as np
import pytest

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor
from streamkernel.estimators.base import machine_of
from tests import naive

BOTH = pytest.mark.parametrize("kind", [AdaptiveKernelClassifier, AdaptiveKernelRegressor])
N = 300


def _normal(n=N, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def _dicts(X):
    return [{f"x{j}": v for j, v in enumerate(row)} for row in X.tolist()]


def _targets(kind, y):
    return y.tolist() if kind is AdaptiveKernelRegressor else (y > np.median(y)).tolist()


def _assert_finite(model, xs, ys):
    outcome = model.advance(xs, ys)
    assert np.isfinite(outcome.losses).all()
    if outcome.probabilities is None:
        assert np.isfinite(outcome.predictions).all()
        said = model.predict_one(xs[-1], with_dist=True)
        assert math.isfinite(said.sigma)
    else:
        for p in outcome.probabilities[1:]:
            assert sum(p.values()) == pytest.approx(1)
            assert 0 <= min(p.values()) <= max(p.values()) <= 1
    weights = list(model.expert_weights.values())
    assert np.isfinite(weights).all()
    assert sum(weights) == pytest.approx(1)
    assert np.isfinite(list(model.feature_importances_.values())).all()
    return outcome


def _assert_survives(model, xs, ys):
    outcome = _assert_finite(model, xs, ys)
    _assert_positive(model)
    return outcome


def _assert_positive(model):
    experts = machine_of(model).experts
    for P in [*experts.heads.settled_P(), *experts.linear_P]:
        assert np.linalg.eigvalsh(naive.symmetric(P))[0] > 0


def _scaled(X):
    return X @ np.array([1.0, -1.0, 0.5, 0.0])[: X.shape[1]]


INPUTS = {
    "constant": lambda X: _dicts(np.full_like(X, 3.0)),
    "one constant": lambda X: [{**x, "c": 1e9} for x in _dicts(X)],
    "copies": lambda X: _dicts(np.concatenate([X] * 4, axis=1)),
    "huge": lambda X: _dicts(X * 1e12),
    "tiny": lambda X: _dicts(X * 1e-12),
    "huge beside tiny": lambda X: _dicts(X * [1e12, 1e-12, 1.0, 1e150]),
    "huge and far": lambda X: _dicts(1e12 + X),
    "one": lambda X: _dicts(X[:, :1]),
    "none": lambda X: [{} for _ in X],
    "all missing": lambda X: [{"a": None, "b": math.nan, "c": None} for _ in X],
    "missing for long": lambda X: [x if 200 <= i < 260 else {"x0": None} for i, x in enumerate(_dicts(X))],
    "heavy tails": lambda X: _dicts(np.sinh(9 * X)),
    "a word a record": lambda X: [{"word": f"w{i % 90}", "x": float(v)} for i, v in enumerate(X[:, 0])],
}


@BOTH
@pytest.mark.parametrize("make", INPUTS.values(), ids=INPUTS)
def test_inputs(kind, make):
    X = _normal()
    _assert_survives(kind(seed=1), make(X), _targets(kind, _scaled(X)))


@BOTH
@pytest.mark.parametrize("make", [INPUTS["huge"], INPUTS["tiny"]], ids=["huge", "tiny"])
def test_the_scale_of_the_inputs_does_not_matter(kind, make):
    X = _normal()
    ys = _targets(kind, _scaled(X))
    plain, scaled = kind(seed=1).advance(_dicts(X), ys), kind(seed=1).advance(make(X), ys)
    assert scaled.losses[200:].mean() == pytest.approx(plain.losses[200:].mean(), rel=0.05)


TARGETS = {
    "jump": lambda y: np.where(np.arange(len(y)) < 200, y, y + 1e6),
    "jump and back": lambda y: y + 1e6 * ((np.arange(len(y)) > 150) & (np.arange(len(y)) < 220)),
    "single spikes": lambda y: y + 1e6 * (np.arange(len(y)) % 100 == 99),
    "a spike at last": lambda y: np.where(np.arange(len(y)) == len(y) - 1, 1e150, y),
    "constant": lambda y: np.full_like(y, 7.0),
    "huge": lambda y: y * 1e150,
    "the largest": lambda y: np.sign(y) * 1.7e308,
    "tiny": lambda y: y * 1e-300,
    "far": lambda y: y + 1e12,
}


@pytest.mark.parametrize("make", TARGETS.values(), ids=TARGETS)
def test_targets(make):
    X = _normal()
    _assert_survives(AdaptiveKernelRegressor(seed=1), _dicts(X), make(_scaled(X)).tolist())


@pytest.mark.long
@BOTH
def test_500_inputs_at_default_settings(kind):
    X = _normal(5_000, 500)
    model = kind(seed=1)
    ys = _targets(kind, X[:, :5].sum(axis=1))
    _assert_survives(model, _dicts(X), ys)
    importance = np.array([model.feature_importances_[f"x{j}"] for j in range(500)])
    assert importance[:5].mean() > 2 * importance[5:].mean()


def _endless(kind, n):
    """A stream with copies, constants, drift and quiet columns, again and again through one machine."""
    rng = np.random.default_rng(0)
    model = kind(n_features=32, seed=1)
    for start in range(0, n, 10_000):
        X = rng.normal(size=(10_000, 6))
        X[:, 4] = X[:, 0]
        X[:, 5] = 2.0
        if start // 10_000 % 2:
            X[:, 3] = 0.0
        y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] * (1 if start // 20_000 % 2 else -1)
        outcome = model.advance(_dicts(X), _targets(kind, y))
        assert np.isfinite(outcome.losses).all()
        _assert_positive(model)
    assert model.n_records == n


@BOTH
def test_p_stays_positive_definite_for_20000_records(kind):
    _endless(kind, 20_000)


@pytest.mark.long
@BOTH
def test_p_stays_positive_definite_for_a_million_records(kind):
    _endless(kind, 1_000_000)
