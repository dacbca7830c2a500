"""Honest uncertainty, and the inputs that matter: bounds far looser than what was measured."""

import numpy as np
import pytest
from river import datasets
from river.datasets import synth

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor

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
