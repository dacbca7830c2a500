"""What users read off the default growth has no bias: a mean probability, and the share of targets below a quantile."""

import math

import numpy as np
import pytest

from streamkernel import KernelClassifier, KernelRegressor
from streamkernel.growth import CDSG
from streamkernel.losses import Quantile

LONGER = CDSG(cap=2.0)


def rare(n, seed):
    """Records with a label that is True of one in ten; rows, labels and the chances of True."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    chances = 1 / (1 + np.exp(3.0 - 1.5 * np.sin(2 * X[:, 0]) - X[:, 1]))
    return X, rng.random(n) < chances, chances


def calibration(growth, precondition, seed=2):
    """The mean probability less the mean chance of the last 10,000 records of 20,000, each predicted before."""
    X, y, chances = rare(20_000, seed)
    model = KernelClassifier(growth=growth, precondition=precondition, seed=seed)
    model.learn_many(X[:10_000], y[:10_000])
    predicted = model.advance(dicts(X[10_000:]), y[10_000:].tolist()).probabilities
    return np.mean([p[True] for p in predicted]) - chances[10_000:].mean()


@pytest.mark.parametrize("precondition", [True, False], ids=["preconditioned", "plain"])
def test_the_mean_probability_is_the_share_of_a_rare_label(precondition):
    assert rare(200_000, 9)[2].mean() == pytest.approx(0.095, abs=5e-4)
    assert abs(calibration(CDSG(), precondition)) < 0.005
    assert calibration(LONGER, precondition) > 0.008


def friedman(X):
    return 10 * np.sin(math.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


def wave(X):
    return np.sin(2 * X[:, 0]) + X[:, 1]


#: A truth, the law of its inputs, and their number.
TRUTHS = {"friedman": (friedman, np.random.Generator.random, 10), "wave": (wave, np.random.Generator.normal, 3)}
#: Draws of a noise, and the chance that it is below a number.
NOISES = {
    "normal": (np.random.Generator.normal, np.vectorize(lambda r: (1 + math.erf(r / math.sqrt(2))) / 2)),
    "exponential": (np.random.Generator.exponential, lambda r: 1 - np.exp(-np.maximum(r, 0))),
}


def coverage(growth, truth, alpha, noise, seeds, half=10_000):
    """The mean chance that a target is below its prediction, less alpha: on the way, and of models that are left.

    Each model learns `half` records, and is then looked at after each of twelve parts of as many again: its last few
    mini-batches move a single look by points, of which the mean has little left.
    """
    on_the_way, left = [], []
    (of, draw, d), (draw_noise, below) = TRUTHS[truth], NOISES[noise]
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X, new = draw(rng, size=(2 * half, d)), draw(rng, size=(500, d))
        y = of(X) + draw_noise(rng, size=len(X))
        model = KernelRegressor(loss=Quantile(alpha), growth=growth, max_features=1024, seed=seed)
        model.learn_many(X[:half], y[:half])
        for part in np.array_split(np.arange(half, 2 * half), 12):
            made = model.advance(dicts(X[part]), y[part].tolist()).predictions
            on_the_way.append(below(np.array(made) - of(X[part])).mean())
            left.append(below(np.asarray(model.predict_many(new)) - of(new)).mean())
    return np.mean(on_the_way) - alpha, np.mean(left) - alpha


def dicts(X):
    return [dict(enumerate(row)) for row in X.tolist()]
