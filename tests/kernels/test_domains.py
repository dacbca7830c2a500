"""Numbers that a kernel does not take are refused before anything is learned, by the input's name and the value."""

import math

import numpy as np
import pandas as pd
import pytest

from streamkernel import KernelClassifier, KernelRegressor
from streamkernel.domain import Domain
from streamkernel.estimators.base import machine_of
from streamkernel.kernels import (
    ArcCosine,
    Cauchy,
    ChiSquared,
    DotProduct,
    ExponentialSemigroup,
    Gaussian,
    Hellinger,
    Intersection,
    JensenShannon,
    Laplacian,
    Matern,
    Polynomial,
    ReciprocalSemigroup,
    SkewedChiSquared,
    SkewedIntersection,
)

FROM_0 = [Hellinger(), ChiSquared(), Intersection(), JensenShannon(), ExponentialSemigroup(), ReciprocalSemigroup()]
ABOVE = [SkewedChiSquared(0.5), SkewedIntersection(0.5), SkewedChiSquared(0.5) + Gaussian(1.0)]


def _model(kernel, **given):
    return KernelRegressor(kernel=kernel, batch_size=2, seed=1, **given)


WAYS = {
    "learn_one": lambda model, bad: model.learn_one(bad, 1.0),
    "weighted": lambda model, bad: model.learn_one(bad, 1.0, 2.0),
    "advance": lambda model, bad: model.advance([{"a": 1.0, "b": 2.0}, bad], [1.0, 2.0]),
    "many": lambda model, bad: model.advance([{"a": 1.0, "b": 2.0}] * 300 + [{"b": None}, bad], [1.0] * 302),
    "unlabeled": lambda model, bad: model.advance([bad], [None]),
    "predict_one": lambda model, bad: model.predict_one(bad),
    "frame": lambda model, bad: model.learn_many(pd.DataFrame([{"a": 1.0, "b": 2.0}, bad]), [1.0, 2.0]),
    "predict_many": lambda model, bad: model.predict_many(pd.DataFrame([bad])),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("kernel", "value", "wanted"),
    [(FROM_0[0], -0.25, "of at least 0"), (ABOVE[0], -0.5, "above -0.5")],
    ids=repr,
)
def test_every_way_in_refuses_before_anything_is_learned(way, kernel, value, wanted):
    model = _model(kernel)
    model.learn_one({"a": 1.0, "b": 2.0}, 1.0)
    before = model.state_digest()
    for bad in ({"a": 1.0, "b": value}, {"b": value, "new": 3.0}, {"a": value}):
        name = "a" if bad.get("a") == value else "b"
        with pytest.raises(ValueError, match=f"input '{name}' is {value:g}, which the model's kernel.* {wanted}"):
            WAYS[way](model, bad)
        assert model.state_digest() == before


@pytest.mark.parametrize("kernel", FROM_0 + ABOVE, ids=repr)
def test_each_kernel_refuses_what_it_cannot_take_and_takes_the_rest(kernel):
    model = _model(kernel)
    least = kernel.domain.least
    with pytest.raises(ValueError, match="input 'late' is -3, which the model's kernel does not accept"):
        model.learn_one({"a": 1.0, "late": -3}, 1.0)
    # What is not there counts as 0; so does the absence of all.
    for x in ({"a": 0}, {"a": None, "b": math.nan}, {}, {"a": True, "kind": "red"}, {"b": least + 1e-9}):
        model.learn_one(x, 1.0)
        model.learn_one(x, 2.0)
        assert math.isfinite(model.predict_one(x))


@pytest.mark.parametrize("kernel", [ChiSquared(), SkewedChiSquared() * Gaussian(1.0)], ids=repr)
def test_standardized_inputs_would_leave_the_domain(kernel):
    with pytest.raises(ValueError, match=r"standardize=True shifts inputs below .* leave standardize out"):
        KernelClassifier(kernel=kernel, standardize=True)
    assert not machine_of(KernelClassifier(kernel=kernel)).inputs.standardize


@pytest.mark.parametrize(
    ("kernel", "standardized"),
    [
        (Gaussian(), True),
        (Matern(), True),
        (ArcCosine(), False),
        (Polynomial(), False),
        (Gaussian() + Polynomial(), True),
    ],
    ids=repr,
)
def test_inputs_are_standardized_where_the_kernel_asks_for_it(kernel, standardized):
    assert machine_of(_model(kernel)).inputs.standardize == standardized
    assert machine_of(_model(kernel, standardize=not standardized)).inputs.standardize != standardized


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Matern(0), "nu must be a number above 0"),
        (lambda: Matern(-1.0), "nu must be a number above 0"),
        (lambda: Matern(True), "nu must be"),
        (lambda: Matern(bandwidth=-1), "bandwidth must be a positive number or None, got -1"),
        (lambda: Gaussian(0), "bandwidth must be a positive number or None, got 0"),
        (lambda: Laplacian(-2.0), "bandwidth must be a positive number or None, got -2.0"),
        (lambda: Laplacian(math.inf), "bandwidth must be"),
        (lambda: Cauchy("1"), "bandwidth must be a positive number or None, got '1'"),
        (lambda: Cauchy(math.nan), "bandwidth must be"),
        (lambda: Polynomial(0), "degree must be a whole number from 1 to 32, got 0"),
        (lambda: Polynomial(2.0), "degree must be a whole number"),
        (lambda: Polynomial(2, -1.0), "c must be a number from 0 up, got -1.0"),
        (lambda: DotProduct([]), "coefficients must be 1 to 65 numbers from 0 up, not all of them 0"),
        (lambda: DotProduct([0.0, 0.0]), "coefficients must be"),
        (lambda: DotProduct([1.0, -1.0]), "coefficients must be"),
        (lambda: DotProduct([math.nan]), "coefficients must be"),
        (lambda: DotProduct([1.0] * 66), "coefficients must be"),
        (lambda: DotProduct(1.0), "coefficients must be"),
        (lambda: SkewedChiSquared(0), "c must be a number above 0"),
        (lambda: SkewedIntersection("1"), "c must be a number above 0"),
        (lambda: ExponentialSemigroup(0.0), "beta must be a number above 0"),
        (lambda: ExponentialSemigroup(1e7), "beta must be a number above 0 and at most 1e\\+06"),
        (lambda: ReciprocalSemigroup(None), "bandwidth must be a number above 0"),
        (lambda: ArcCosine(3), "order must be 0, 1 or 2, got 3"),
        (lambda: ArcCosine(True), "order must be 0, 1 or 2, got True"),
        (lambda: Domain(1.0), "a domain must contain 0"),
        (lambda: Domain(0.0, is_open=True), "a domain must contain 0"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


def test_absent_is_inside_every_domain():
    assert not Domain(0.0).outside(np.array([np.nan, 0.0, -0.0, 1e300])).any()
