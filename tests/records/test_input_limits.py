"""Inputs past the limit, and calls that are long or of very many names."""

import math
import tracemalloc
import warnings

import pandas as pd
import pytest
from river.optim.losses import Squared

import streamkernel.records.batches
import streamkernel.records.inputs
from streamkernel.records.batches import SLICE, BatchEncoder
from streamkernel.records.inputs import Inputs
from streamkernel.records.targets import Numbers
from tests.records.regressors import learned, regressor

HUGE = 10**400


def test_inputs_past_the_limit_are_ignored_counted_and_warned_of_once():
    model = regressor(max_inputs=2)
    model.learn_one({"a": 1.0, "b": 2.0}, 1.0)
    with pytest.warns(RuntimeWarning, match="^inputs past max_inputs=2") as caught:
        model.learn_one({"a": 1.0, "c": 2.0, "d": "text"}, 1.0)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.n_ignored_inputs == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn_one({"c": 2.0}, 1.0)
        model.predict_one({"c": 2.0, "e": 1.0})
        model.learn_one({"c": 2.0}, None)
    assert model.n_ignored_inputs == 3
    assert sorted(model.input_names) == ["a", "b"]


@pytest.mark.parametrize(
    "call",
    [
        lambda model: model.learn_one({"a": 1.0, "b": 2.0}, 1.0),
        lambda model: model.learn_many(pd.DataFrame({"a": [1.0], "b": [2.0]}), [1.0]),
        lambda model: model.advance([{"a": 1.0, "b": 2.0}], [1.0]),
    ],
    ids=["learn_one", "learn_many", "advance"],
)
def test_the_warning_points_at_the_caller(call):
    with pytest.warns(RuntimeWarning, match="max_inputs") as caught:
        call(regressor(max_inputs=1))
    # The lambda's own line, not that of its caller.
    assert caught[0].lineno == call.__code__.co_firstlineno


@pytest.mark.parametrize("value", [math.inf, -math.inf, HUGE, math.nan, True, None])
def test_a_long_call_checks_what_its_sum_would_hide(value):
    model = learned()
    before = model.state_digest()
    xs = [{"x0": 1e308, "x1": 1e308}] * SLICE + [{"x0": math.nan, "x1": value}]
    if value in (math.inf, -math.inf, HUGE):
        with pytest.raises(ValueError, match="input 'x1' is infinite"):
            model.advance(xs, [1.0] * len(xs))
        assert model.state_digest() == before
    else:
        model.advance(xs, [1.0] * len(xs))
        assert model.n_records == 50 + SLICE + 1


def test_a_user_who_makes_warnings_errors_is_not_left_with_half_a_call():
    models = [regressor(max_inputs=1) for _ in range(2)]
    calls = [[{"a": 1.0}, {"b": 1.0}, {"a": 3.0}], [1.0, 2.0, 3.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning):
            models[0].advance(*calls)
        warnings.simplefilter("ignore")
        models[1].advance(*calls)
    assert models[0].state_digest() == models[1].state_digest()


@pytest.mark.parametrize("targets", [[None], [1.0]], ids=["predicted", "learned"])
def test_a_long_call_of_strings_that_never_come_twice_takes_no_more_memory_than_a_short_one(targets):
    """A row has a column for each of them, so that all rows at once would take the square of their number."""
    model = regressor(cache_bytes=0, max_features=4)
    xs = [{f"id{i % 50}": str(i)} for i in range(3000)]  # few enough values of each to be inputs all
    tracemalloc.start()
    model.advance(xs, targets * len(xs))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6


def test_records_of_many_names_are_taken_few_at_a_time(monkeypatch):
    """Each might bring columns of its own, and all of them times all records is what memory must hold."""
    monkeypatch.setattr(streamkernel.records.batches, "CELLS", 10_000)
    intake = BatchEncoder(Inputs(10, True), Numbers(Squared()))
    xs = [dict.fromkeys(map(str, range(100)), 1.0)] * 30 + [{"a": 1.0}] * 300
    parts = [part for part, _ in intake.encoded(xs, [None] * 330)]
    assert [part.start for part in parts][1:] == [part.stop for part in parts][:-1]
    assert parts[-1].stop == 330
    assert max(part.stop - part.start for part in parts[:-1]) <= 256
    assert [part.stop for part in parts[:3]] == [10, 20, 30]
