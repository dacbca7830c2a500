"""What users read off the default growth has no bias: a mean probability, and the share of targets below a quantile."""

import numpy as np
import pytest

from streamkernel import KernelClassifier
from streamkernel.growth import CDSG

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


def dicts(X):
    return [dict(enumerate(row)) for row in X.tolist()]
