"""Importances say what `explain_one` says on the average, whatever the inputs are."""

import itertools
import random

import numpy as np
import pytest
from river import datasets
from scipy.stats import spearmanr

import streamkernel as sk


def _rare_values(n=600):
    """Two numbers decide; a text of exponentially rare values is noise."""
    draw = random.Random(1)
    for _ in range(n):
        x = {"price": draw.gauss(0, 1), "age": draw.gauss(0, 1), "city": f"c{min(int(draw.expovariate(0.2)), 60)}"}
        yield x, x["price"] + 0.7 * x["age"] + draw.gauss(0, 0.3) > 0


def _mixed(n=600):
    """A number, a skewed one, a string of three values, and noise of either kind."""
    draw = random.Random(2)
    for _ in range(n):
        kind = draw.choices("pqr", [6, 3, 1])[0]
        x = {"a": draw.gauss(0, 1), "b": draw.expovariate(1), "kind": kind, "noise": draw.gauss(0, 1)}
        x["word"] = "abcdefgh"[min(int(draw.expovariate(0.7)), 7)]
        yield x, 2 * x["a"] + x["b"] + {"p": 0, "q": 1.5, "r": -1}[kind] + 0.3 * x["a"] * x["b"]


def _steps(n=600):
    """A step, a product, a number that hardly matters, and none that is centered at 0."""
    draw = random.Random(3)
    for _ in range(n):
        x = {"step": draw.uniform(5, 9), "one": draw.gauss(3, 1), "other": draw.gauss(-2, 0.8), "small": draw.random()}
        yield x, 4 * (x["step"] > 7.5) + (x["one"] - 3) * (2 * x["other"] + 5) + 0.8 * x["small"]


STREAMS = {
    "rare values": _rare_values,
    "mixed": _mixed,
    "phishing": lambda: datasets.Phishing().take(600),
    "approval": lambda: datasets.TrumpApproval().take(1_000),
    "steps": _steps,
}
NUMBERS = ("mixed", "approval", "steps")
FAMILIES = {
    "adaptive": (sk.AdaptiveKernelClassifier, sk.AdaptiveKernelRegressor),
    "growing": (sk.KernelClassifier, sk.KernelRegressor),
}


def _learned(family, stream):
    records = [*STREAMS[stream]()]
    sizes = {"n_features": 32} if family == "adaptive" else {"max_features": 256}
    model = FAMILIES[family][stream in NUMBERS](seed=1, **sizes)
    model.advance(*zip(*records, strict=True))
    return model, records


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("family", FAMILIES)
def test_they_agree_with_the_mean_contribution_to_single_predictions(family, stream):
    model, records = _learned(family, stream)
    before, found = model.state_digest(), model.feature_importances_
    assert sum(found.values()) == pytest.approx(1)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert model.state_digest() == before
    assert model.clone(include_attributes=True).feature_importances_ == found
    explained = [model.explain_one(x) for x, _ in records[::10]]
    means = {name: np.mean([abs(each[name]) for each in explained]) for name in records[0][0]}
    assert set(found) == set(map(str, means))
    assert spearmanr([found[str(name)] for name in means], [*means.values()]).statistic > 0.9 - 1e-9
    ranked = sorted(means, key=means.get, reverse=True)
    for first, second in itertools.pairwise(ranked[:4]):
        if means[second] < 0.8 * means[first]:
            assert found[str(first)] > found[str(second)]


def test_rare_values_of_a_text_without_meaning_weigh_little():
    found = _learned("adaptive", "rare values")[0].feature_importances_
    assert list(found) == ["price", "age", "city"]
    assert found["city"] < 0.1


def test_each_lag_is_an_input():
    model, draw, y = sk.AdaptiveKernelRegressor(n_features=16, lags=2, seed=1), random.Random(6), 0.0
    for _ in range(400):
        a = draw.gauss(0, 1)
        y = 0.9 * y + 0.3 * a
        model.learn_one({"a": a}, y)
    found = model.feature_importances_
    assert next(iter(found)) == "streamkernel.lag.1"
    assert set(found) == {"streamkernel.lag.1", "streamkernel.lag.2", "a"}
