"""The past of the target: lags beside the plain experts, transitions of classes, and labels that come late."""

from collections import deque

import numpy as np
import pytest

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor
from tests.adaptive.experts import without_stacks

LAG = "streamkernel.lag.1"
SMALL = {"n_features": 8, "n_trees": 2, "tree_window": 60, "memory": 50, "metric_schedule": (30, 90), "seed": 1}


def _numbers(n=260, seed=0):
    """A target that goes on from where it was; missing inputs, a string, an input that comes late, and no label."""
    rng = np.random.default_rng(seed)
    xs, ys, y = [], [], 0.0
    for i in range(n):
        a, b = rng.normal(size=2).tolist()
        y = 0.95 * y + a + 0.1 * rng.normal()
        xs.append({"a": a, "b": None if i % 11 == 3 else b})
        if i % 5 == 2:
            xs[-1]["color"] = "red" if b > 0 else "blue"
        if i > 150:
            xs[-1]["late"] = b
        ys.append(None if i % 13 == 6 else y)
    return xs, ys


def _labels(n=260):
    xs, _ = _numbers(n)
    return xs, [None if i % 13 == 6 else "abcdefg"[(i // 3) % (3 if i < 120 else 5)] for i in range(n)]


CASES = [(AdaptiveKernelRegressor, 3, _numbers), (AdaptiveKernelRegressor, 1, _numbers)]
CASES.append((AdaptiveKernelClassifier, 1, _labels))
EACH = pytest.mark.parametrize(("kind", "lags", "stream"), CASES)


def _model(kind, lags, **more):
    return kind(**{**SMALL, "lags": lags, **more})


@EACH
def test_a_record_that_brings_the_lags_of_now_is_as_one_that_brings_none(kind, lags, stream):
    xs, ys = stream()
    plain, own = _model(kind, lags), _model(kind, lags)
    for x, y in zip(xs, ys, strict=True):
        brought = own.with_lags(x)
        assert own.with_lags(brought) == brought
        assert own.predict_one(brought) == plain.predict_one(x)
        plain.learn_one(x, y)
        own.learn_one(brought, y)
    assert own.state_digest() == plain.state_digest()


@EACH
def test_the_first_record_is_predicted_with_no_lag_that_it_brings(kind, lags, stream):
    xs, ys = stream()
    first = {**xs[0], "streamkernel.lag.1": ys[1]}
    model, one, plain = (_model(kind, lags) for _ in range(3))
    said = plain.advance(xs[:1], ys[:1]).predictions
    assert model.advance([first], ys[:1]).predictions == said
    one.learn_one(first, ys[0])
    assert one.state_digest() == model.state_digest() == plain.state_digest()


@pytest.mark.parametrize(("kind", "most"), [(AdaptiveKernelRegressor, 1_000), (AdaptiveKernelClassifier, 1)])
def test_lags_out_of_their_range_are_refused(kind, most):
    for lags in (-1, most + 1, 1.5, True):
        with pytest.raises(ValueError, match="lags must be a whole number"):
            kind(lags=lags)


def test_a_lag_that_is_no_target_is_refused_and_nothing_is_learned():
    model = _model(AdaptiveKernelRegressor, 1)
    model.learn_one({"a": 1.0}, 2.0)
    before = model.state_digest()
    for lag in ("yes", float("inf")):
        with pytest.raises(ValueError, match=r"a lag .* not a finite number"):
            model.advance([{"a": 2.0}, {"a": 1.0, LAG: lag}], [1.0, 2.0])
    assert model.state_digest() == before


def test_lags_stand_beside_the_plain_experts():
    xs, ys = _numbers(600)
    known = np.array([y is not None for y in ys])
    errors = {}
    for lags in (0, 2):
        model = _model(AdaptiveKernelRegressor, lags)
        said = np.array(model.advance(xs, ys).predictions)
        errors[lags] = np.abs(said - np.array(ys, float))[known][100:].mean()
    assert errors[2] < 0.6 * errors[0]
    weights = model.expert_weights
    assert sum(weights.values()) == pytest.approx(1)
    heard = without_stacks(model).items()
    assert sum(weight for name, weight in heard if name.startswith("lagged, ")) > 0.9
    importance = model.feature_importances_
    assert sum(importance.values()) == pytest.approx(1)
    assert importance[LAG] > 0.3
    assert model.memory_bytes > 1.3 * _learned_without_lags(xs, ys).memory_bytes


def _learned_without_lags(xs, ys):
    model = _model(AdaptiveKernelRegressor, 0)
    model.advance(xs, ys)
    return model


def _late(model, xs, ys, delay, keeps):
    """Predictions of a stream whose labels come so many records late, with the lags kept or not."""
    waiting, said = deque(), []
    for x, y in zip(xs, ys, strict=True):
        kept = model.with_lags(x) if keeps else x
        said.append(model.predict_one(kept))
        waiting.append((kept, y))
        if len(waiting) > delay:
            model.learn_one(*waiting.popleft())
    return np.array(said)


def test_lags_of_late_labels_are_those_of_the_prediction():
    """Kept they help still; taken again they harm: those of learning are nearer to the target than at prediction."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(1_200, 2))
    ys = 10 * np.sin(np.arange(1_200) * 2 * np.pi / 9) + X[:, 0] + 0.3 * rng.normal(size=1_200)
    xs = [dict(zip("ab", row, strict=True)) for row in X.tolist()]
    errors = {}
    for how, lags, keeps in (("none", 0, False), ("kept", 3, True), ("anew", 3, False)):
        said = _late(_model(AdaptiveKernelRegressor, lags), xs, ys.tolist(), 6, keeps)
        errors[how] = np.abs(said - ys)[200:].mean()
    assert errors["kept"] < 0.7 * errors["none"]
    assert errors["anew"] > 2 * errors["kept"]


def test_transitions_of_late_labels_are_those_of_the_prediction():
    labels = ["abc"[i // 40 % 3] if i % 40 else "d" for i in range(1_200)]
    xs = [{"a": float(i % 5)} for i in range(1_200)]
    right = {}
    for how, lags, keeps in (("none", 0, False), ("kept", 1, True)):
        said = _late(_model(AdaptiveKernelClassifier, lags), xs, labels, 6, keeps)
        right[how] = np.mean(said[200:] == np.array(labels[200:]))
    assert right["kept"] > right["none"] - 0.02
