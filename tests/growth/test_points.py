"""The points at which a growing machine is explained: they vary as its stream did."""

import math

import numpy as np
import pytest

from streamkernel import KernelRegressor
from streamkernel.estimators.base import machine_of
from streamkernel.growth.importances import points
from streamkernel.kernels import Gaussian
from streamkernel.records.contributions import groups_of

N = 64


def _points(model, n=N):
    machine = machine_of(model)
    groups = groups_of(machine.inputs.columns)
    X = points(machine.inputs, groups, n, machine.expansion.kernel.domain)
    return {name: X[:, columns] for name, columns, _ in groups}


def _learned(n=400, **given):
    """Numbers of mean 5 and deviation 2, one of them in every fourth record, a string of which `q` is rare."""
    model, rng = (
        KernelRegressor(given.pop("kernel", Gaussian(2.0)), batch_size=8, seed=1, **given),
        np.random.default_rng(3),
    )
    for i in range(n):
        x = {"a": 5 + 2 * rng.normal(), "same": 7.0, "kind": "q" if i % 8 == 0 else "p"}
        if i % 4 == 0:
            x |= {"seldom": rng.normal(), "word": "w"}
        model.learn_one({name: abs(value) if isinstance(value, float) else value for name, value in x.items()}, x["a"])
    return model


def test_numbers_are_standard_normal_as_often_as_they_came():
    found = _points(_learned())
    assert found["a"].mean() == pytest.approx(0, abs=1e-12)
    assert found["a"].std() == pytest.approx(1, abs=0.02)
    assert not found["same"].any()
    assert np.count_nonzero(found["seldom"]) == N / 4


def test_values_of_a_string_are_as_frequent_as_they_were():
    found = _points(_learned())
    assert found["kind"].sum(axis=0).tolist() == [N / 8, N * 7 / 8]
    assert found["word"].sum() == N / 4
    assert set(np.unique(found["kind"].sum(axis=1))) == {1.0}


def test_numbers_that_are_not_standardized_have_the_mean_and_the_deviation_they_had():
    found = _points(_learned(standardize=False))
    assert found["a"].mean() == pytest.approx(5, abs=0.3)
    assert found["a"].std() == pytest.approx(2, abs=0.2)
    assert set(found["same"].ravel().tolist()) == {7.0}


def test_columns_are_drawn_by_their_names_whatever_their_order():
    found = [_points(_learned()), _points(_learned(200))]
    order = [np.argsort(each["a"].ravel()).tolist() for each in found]
    assert order[0] == order[1]
    assert math.isclose(abs(np.corrcoef(found[0]["a"].ravel(), found[0]["kind"][:, 0])[0, 1]), 0, abs_tol=0.4)
