"""States that do not fit or hold impossible values: refused by the field's name, and nothing is changed."""

import math

import numpy as np
import pytest

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor, KernelClassifier
from tests.learnt import KINDS, learnt


def _reshaped(record):
    """Records that do not fit together, one fault each."""
    for name, value in record.items():
        if not isinstance(value, np.ndarray):
            continue
        yield name, {**record, name: value[:-1]}
        yield name, {**record, name: np.concatenate([value, value[-1:]])}
        yield name, {**record, name: value[..., None]}
        yield name, {**record, name: value[None]}
        if value.size:
            yield name, {**record, name: np.array(value.flat[0])}
        yield name, {**record, name: value.astype("U")}
        yield name, {**record, name: value.tolist()}
        if value.ndim > 1:
            yield name, {**record, name: value[..., :-1]}
            yield name, {**record, name: np.concatenate([value, value[..., -1:]], axis=-1)}


@KINDS
@pytest.mark.parametrize("n", [150, 210])
def test_a_record_whose_arrays_do_not_fit_is_refused_and_changes_nothing(n, kind):
    """Compiled code does not check bounds: a forged checkpoint must not reach it."""
    record = learnt(n=n, kind=kind).__getstate__()
    other = learnt(n=50, kind=kind)
    before = other.state_digest()
    cases = list(_reshaped(record))
    assert len(cases) > 30
    for name, forged in cases:
        # It has the inputs that there were at the last metric, fewer where some came later.
        if (
            name == "importance"
            and isinstance(forged[name], np.ndarray)
            and forged[name].shape == (len(record[name]) - 1,)
        ):
            continue
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
    record = learnt(kind=kind).__getstate__()
    other = learnt(n=50, kind=kind)
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


@pytest.mark.parametrize("value", [-1.0, 2.0, 0.5, 1e18])
def test_a_buffered_label_that_no_class_has_is_refused(value):
    """It would index an array at the next metric, weeks after the checkpoint was read."""
    targets = learnt(kind=AdaptiveKernelClassifier).__getstate__()["recent_targets"]
    _assert_impossible(AdaptiveKernelClassifier, "recent_targets", np.append(targets[:-1], value))


@pytest.mark.parametrize("kind", [AdaptiveKernelClassifier, AdaptiveKernelRegressor])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_adaptive_record_that_would_predict_nonsense_is_refused(kind, value):
    """Nothing that a stream does leads there, so it is damage.

    But an input of the trees' window may not have been observed, and a threshold may part those that were from those
    that were not.
    """
    record = learnt(kind=kind).__getstate__()
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


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (AdaptiveKernelRegressor, "squared_errors", -1.0),
        (AdaptiveKernelClassifier, "log_temperatures", -1e-9),
        (AdaptiveKernelClassifier, "log_temperatures", 1e3),
    ],
)
def test_finite_numbers_that_no_stream_leads_to_are_refused(kind, name, value):
    """They would make a deviation or a probability NaN."""
    _assert_impossible(kind, name, np.full_like(learnt(kind=kind).__getstate__()[name], value))


@KINDS
def test_a_record_that_lacks_a_field_is_refused_and_changes_nothing(kind):
    record = learnt(kind=kind).__getstate__()
    other = learnt(n=50, kind=kind)
    before = other.state_digest()
    for name in record.keys() - {"input_repeats"}:  # a state of an earlier version has none
        rest = {key: value for key, value in record.items() if key != name}
        with pytest.raises(ValueError, match=r"state"):
            other.__setstate__(rest)
        assert other.state_digest() == before


@pytest.mark.parametrize("column", [-1.0, 0.5, 2.0, 1e300])
def test_a_waiting_record_of_a_class_without_a_column_is_refused(column):
    model = KernelClassifier(seed=1, batch_size=8)
    for i in range(210):
        model.learn_one({"a": i % 7}, i % 2)
    state = model.__getstate__()
    forged = state["batch_targets"].copy()
    forged[0] = column
    with pytest.raises(ValueError, match="its field 'batch_targets'"):
        model.__setstate__({**state, "batch_targets": forged})
