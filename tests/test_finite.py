"""What is not finite is never written, and outliers pass: soon after them predictions are as they would be without."""

import math
import pickle

import numpy as np
import pytest

from streamkernel import (
    AdaptiveKernelClassifier,
    AdaptiveKernelRegressor,
    GaussianProcessRegressor,
    KernelClassifier,
    KernelLeastSquaresClassifier,
    KernelLeastSquaresRegressor,
    KernelRegressor,
)
from streamkernel.adaptive.core import AdaptiveCore
from streamkernel.adaptive.features import AdaptiveFeatures
from streamkernel.adaptive.lags import TargetLags
from streamkernel.adaptive.machine import LabelMachine
from streamkernel.adaptive.target_experts import LabelExperts
from streamkernel.kernels import Gaussian
from streamkernel.losses import Softmax
from streamkernel.records.classes import Classes
from streamkernel.records.inputs import Inputs
from tests.adaptive.experts import make_experts

LARGEST = 1.7976931348623157e308
ADAPTIVE = {"n_features": 4, "n_trees": 1, "tree_window": 40, "buffer_size": 20, "metric_schedule": (20, 60)}


@pytest.mark.parametrize("kind", [KernelRegressor, AdaptiveKernelRegressor, GaussianProcessRegressor])
def test_a_loss_in_units_of_a_tiny_deviation_is_finite(kind):
    losses = kind(seed=1).advance([{"a": 0.0}] * 3, [0.0, 5.928226346262121e-162, 1.0]).losses
    assert np.isfinite(losses).all()
    assert losses[2] > 1


@pytest.mark.parametrize("kind", [KernelRegressor, AdaptiveKernelRegressor, GaussianProcessRegressor])
def test_targets_past_the_largest_are_clipped_and_counted(kind):
    model = kind(seed=1)
    model.learn_one({"a": 1.0}, 1e99)
    assert model.n_clipped_targets == 0
    model.learn_one({"a": 1.0}, 1e101)
    model.learn_many(np.ones((2, 1)), [-LARGEST, 5.0])
    assert model.n_clipped_targets == 2
    assert pickle.loads(pickle.dumps(model)).n_clipped_targets == 2


def test_a_state_that_is_not_finite_is_refused_when_it_is_written_naming_the_field():
    experts = make_experts(LabelExperts, 0.1, (0.0, 1e-3), 1, 40)
    core, classes = AdaptiveCore(AdaptiveFeatures(Gaussian(), 4, 1), experts, (20,)), Classes(Softmax(), 10)
    machine = LabelMachine(Inputs(10, True), classes, core, TargetLags(0, classes))
    machine.learn([{"a": float(i)} for i in range(50)], [i % 2 for i in range(50)])
    for field, part in (("heads_W", machine.experts.heads.W), ("losses", machine.experts.losses)):
        part.flat[0] = math.nan
        with pytest.raises(ValueError, match=f"its field '{field}'"):
            machine.state()
        part.flat[0] = 0.0
    machine.inputs.scaler.moments[0, 2] = -1.0
    with pytest.raises(ValueError, match="its field 'input_moments'"):
        machine.state()


# Outliers pass --------------------------------------------------------------------------------------------------------

N, LAST = 2_000, 600
SCALE, CENTER = np.array([1.0, 20.0, 0.01]), np.array([0.0, 100.0, 5.0])
SMALL = {"n_features": 32, "n_trees": 2, "metric_schedule": (100, 250, 500, 1000)}
KINDS = {
    KernelClassifier: {"batch_size": 16},
    KernelRegressor: {"batch_size": 16},
    AdaptiveKernelClassifier: SMALL,
    AdaptiveKernelRegressor: SMALL,
    GaussianProcessRegressor: {"n_features": 32},
    KernelLeastSquaresClassifier: {"n_features": 32},
    KernelLeastSquaresRegressor: {"n_features": 32},
}
#: 1% at most, of all magnitudes: at regular places, at random ones, or in a row.
PLACES = {
    "the first two": (0, 1),
    "the first two and every 128th": (0, 1, *range(127, N, 128)),
    "at random": (0, 1, *np.random.default_rng(5).choice(N, N // 100 - 2, replace=False).tolist()),
    "the first fifty": range(50),
    "fifty in a row": range(1_000, 1_050),
    "the last fifty before": range(N - LAST - 50, N - LAST),
}
SUITE = {("at random", 1e42), ("fifty in a row", 30.0), ("the first fifty", 100.0)}
#: Those of models that take a step a record slowly.
SUITE_OF_STEPS = {("at random", 1e42), ("fifty in a row", 30.0)}
CASES = [
    pytest.param(kind, where, size, marks=() if (where, size) in suite else pytest.mark.long)
    for kind in KINDS
    for suite in (SUITE_OF_STEPS if "LeastSquares" in kind.__name__ else SUITE,)
    for where in PLACES
    for size in (8.0, 30.0, 100.0, 1e3, 1e6, 1e42, LARGEST / 20)
]


def _normal(kind):
    X = np.random.default_rng(0).normal(size=(N, 3)) * SCALE + CENTER
    y = np.sin(X[:, 0]) + (X[:, 1] - 100) / 20 + 0.3 * np.random.default_rng(1).normal(size=N)
    return X, y if "Regressor" in kind.__name__ else y > 0


def _error(kind, X, y, places):
    """Of the last normal records."""
    model = kind(**KINDS[kind], seed=1)
    predictions = model.advance([{f"x{j}": v for j, v in enumerate(row)} for row in X.tolist()], y.tolist()).predictions
    last = np.setdiff1d(np.arange(N - LAST, N), places)
    wrong = np.array(predictions[1:], np.float64)[last - 1] - y[last]
    assert pickle.loads(pickle.dumps(model)).state_digest() == model.state_digest()
    return np.abs(wrong).mean()


_PLAIN = {}


def _plain_error(kind):
    if kind not in _PLAIN:
        _PLAIN[kind] = _error(kind, *_normal(kind), ())
    return _PLAIN[kind]


@pytest.mark.parametrize(("kind", "where", "size"), CASES)
def test_one_percent_of_outliers_among_the_inputs_does_no_lasting_harm(kind, where, size):
    X, y = _normal(kind)
    places = list(PLACES[where])
    sides = np.random.default_rng(1).choice([-size, size], (len(places), 3))
    X[places] = CENTER + sides * (SCALE if size < 1e300 else 1)
    slack = 0.02 if y.dtype == bool else 0.1 * _plain_error(kind)
    assert _error(kind, X, y, places) < _plain_error(kind) + slack


@pytest.mark.parametrize("size", [1e3, pytest.param(1e42, marks=pytest.mark.long), LARGEST])
@pytest.mark.parametrize("where", ["at random", *(pytest.param(w, marks=pytest.mark.long) for w in list(PLACES)[:2])])
@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if "Regressor" in kind.__name__], ids=lambda kind: kind.__name__
)
def test_one_percent_of_outliers_among_the_targets_does_no_lasting_harm(kind, where, size):
    X, y = _normal(kind)
    places = list(PLACES[where])
    y[places] = np.random.default_rng(1).choice([-size, size], len(places))
    assert _error(kind, X, y, places) < 1.1 * _plain_error(kind)
