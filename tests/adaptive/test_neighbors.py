"""Models with a memory, on streams: cuts, saves, weights, metrics, and what neighbors are for."""

import math
import pickle

import numpy as np
import pytest

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor
from streamkernel.estimators.base import machine_of

BOTH = pytest.mark.parametrize("kind", [AdaptiveKernelClassifier, AdaptiveKernelRegressor])


def _model(kind, **given):
    return kind(
        **{"n_features": 8, "n_trees": 2, "tree_window": 60, "buffer_size": 60, "memory": 40, "seed": 1, **given}
    )


def _stream(kind, n=330, seed=0):
    """Numbers of few values, so that many records are as near as others; strings, gaps, late inputs and classes."""
    rng = np.random.default_rng(seed)
    xs, ys, ws = [], [], rng.choice([0.0, 0.5, 1.0, 1.0, 1.0, 3.0], n).tolist()
    for i, (a, b, c) in enumerate(rng.integers(0, 4, size=(n, 3)).tolist()):
        x = {"a": a, "b": b if i % 7 else None, "word": "pqrs"[c if i > 200 else c % 2]}
        if i > 120:
            x["late"] = float(c)
        value = a - b + (c if i > 120 else 0)
        label = "nym"[(value > 0) + (i > 250 and c == 0)]
        ys.append((10.0 + value if kind is AdaptiveKernelRegressor else label) if i % 11 != 5 else None)
        xs.append(x)
    return xs, ys, ws


@BOTH
@pytest.mark.parametrize("weighted", [0, 1, 30])
def test_a_metric_is_learned_of_what_has_weight(kind, weighted):
    model = _model(kind, metric_schedule=(20, 100))
    xs, ys, _ = _stream(kind, 120)
    ws = [float(i >= 100 - weighted) for i in range(120)]
    model.advance(xs, [y or ys[0] for y in ys], ws)
    assert (model.n_metric_relearnings == 0) == (weighted == 0)
    assert all(math.isfinite(weight) for weight in model.expert_weights.values())
    assert pickle.loads(pickle.dumps(model)).state_digest() == model.state_digest()


@BOTH
def test_distances_are_of_the_metric_learned_last(kind):
    """And of a model that was loaded, before it learns another."""
    model = _model(kind, metric_schedule=(100, 200))
    xs, ys, _ = _stream(kind)
    metrics = []
    for stop in (99, 160, 199, 260):  # a metric takes some records
        model.advance(xs[model.n_records : stop], [y or ys[0] for y in ys[model.n_records : stop]])
        for one in (model, pickle.loads(pickle.dumps(model))):
            machine = machine_of(one)
            scales = machine.core.columns.scales.astype(np.float32).tolist()
            assert machine.experts.memory.arrays.scales.tolist() == scales
        metrics.append(scales[:3])
    assert metrics[0] != metrics[1] == metrics[2] != metrics[3]


def test_targets_of_another_size_make_the_residuals_begin_anew():
    """A unit that changes: what neighbors left over before is nothing to go by."""
    rng = np.random.default_rng(0)
    model = _model(AdaptiveKernelRegressor, memory=2_000)
    largest = []
    for i in range(1_600):
        a = float(rng.normal())
        model.learn_one({"a": a}, (a + float(rng.normal())) * (1e6 if i < 100 else 1.0))
        residuals = machine_of(model).experts.memory.arrays.residuals
        largest.append(float(np.abs(residuals).max()))
    assert largest[99] > 1e5
    assert largest[-1] < 1e3
    fell = next(i for i in range(100, 1_600) if largest[i] < 1e5)
    assert largest[fell] == 0.0  # all of them at once
    assert math.isfinite(model.predict_one({"a": 0.0}))
