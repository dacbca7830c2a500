"""How much each input matters to a growing machine: against finite differences, and on functions that are known."""

import functools
import math

import numpy as np
import pytest
from river.datasets import synth

from streamkernel import KernelClassifier, KernelRegressor
from streamkernel.compute.moments import M2
from streamkernel.estimators.base import machine_of
from streamkernel.growth.sensitivity import N_POINTS, points, sensitivities
from streamkernel.kernels import Gaussian

MODELS = {
    "drawn": lambda: KernelRegressor(Gaussian(2.0), batch_size=8, dtype="float64", seed=1),
    "no cache": lambda: KernelRegressor(Gaussian(2.0), batch_size=8, dtype="float64", cache_bytes=0, seed=1),
    "structured": lambda: KernelRegressor(Gaussian(2.0, structured=True), batch_size=8, seed=1),
    "classes": lambda: KernelClassifier(Gaussian(2.0), batch_size=8, dtype="float64", seed=1),
    "raw": lambda: KernelRegressor(Gaussian(2.0), batch_size=8, dtype="float64", standardize=False, seed=1),
}


@functools.cache
def _learnt(name):
    model, rng = MODELS[name](), np.random.default_rng(0)
    for i, row in enumerate(rng.normal(size=(300, 3)).tolist()):
        y = math.sin(2 * row[0]) + 0.3 * row[1] + (i % 3 == 0)
        x = {**dict(zip("abc", row, strict=True)), "kind": "pqr"[i % 3], "same": 5.0}
        model.learn_one(x, round(y) if name == "classes" else y)
    return model


def _twin(model):
    """The same by central differences of the scores, point by point."""
    machine = machine_of(model)
    X, variances = points(machine.inputs)
    step = 1e-2 if machine.expansion.dtype == np.float32 else 1e-5
    found = np.zeros(len(variances))
    for x in X:
        for j in range(len(x)):
            shift = np.zeros(len(x))
            shift[j] = step
            both = np.array([x + shift, x - shift], machine.expansion.dtype)
            high, low = machine.expansion.scores(both, machine.inputs.columns.keys, np.zeros(0, np.uint64))
            found[j] += np.sum(((high - low) / (2 * step)) ** 2) * variances[j] / len(X)
    return found


@pytest.mark.parametrize("name", MODELS)
def test_slopes_are_those_of_the_scores(name):
    model = _learnt(name)
    found = sensitivities(machine_of(model).expansion, machine_of(model).inputs)
    rough = name == "structured"
    assert found == pytest.approx(_twin(model), rel=3e-2 if rough else 1e-5, abs=1e-3 if rough else 1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_importances_are_shares_by_name_and_follow_from_the_state(name):
    model = _learnt(name)
    before, found = model.state_digest(), model.feature_importances_
    assert list(found) == model.input_names
    assert sum(found.values()) == pytest.approx(1)
    assert (found["same"] == 0) == (name != "raw")
    assert model.state_digest() == before
    assert model.clone(include_attributes=True).feature_importances_ == found
    assert MODELS[name]().feature_importances_ == {}


@pytest.mark.parametrize("kind", [KernelRegressor, KernelClassifier])
def test_of_friedmans_function_the_five_that_matter_are_found(kind):
    model = kind(batch_size=8, seed=1)
    for x, y in synth.Friedman(seed=1).take(2_500):
        model.learn_one(x, y if kind is KernelRegressor else y > 14)
    found = model.feature_importances_
    assert set(sorted(found, key=found.get)[-5:]) == {"0", "1", "2", "3", "4"}


def test_points_are_what_they_are_said_to_be():
    model = _learnt("drawn")
    inputs = machine_of(model).inputs
    X, variances = points(inputs)
    names = model.input_names
    assert X.shape == (N_POINTS, len(names))
    for j, name in enumerate(names):
        if name in "abc":
            assert abs(X[:, j].mean()) < 0.25
            assert X[:, j].std() == pytest.approx(1, abs=0.2)
            assert variances[j] == 1
        elif name == "same":
            assert inputs.scaler.moments[j, M2] == 0
            assert not X[:, j].any()
        else:
            assert X[:, j].mean() == pytest.approx(1 / 4, abs=0.1)
            assert variances[j] == 3 / 16
    kinds = [j for j, name in enumerate(names) if name.startswith("kind=")]
    assert set(X[:, kinds].sum(axis=1)) == {0, 1}


def test_many_outputs_are_watched_by_sums_of_them():
    """In these, as in the outputs, the one input that tells the classes apart matters most."""
    model, rng = KernelClassifier(batch_size=8, seed=1), np.random.default_rng(0)
    for row in rng.uniform(0, 40, size=(1_500, 3)).tolist():
        model.learn_one(dict(zip("abc", row, strict=True)), int(row[1]))
    assert len(model.classes) == 40
    found = model.feature_importances_
    assert max(found, key=found.get) == "b"
