"""What each input contributes to one prediction: Shapley values, against a twin that goes through all orders."""

import itertools
import math

import numpy as np
import pytest

from streamkernel import (
    AdaptiveKernelClassifier,
    AdaptiveKernelRegressor,
    KernelClassifier,
    KernelLeastSquaresClassifier,
    KernelLeastSquaresRegressor,
    KernelRegressor,
)
from streamkernel.estimators.explanation import shapley_values
from streamkernel.kernels import Gaussian
from streamkernel.losses import Log

MODELS = {
    "adaptive classifier": lambda: AdaptiveKernelClassifier(n_features=16, seed=1),
    "adaptive regressor": lambda: AdaptiveKernelRegressor(n_features=16, seed=1),
    "growing classifier": lambda: KernelClassifier(batch_size=8, seed=1),
    "two sides": lambda: KernelClassifier(loss=Log(), batch_size=8, seed=1),
    "growing regressor": lambda: KernelRegressor(batch_size=8, seed=1),
    "least squares classifier": lambda: KernelLeastSquaresClassifier(n_features=16, seed=1),
    "least squares regressor": lambda: KernelLeastSquaresRegressor(n_features=16, seed=1),
    "structured": lambda: KernelRegressor(Gaussian(structured=True), batch_size=8, seed=1),
}


def _records(n, d=3):
    rng = np.random.default_rng(0)
    return [
        {**{f"x{j}": v for j, v in enumerate(row)}, "kind": "pqr"[i % 3]}
        for i, row in enumerate(rng.normal(size=(n, d)).tolist())
    ]


def _learned(name, d=3):
    model, xs = MODELS[name](), _records(300, d)
    ys = [x["x0"] * x["x1"] + (x["kind"] == "p") for x in xs]
    model.advance(xs, ys if "regressor" in name or name == "structured" else [y > 0.3 for y in ys])
    return model, xs


def _value(model, label=None):
    return model.predict_one if label is None else lambda x: model.predict_proba_one(x).get(label, 0.0)


def _twin(x, value):
    """The mean over all orders of what each input adds to those before it."""
    names = [name for name, v in x.items() if v is not None and v == v]
    shares = dict.fromkeys(x, 0.0)
    orders = list(itertools.permutations(names))
    for order in orders:
        held = {}
        for name in order:
            before = value(held)
            held = {n: v for n, v in x.items() if n in {*held, name}}
            shares[name] += (value(held) - before) / len(orders)
    return shares


@pytest.mark.parametrize("name", MODELS)
def test_contributions_are_those_of_the_twin_and_change_nothing(name):
    model, xs = _learned(name)
    before = model.state_digest()
    for x in (xs[0], {**xs[1], "x2": None}, {**xs[2], "kind": "new", "late": 1.0, "x1": math.nan}, {}):
        label = model.predict_one(x) if hasattr(model, "classes") else None
        value, found = _value(model, label), model.explain_one(x)
        assert list(found) == list(x)
        assert found == pytest.approx(_twin(x, value), abs=1e-5)
        assert sum(found.values()) == pytest.approx(value(x) - value({}), abs=1e-5)
        assert all(found[key] == 0.0 for key in x if x[key] is None or x[key] != x[key])
        assert model.explain_one(dict(reversed(x.items()))) == found
    assert model.state_digest() == before


@pytest.mark.parametrize("n_permutations", [1, 3, 16])
def test_of_a_sum_every_order_gives_the_summands(n_permutations):
    rng = np.random.default_rng(3)
    x = {f"x{j}": float(v) for j, v in enumerate(rng.normal(size=20))}
    found = shapley_values(x, lambda xs: np.array([sum(one.values()) for one in xs]), n_permutations)
    assert found == pytest.approx(x)


@pytest.mark.parametrize("name", ["adaptive classifier", "growing classifier", "two sides"])
def test_a_label_may_be_named(name):
    model, xs = _learned(name)
    yes, no = model.explain_one(xs[0], label=True), model.explain_one(xs[0], label=False)
    assert yes == pytest.approx({key: -share for key, share in no.items()}, abs=1e-9)
    assert model.explain_one(xs[0]) in (yes, no)
    with pytest.raises(ValueError, match=r"^label 'maybe' was not seen .*: use one of (True, False|False, True), or"):
        model.explain_one(xs[0], label="maybe")


@pytest.mark.parametrize(
    "x",
    [
        {"x0": 0.5, "": 2, "a\nb": 1, "ü" * 10_000: 3.0},
        {"unseen": "a text", "\x1b[2J": "another"},
        {f"new {number}": number for number in range(30)},
        {("a", "tuple"): 1.0, 7: 2.0},
    ],
    ids=["odd names", "texts", "many", "other keys"],
)
def test_numbers_that_no_record_brought_move_nothing(x):
    model, _ = _learned("adaptive classifier")
    shares = model.explain_one(x)
    assert shares.keys() == x.keys()
    assert all(map(math.isfinite, shares.values()))
    new = [name for name in x if name != "x0" and not isinstance(x[name], str)]
    assert all(shares[name] == pytest.approx(0, abs=1e-12) for name in new)


def test_what_is_no_input_is_refused_as_in_predictions():
    model, _ = _learned("growing regressor")
    with pytest.raises(ValueError, match="input 'x0' is infinite"):
        model.explain_one({"x0": math.inf, "x1": 1.0})
