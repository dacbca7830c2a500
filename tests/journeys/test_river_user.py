"""A user of River with a notebook: pipelines, metrics, mini-batches, explanations, drift, saving and loading."""

from __future__ import annotations

import copy
import math
import pickle
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from river import compose, evaluate, metrics

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor, KernelClassifier
from tests.journeys.orders import orders

Record = tuple[dict[str, Any], Any]
QUICK = {"n_features": 32, "seed": 1}


def sensors(n: int, changes_at: int | None = None) -> Iterator[Record]:
    draw = random.Random(3)
    for number in range(n):
        a, b, c = (draw.uniform(-1, 1) for _ in range(3))
        changed = changes_at is not None and number >= changes_at
        yield {"a": a, "b": b, "c": c}, (a * c > 0 if changed else a * a + b * b < 0.6)


@pytest.fixture(scope="module")
def learned() -> AdaptiveKernelClassifier:
    model = AdaptiveKernelClassifier(**QUICK)
    for x, y in sensors(600):
        model.learn_one(x, y)
    return model


def test_a_pipeline_over_a_table_with_texts_gaps_and_odd_names() -> None:
    rows = [{**row, "price": float(row["price"].replace("n/a", "nan"))} for row in orders(500)]
    late = [row["late"] for row in rows]
    model = (
        compose.Discard("order id", "placed at", "late")
        | compose.TransformerUnion(compose.SelectType(str), compose.SelectType(float) | compose.Prefixer("number "))
        | AdaptiveKernelClassifier(**QUICK)
    )
    metric = metrics.Accuracy() + metrics.LogLoss()
    evaluate.progressive_val_score(zip(rows, late, strict=True), model, metric)
    accuracy, log_loss = (one.get() for one in metric)
    assert accuracy > max(late.count("yes"), late.count("no")) / len(late) - 0.02
    assert math.isfinite(log_loss)
    assert "AdaptiveKernelClassifier" in repr(model)


@pytest.mark.parametrize("estimator", [AdaptiveKernelClassifier, KernelClassifier])
def test_mini_batches_give_the_same_model(estimator: type[Any]) -> None:
    frame = pd.DataFrame([x for x, _ in sensors(400)])
    labels = pd.Series([y for _, y in sensors(400)])
    settings = QUICK if estimator is AdaptiveKernelClassifier else {"seed": 1, "max_features": 128}
    one_by_one, batched = estimator(**settings), estimator(**settings)
    for x, y in sensors(400):
        one_by_one.learn_one(x, y)
    for begin in range(0, 400, 64):
        batched.learn_many(frame[begin : begin + 64], labels[begin : begin + 64])
    assert batched.state_digest() == one_by_one.state_digest()
    many = batched.predict_many(frame)
    assert many.tolist() == [batched.predict_one(x) for x, _ in sensors(400)]


def test_explained(learned: AdaptiveKernelClassifier) -> None:
    x = {"a": 0.1, "b": 0.2, "c": 0.9}
    shares = learned.explain_one(x, label=True)
    base = learned.predict_proba_one({})[True]
    assert sum(shares.values()) == pytest.approx(learned.predict_proba_one(x)[True] - base)
    assert abs(shares["c"]) < max(abs(shares["a"]), abs(shares["b"]))
    importances = learned.feature_importances_
    assert importances["c"] == min(importances.values())
    with pytest.raises(ValueError, match=r"label 'maybe' was not seen yet: use one of .*True"):
        learned.explain_one(x, label="maybe")


@pytest.mark.parametrize(
    "x",
    [
        {},
        {"unseen": 1.0},
        {"a": 0.5, "": 2, "a\nb": 1, "ü" * 10_000: 3.0},
        {"unseen": "a text", "\x1b[2J": "another", "": ""},
        {"a": None, "b": math.nan},
        {f"new {number}": number for number in range(30)},
        {("a", "tuple"): 1.0, 7: 2.0},
    ],
    ids=["nothing", "unseen", "odd names", "texts", "missing", "many", "other keys"],
)
def test_explained_with_inputs_it_never_saw(learned: AdaptiveKernelClassifier, x: dict[Any, Any]) -> None:
    before = learned.state_digest()
    shares = learned.explain_one(x)
    assert shares.keys() == x.keys()
    assert all(map(math.isfinite, shares.values()))
    # A number that no record brought before moves nothing; a text does, as it would if it were learned.
    assert all(
        shares[name] == pytest.approx(0, abs=1e-12) for name in x if name != "a" and not isinstance(x[name], str)
    )
    assert learned.state_digest() == before


def test_saved_copied_and_gone_on_with(learned: AdaptiveKernelClassifier) -> None:
    loaded, copied = pickle.loads(pickle.dumps(learned)), copy.deepcopy(learned)
    assert loaded.predict_proba_one({"a": 0.1}) == learned.predict_proba_one({"a": 0.1})
    for x, y in list(sensors(620))[600:]:
        assert loaded.predict_proba_one(x) == copied.predict_proba_one(x)
        loaded.learn_one(x, y)
        copied.learn_one(x, y)
    assert loaded.state_digest() == copied.state_digest() != learned.state_digest()
    assert learned.clone().predict_one({"a": 1.0}) is None


def test_numbers_with_their_deviation_and_odd_targets() -> None:
    model = AdaptiveKernelRegressor(**QUICK)
    draw = np.random.default_rng(1)
    frame = pd.DataFrame({"t": draw.uniform(-2, 2, 300)})
    targets = np.sin(2 * frame["t"]) + draw.normal(0, 0.1, 300)
    targets[::50] = math.nan  # unlabeled
    model.learn_many(frame, targets)
    law = model.predict_one({"t": 0.7}, with_dist=True)
    assert abs(law.mu - math.sin(1.4)) < 0.2
    assert 0 < law.sigma < 1
    with pytest.raises((TypeError, ValueError), match="use its calendar parts"):
        model.learn_one({"t": pd.Timestamp("2024-01-01")}, 1.0)
    assert abs(model.predict_one({"t": 0.7}) - law.mu) < 1e-12
