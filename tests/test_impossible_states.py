"""States that do not fit or hold impossible values: refused by the field's name, and nothing is changed."""

import math
import random

import numpy as np
import pytest

from streamkernel import (
    KernelClassifier,
    KernelDensityRatio,
    KernelLeastSquaresRegressor,
    KernelNoveltyDetector,
    KernelRegressor,
)
from tests.golden import estimators as golden
from tests.learned import learned, state_of

#: Damaged states of each model, drawn by its name.
DRAWN = 60
NOTHING = object()


def _damages(value):
    """Values that a forged state may have in place of one of its own."""
    yield from (NOTHING, None, "x", -1, 2**70, 0.5, math.nan, [["number"]], {})
    if not isinstance(value, np.ndarray):
        return
    yield from (value.astype("U"), value.tolist(), value[..., None], value[None])
    if not value.size:
        return
    yield from (value[:-1], np.concatenate([value, value[-1:]]), np.array(value.flat[0]), value[..., :-1])
    for number in (math.nan, math.inf, -math.inf, -1e30, 10**9) if value.dtype.kind == "f" else (-1, 10**6):
        for place in (0, -1):
            damaged = value.copy()
            damaged.flat[place] = number
            yield damaged


def _changed(state, name, value):
    return {key: value if key == name else own for key, own in state.items() if key != name or value is not NOTHING}


def _finite(said):
    values = said.values() if isinstance(said, dict) else [said]
    return all(not isinstance(value, float) or math.isfinite(value) for value in values)


@pytest.mark.parametrize("name", [name for name, (*_, n) in golden.MODELS.items() if n])
def test_a_damaged_state_is_refused_and_changes_nothing_or_predicts_numbers(name):
    """Compiled code does not check bounds: a forged checkpoint must not reach it."""
    model, n = golden.fresh(name), golden.MODELS[name][2]
    xs, ys = zip(*golden.records(name, 0, n), strict=True)
    model.advance(xs, ys)
    state, before = model.__getstate__(), model.state_digest()
    cases = [(field, damaged) for field, value in state.items() for damaged in _damages(value)]
    refused = 0
    for field, damaged in random.Random(name).sample(cases, DRAWN):
        other = golden.fresh(name)
        try:
            other.__setstate__(_changed(state, field, damaged))
        except ValueError:
            refused += 1
            with pytest.raises(ValueError, match="this state"):
                model.__setstate__(_changed(state, field, damaged))
            assert model.state_digest() == before, field
        else:
            assert all(map(_finite, golden.predictions(other, name))), (field, damaged)
    assert refused > DRAWN / 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_records", "3"),
        ("columns", [["number", ["str", "a"]], ["number", ["str", "a"]]]),
        ("labels", "ab"),
        ("seed", 2**64),
        ("bandwidth", -1.0),
        ("scale", 0.0),
        ("scale", 1.5),
        ("n_grown", 10**9),
        ("warm_up_targets", [["str", "x"]]),
    ],
    ids=str,
)
def test_a_record_with_an_impossible_value_is_refused_and_changes_nothing(name, value):
    record, other = state_of(KernelClassifier), learned(n=50, kind=KernelClassifier)
    before = other.state_digest()
    with pytest.raises(ValueError, match=r"^this state does not fit: its field"):
        other.__setstate__({**record, name: value})
    assert other.state_digest() == before


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (KernelRegressor(seed=1, average=True), "input_moments"),
        (KernelRegressor(seed=1, average=True), "target_moments"),
        (KernelRegressor(seed=1, average=True), "largest_gradient"),
        (KernelRegressor(seed=1, average=True), "gamma_0"),
        (KernelRegressor(seed=1, average=True), "alpha"),
        (KernelRegressor(seed=1, average=True), "average_alpha"),
        (KernelNoveltyDetector(seed=1), "threshold"),
        (KernelDensityRatio(p=True, q=False, seed=1), "sample_counts"),
        (KernelDensityRatio(p=True, q=False, seed=1), "sample_sizes"),
        (KernelDensityRatio(p=True, q=False, seed=1), "sample_means"),
        (KernelLeastSquaresRegressor(seed=1, n_features=4), "metric_scales"),
        (KernelLeastSquaresRegressor(seed=1, n_features=4), "input_moments"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_numbers_too_large_to_go_on_with_are_refused_when_they_are_read(model, name):
    """The sums of a later step would overflow, and the state be refused then, with all that was learned since."""
    model, X = model.clone(), np.random.default_rng(0).normal(size=(300, 3))
    model.batch_step(X, X[:, 0] if "Regressor" in type(model).__name__ else X[:, 0] > 0)
    state, before = model.__getstate__(), model.state_digest()
    for size in (1e308, 1e250):
        value = state[name]
        if isinstance(value, np.ndarray):
            damaged = np.full_like(value, min(size, float(np.finfo(value.dtype).max)))
        else:
            damaged = size
        with pytest.raises(ValueError, match=f"^this state does not fit: its field '{name}'"):
            model.__setstate__({**state, name: damaged})
        assert model.state_digest() == before
