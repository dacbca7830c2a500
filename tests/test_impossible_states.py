"""States that do not fit or hold impossible values: refused by the field's name, and nothing is changed."""

import math

import numpy as np
import pytest

from streamkernel import (
    AdaptiveKernelClassifier,
    AdaptiveKernelRegressor,
    KernelClassifier,
    KernelDensityRatio,
    KernelLeastSquaresRegressor,
    KernelNoveltyDetector,
    KernelRegressor,
)
from tests.learned import DEFAULTS, KINDS, learned, state_of


def _reshaped(record):
    """Records that do not fit together, one fault each."""
    for name, value in record.items():
        if not isinstance(value, np.ndarray):
            continue
        yield {**record, name: value[:-1]}
        yield {**record, name: np.concatenate([value, value[-1:]])}
        yield {**record, name: value[..., None]}
        yield {**record, name: value[None]}
        if value.size:
            yield {**record, name: np.array(value.flat[0])}
        yield {**record, name: value.astype("U")}
        yield {**record, name: value.tolist()}
        if value.ndim > 1:
            yield {**record, name: value[..., :-1]}
            yield {**record, name: np.concatenate([value, value[..., -1:]], axis=-1)}


@pytest.mark.parametrize(("n", "kind"), [*((150, kind) for kind in DEFAULTS), (210, KernelClassifier)])
def test_a_record_whose_arrays_do_not_fit_is_refused_and_changes_nothing(n, kind):
    """Compiled code does not check bounds: a forged checkpoint must not reach it."""
    record = state_of(kind, n)
    other = learned(n=50, kind=kind)
    before = other.state_digest()
    cases = list(_reshaped(record))
    assert len(cases) > 30
    for forged in cases:
        with pytest.raises(ValueError, match=r"^this state does not fit: its field"):
            other.__setstate__(forged)
    assert other.state_digest() == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_records", "3"),
        ("n_records", -1),
        ("columns", [["number"]]),
        ("columns", [["number", ["str", "a"]], ["number", ["str", "a"]]]),
        ("columns", None),
        ("labels", "ab"),
        ("seed", -1),
        ("seed", 2**64),
        ("seed", 0.5),
        ("bandwidth", math.nan),
        ("bandwidth", -1.0),
        ("scale", 0.0),
        ("scale", -1.0),
        ("scale", 1.5),
        ("scale", 1e308),
        ("scale", math.inf),
        ("t", -1),
        ("n_grown", 10**9),
        ("gamma_0", None),
        ("warm_up_targets", [["str", "x"]]),
    ],
    ids=str,
)
def test_a_record_with_an_impossible_value_is_refused_and_changes_nothing(name, value):
    _assert_impossible(KernelClassifier, name, value)


def _assert_impossible(kind, name, value):
    record = state_of(kind)
    other = learned(n=50, kind=kind)
    before = other.state_digest()
    with pytest.raises(ValueError, match=r"^this state does not fit: its field"):
        other.__setstate__({**record, name: value})
    assert other.state_digest() == before


@pytest.mark.parametrize("kind", [AdaptiveKernelClassifier, AdaptiveKernelRegressor])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_records", "3"),
        ("n_records", -1),
        ("columns", [["number"]]),
        ("columns", None),
        ("seed", -1),
        ("seed", 2**64),
        ("d0", 10**9),
        ("n_linear", 10**9),
        ("bandwidth", 0.0),
        ("bandwidth", math.nan),
        ("bandwidth", -1.0),
    ],
    ids=str,
)
def test_an_adaptive_record_with_an_impossible_value_is_refused_and_changes_nothing(kind, name, value):
    _assert_impossible(kind, name, value)


@pytest.mark.parametrize("kind", [AdaptiveKernelClassifier, AdaptiveKernelRegressor])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_adaptive_record_that_would_predict_nonsense_is_refused(kind, value):
    """Nothing that a stream does leads there, so it is damage.

    But an input of the trees' window may not have been observed, and a threshold may part those that were from those
    that were not.
    """
    record = state_of(kind)
    names = [name for name, field in record.items() if isinstance(field, np.ndarray) and field.dtype.kind == "f"]
    accepted = []
    for name in names:
        if (name, value) in (("window_rows", math.nan), ("tree_thresholds", math.inf)):
            continue
        damaged = record[name].copy()
        damaged.flat[0] = value
        try:
            _assert_impossible(kind, name, damaged)
        except pytest.fail.Exception:
            accepted.append(name)
    assert accepted == []


@KINDS
def test_a_record_that_lacks_a_field_is_refused_and_changes_nothing(kind):
    record = state_of(kind)
    other = learned(n=50, kind=kind)
    before = other.state_digest()
    for name in record:
        rest = {key: value for key, value in record.items() if key != name}
        with pytest.raises(ValueError, match=r"state"):
            other.__setstate__(rest)
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
