"""String inputs whose values hardly ever come twice get few indicators, however the stream is cut."""

import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel import KernelRegressor
from streamkernel.records.inputs import Inputs
from streamkernel.records.repeats import FREE, LOGGED_AFTER, PER_ROOT
from tests.records.regressors import regressor


def encode(inputs, values, name="id"):
    return inputs.encode([{name: value} for value in values], [True] * len(values))


def known(inputs, name="id"):
    return len(inputs.columns.indicators.get(name, {}))


def test_an_input_that_never_repeats_has_no_more_than_the_free_indicators():
    inputs = Inputs(10_000, True)
    encode(inputs, [f"order {i}" for i in range(3000)])
    assert known(inputs) == len(inputs) == FREE
    assert inputs.n_ignored == 0  # that is what is past max_inputs


@pytest.mark.parametrize(("cardinality", "records"), [(100, 2000), (200, 3000), (500, 8000)])
def test_an_input_whose_values_repeat_gets_them_all(cardinality, records):
    inputs = Inputs(10_000, True)
    values = np.random.default_rng(1).integers(0, cardinality, records)
    for start in range(0, records, 500):
        encode(inputs, [f"v{i}" for i in values[start : start + 500]])
    assert known(inputs) >= 0.99 * cardinality


@given(st.lists(st.integers(0, 400), max_size=600), st.integers(1, 600))
def test_there_are_never_more_indicators_than_repetitions_allow(values, cut):
    inputs = Inputs(10_000, True)
    encode(inputs, [f"v{i}" for i in values[:cut]])
    encode(inputs, [f"v{i}" for i in values[cut:]])
    state = inputs.state()
    repeats = {name[1]: n for name, n in state.get("input_repeats", [])}.get("id", 0)
    assert known(inputs) <= FREE + PER_ROOT * repeats**0.5 + 1
    assert repeats <= len(values) - known(inputs)
    twin = Inputs(10_000, True)
    twin.load_state(state)
    assert twin.state()["input_repeats" if values else "columns"] == state["input_repeats" if values else "columns"]


def test_a_failed_call_takes_its_repetitions_back():
    model = regressor()
    model.learn_one({"a": 1.0, "id": "x"}, 1.0)
    before = model.state_digest()
    with pytest.raises(ValueError, match="infinite"):
        model.advance([{"a": 1.0, "id": "x"}, {"a": float("inf"), "id": "x"}], [1.0, 2.0])
    assert model.state_digest() == before


def test_the_log_names_the_input_once(caplog):
    model = regressor(max_features=4)
    with caplog.at_level(logging.WARNING, "streamkernel"):
        model.advance([{"order": f"o{i}"} for i in range(FREE + LOGGED_AFTER - 1)], [1.0] * (FREE + LOGGED_AFTER - 1))
        assert not caplog.records
        model.advance([{"order": f"p{i}"} for i in range(500)], [1.0] * 500)
    (record,) = caplog.records
    assert "input 'order' rarely has the same value twice" in record.getMessage()


def test_numbers_as_text_are_told_as_such(caplog):
    model = regressor(max_features=4)
    model.advance([{"x": f"{i / 7:.3f}", "code": f"{i}x"} for i in range(200)], [1.0] * 200)
    numbers, codes = sorted(caplog.messages, key=lambda told: "rarely" in told)
    assert numbers == (
        "input 'x' comes as text and all its values are numbers, each of which counts as a category: convert it to "
        "float, such as with converters={'x': float} of River's iter_csv"
    )
    assert codes.startswith("input 'code' rarely has the same value twice")


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        [[["str", "other"], 1]],
        [[["str", "id"], -1]],
        [[["str", "id"], True]],
        [[["str", "id"], False]],
        [["id", 1]],
        [1],
    ],
)
def test_repetitions_that_cannot_be_are_refused(wrong):
    model = KernelRegressor(seed=1)
    model.learn_one({"id": "x"}, 1.0)
    with pytest.raises(ValueError, match="input_repeats"):
        model.__setstate__({**model.__getstate__(), "input_repeats": wrong})
