"""The mean absolute contribution of each input to predictions: in closed form, and against Shapley values."""

import math

import numpy as np
import pytest

from streamkernel.estimators.explanation import shapley_values
from streamkernel.records.contributions import Group, groups_of, mean_contributions
from streamkernel.records.input_columns import InputColumns

A, B, C = Group("a", [0], False), Group("b", [1], False), Group("c", [2, 3], True)


def _contributions(function, rows, groups, nothing=math.nan):
    def predict(given):
        return np.array([[function(*row)] for row in np.nan_to_num(given)])

    return dict(mean_contributions(predict, rows, np.full(rows.shape[1], nothing), groups))


def test_of_a_linear_function_it_is_slope_times_deviation():
    """Of numbers E|s x|, which of normal ones is |s| times their deviation; of a string how far its values differ."""
    rng = np.random.default_rng(1)
    value = rng.integers(0, 4, 4_000) > 0
    rows = np.column_stack([*(rng.normal(size=(2, 4_000)) * [[1.0], [3.0]]), value, ~value])
    found = _contributions(lambda a, b, p, q: 4 * a - 2 * b + 8 * p + 16 * q, rows, [A, B, C])
    of_a_normal = math.sqrt(2 / math.pi)
    share = value.mean()
    expected = {"a": 4 * of_a_normal, "b": 6 * of_a_normal, "c": 2 * 8 * share * (1 - share)}
    assert found == pytest.approx(expected, rel=0.03)


def test_of_two_inputs_it_is_the_mean_of_the_shapley_values():
    rows = np.random.default_rng(2).normal(size=(20, 2))

    def function(a, b):
        return a * b + math.sin(a) + b**2

    def predict(records):
        return np.array([function(x.get("a", 0.0), x.get("b", 0.0)) for x in records])

    shapley = [shapley_values(dict(zip("ab", row, strict=True)), predict, 1) for row in rows.tolist()]
    means = {name: np.mean([abs(each[name]) for each in shapley]) for name in "ab"}
    assert _contributions(function, rows, [A, B]) == pytest.approx(means)


@pytest.mark.parametrize("nothing", [math.nan, 0.0])
def test_what_never_varies_or_is_never_observed_contributes_nothing(nothing):
    rows = np.column_stack([np.arange(5.0), np.full(5, nothing), np.ones(5), np.full(5, nothing)])
    found = _contributions(lambda a, b, p, q: a + b + 9 * p + q, rows, [A, B, C], nothing)
    assert found == {"a": 2.0, "b": 0.0, "c": 0.0}


def test_values_of_a_string_are_one_input_and_names_of_other_types_others():
    columns = InputColumns()
    for tagged in (
        ["number", ["str", "1"]],
        ["indicator", ["str", "k"], "p"],
        ["number", ["int", 1]],
        ["indicator", ["str", "k"], "q"],
        ["number", ["str", "k"]],
    ):
        columns.append(tagged)
    assert groups_of(columns) == [
        ("1", [0], False),
        ("k", [1, 3], True),
        ("1", [2], False),
        ("k", [4], False),
    ]
