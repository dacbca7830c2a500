"""Records as they come: late inputs and classes, strings, absent values, weights, no target; and what is said."""

import copy
import math

import numpy as np
import pytest

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor

BOTH = pytest.mark.parametrize("kind", [AdaptiveKernelClassifier, AdaptiveKernelRegressor])


def _model(kind, **given):
    return kind(**{"n_features": 8, "metric_schedule": (7, 20), "seed": 1, **given})


def _stream(kind, n=150, d=3, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    y = X[:, 0] ** 2 + X[:, 1]
    xs = [{f"x{j}": float(v) for j, v in enumerate(row)} for row in X]
    return xs, [float(v) for v in y] if kind is AdaptiveKernelRegressor else [bool(v > 1) for v in y]


@BOTH
def test_absent_is_none_is_nan(kind):
    xs, ys = _stream(kind)
    digests = set()
    for absent in ({}, {"x1": None}, {"x1": math.nan}, {"x1": np.float32("nan")}):
        model = _model(kind)
        model.advance([{**x, **absent} if i % 3 else x for i, x in enumerate(_without(xs, "x1"))], ys)
        digests.add(model.state_digest())
    assert len(digests) == 1


def _without(xs, name):
    return [x if not i % 3 else {other: v for other, v in x.items() if other != name} for i, x in enumerate(xs)]


@BOTH
def test_a_late_input_is_learned(kind):
    """From its arrival on it is all that matters."""
    rng = np.random.default_rng(1)
    model, hits = kind(n_features=32, seed=1), []
    for i in range(1_200):
        x = {f"x{j}": float(v) for j, v in enumerate(rng.normal(size=3))}
        late = float(rng.normal())
        if i >= 300:
            x["late"] = late
        y = late if kind is AdaptiveKernelRegressor else late > 0
        if i >= 600:
            said = model.predict_one(x)
            hits.append(abs(said - y) < 0.3 if kind is AdaptiveKernelRegressor else said == y)
        model.learn_one(x, y)
    assert np.mean(hits) > 0.9
    assert max(model.feature_importances_, key=model.feature_importances_.get) == "late"


def test_classes_past_the_limit_are_predicted_only():
    model = _model(AdaptiveKernelClassifier, max_classes=2)
    model.advance([{"a": float(i)} for i in range(20)], ["pq"[i % 2] for i in range(20)])
    before = {**model.__getstate__()}
    with pytest.warns(RuntimeWarning, match="classes past max_classes"):
        model.learn_one({"a": 3.0}, "r")
    assert (model.classes, model.n_ignored_labels, model.n_records) == (["p", "q"], 1, 20)
    assert model.__getstate__()["heads_P"].tobytes() == before["heads_P"].tobytes()


@BOTH
def test_inputs_past_the_limit_are_ignored(kind):
    xs, ys = _stream(kind)
    model, other = _model(kind, max_inputs=3), _model(kind, max_inputs=3)
    other.advance(xs, ys)
    model.advance(xs[:5], ys[:5])
    with pytest.warns(RuntimeWarning, match="inputs past max_inputs=3 are ignored"):
        model.advance([{**x, "more": 1.0} for x in xs[5:]], ys[5:])
    assert model.n_ignored_inputs == len(xs) - 5
    assert [model.predict_one(x) for x in xs[:9]] == [other.predict_one(x) for x in xs[:9]]


@BOTH
def test_a_weight_of_zero_teaches_the_experts_nothing(kind):
    xs, ys = _stream(kind)
    model = _model(kind, metric_schedule=None)
    model.advance(xs[:100], ys[:100])
    before = model.expert_weights
    weightless = copy.deepcopy(model)
    weightless.advance(xs[100:], ys[100:], [0.0] * 50)
    assert weightless.expert_weights == before
    assert weightless.n_records == 150
    # Wrong targets without weight do no harm: the moments of the inputs are all that moves.
    wrong = copy.deepcopy(model)
    wrong.advance(xs[100:], ys[99:149], [0.0] * 50)
    assert [wrong.predict_one(x) for x in xs] == [weightless.predict_one(x) for x in xs]


@BOTH
def test_importances_are_shares_by_name(kind):
    xs, ys = _stream(kind, 60)
    model = _model(kind, metric_schedule=(50,))
    assert model.feature_importances_ == {}
    model.advance(xs[:57], ys[:57])
    assert set(model.feature_importances_) == {"x0", "x1", "x2"}
    model.learn_one({"late": 1.0, "word": "w"}, ys[57])
    shares = [*model.feature_importances_.values()]
    assert set(model.feature_importances_) == {"x0", "x1", "x2", "late", "word"}
    assert sum(shares) == pytest.approx(1)
    assert shares == sorted(shares, reverse=True)
    assert set(model.input_names) == {"x0", "x1", "x2", "late", "word=w"}
