"""Honest uncertainty, and the inputs that matter: bounds far looser than what was measured."""

import math

import numpy as np
import pytest
from river import datasets
from river.datasets import synth

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor
from tests.adaptive.experts import without_stacks

#: 90% of a Gaussian lie within so many deviations.
NINETY = 1.6448536269514722


def expected_calibration_error(labels, probabilities, bins=10):
    """Mean distance, over records, of confidence and accuracy among records of like confidence."""
    confidence = np.array([max(p.values()) for p in probabilities])
    hit = np.array([max(p, key=p.get) == label for label, p in zip(labels, probabilities, strict=True)])
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    return sum(abs(np.sum((confidence - hit)[place == b])) for b in range(bins)) / len(hit)


@pytest.mark.parametrize(
    ("stream", "bound"),
    [
        (datasets.Bananas().take(2_500), 0.03),
        (synth.Waveform(seed=1).take(2_000), 0.04),
        (synth.Agrawal(classification_function=3, seed=1).take(2_000), 0.05),
    ],
    ids=["Bananas", "Waveform", "Agrawal"],
)
def test_probabilities_are_calibrated(stream, bound):
    xs, ys = zip(*stream, strict=True)
    probabilities = AdaptiveKernelClassifier(seed=1).advance(xs, ys).probabilities
    # At first, a model knows neither the classes nor anything of them.
    assert expected_calibration_error(ys[100:], probabilities[100:]) < bound


@pytest.fixture(scope="module")
def friedman():
    """A model and, of each record from the 201st on, the mean and the deviation that it gave, and the target."""
    model = AdaptiveKernelRegressor(seed=1)
    xs, ys = zip(*synth.Friedman(seed=1).take(5_000), strict=True)
    made = model.advance(xs, ys)
    return model, np.array([made.predictions, made.deviations, ys])[:, 200:]


def test_the_90_percent_interval_covers_85_to_95_percent(friedman):
    _, (mu, sigma, y) = friedman
    inside = np.abs(y - mu) <= NINETY * sigma
    assert 0.85 <= inside.mean() <= 0.95
    for part in np.array_split(inside, 4):
        assert 0.85 <= part.mean() <= 0.95


def test_the_five_relevant_inputs_of_friedman_rank_first(friedman):
    model, _ = friedman
    ranked = sorted(model.feature_importances_.items(), key=lambda item: -item[1])
    assert {name for name, _ in ranked[:5]} == set("01234")
    assert ranked[4][1] > 5 * ranked[5][1]


def test_the_relevant_inputs_of_a_classification_rank_first():
    """Whether two of ten numbers agree in sign, which neither tells alone."""
    rng = np.random.default_rng(0)
    model = AdaptiveKernelClassifier(seed=1)
    xs = [{f"x{j}": float(v) for j, v in enumerate(row)} for row in rng.normal(size=(2_200, 10))]
    model.advance(xs, [x["x3"] * x["x7"] > 0 for x in xs])
    ranked = sorted(model.feature_importances_, key=model.feature_importances_.get, reverse=True)
    assert set(ranked[:2]) == {"x3", "x7"}


@pytest.mark.parametrize("drift", [0.0, 0.005])
def test_the_mixture_leans_on_a_drifting_head_when_the_stream_drifts(drift):
    """On the average: it looks back a hundred records, and so changes its mind."""
    rng = np.random.default_rng(0)
    model, still, drifting = AdaptiveKernelRegressor(n_features=32, n_trees=0, memory=0, seed=1), [], []
    for i in range(2_000):
        x = {f"x{j}": float(v) for j, v in enumerate(rng.normal(size=4))}
        y = x["x0"] * math.cos(drift * i) + x["x1"] * math.sin(drift * i) + 0.1 * float(rng.normal())
        model.learn_one(x, y)
        if i >= 1_000:
            weights = without_stacks(model)
            for said, rate in ((still, "0"), (drifting, "0.03")):
                said.append(sum(weights[f"{scale}head, drift {rate}"] for scale in ("", "asinh ")))
    if drift:
        assert np.mean(drifting) > 0.9
    else:
        assert np.mean(still) > 2 * np.mean(drifting)
