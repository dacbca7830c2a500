"""Targets in any box, those that are missing, and dates, which are none."""

import datetime
import decimal
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from streamkernel import AdaptiveKernelClassifier, KernelRegressor
from streamkernel.records.frames import target_list

NAT = [pd.Timestamp("2026-03-01"), pd.NaT]


def test_targets_of_any_box_are_plain_values(subtests):
    for box, values in [
        (pa.array([1.5, None, 2.0]), [1.5, None, 2.0]),
        (pa.chunked_array([[1, 2], [None]]), [1, 2, None]),
        (pa.array(["a", None, "b"]).dictionary_encode(), ["a", None, "b"]),
        (pd.Series([1.5, math.nan]), [1.5, None]),
        (pd.Series([1, None], dtype="Int64"), [1, None]),
        (pd.Series([True, pd.NA], dtype="boolean"), [True, None]),
        (pd.Series(["a", math.nan, None, pd.NA], dtype=object), ["a", None, None, None]),
        (pd.Series(["a", None], dtype="string"), ["a", None]),
        (pd.Series(["a", None, "b"], dtype="category"), ["a", None, "b"]),
        (pd.Series(NAT), [NAT[0], None]),
        (pd.array([1, None], dtype="Int64"), [1, None]),
        (pd.Categorical(["a", None]), ["a", None]),
        (pd.Index([1.5, math.nan]), [1.5, None]),
        (pl.Series([1.5, None]), [1.5, None]),
        ((1, None), [1, None]),
        (np.array(["a", "b"]), ["a", "b"]),
        (pa.array([]), []),
        (pd.Series([], dtype=float), []),
    ]:
        with subtests.test(box=box, values=values):
            assert target_list(box) == values


@pytest.mark.parametrize("y", ["text", 3, None, {"a": 1}, pd.DataFrame({"a": [1]})], ids=lambda y: type(y).__name__)
def test_what_is_no_box_is_refused(y):
    with pytest.raises(TypeError, match=f"^the targets are a {type(y).__name__}"):
        target_list(y)


@pytest.mark.parametrize("y", [np.array(1.0), np.ones((2, 1))], ids=lambda y: f"{y.ndim} dimensions")
@pytest.mark.parametrize("method", ["learn_many", "batch_step"])
def test_an_array_of_targets_has_one_dimension(method, y):
    with pytest.raises(ValueError, match=r"^the targets have the shape \(.*\(n,\)"):
        getattr(KernelRegressor(seed=1), method)(np.ones((2, 1)), y)


DATES = [
    datetime.datetime(2026, 3, 1, 12),
    datetime.date(2026, 3, 1),
    datetime.time(12),
    pd.Timestamp("2026-03-01"),
    np.datetime64("2026-03-01", "ns"),
    np.datetime64("2026-03-01"),
]
DURATIONS = [datetime.timedelta(1), pd.Timedelta(days=1), np.timedelta64(1, "ns")]


def _told(call):
    with pytest.raises(ValueError, match="use") as error:
        call()
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("value", [*DATES, *DURATIONS], ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("kind", [AdaptiveKernelClassifier, KernelRegressor])
def test_dates_are_refused_with_advice(kind, value):
    model, frame = kind(seed=1), pd.DataFrame({"when": pd.Series([value], dtype=object)})
    of_input = "calendar parts" if value in DATES else "its seconds"
    for call in (
        lambda: model.learn_one({"when": value}, 1),
        lambda: model.predict_one({"when": value}),
        lambda: model.learn_many(frame, [1]),
    ):
        assert _told(call).startswith("input 'when' is of type ")
        assert of_input in _told(call)
    of_target = "calendar part" if kind is AdaptiveKernelClassifier else "seconds"
    for call in (
        lambda: model.learn_one({"a": 1.0}, value),
        lambda: model.learn_many(pd.DataFrame({"a": [1.0]}), pd.Series([value], dtype=object)),
    ):
        assert of_target in _told(call)
    assert model.n_records == 0


def test_numbers_of_other_types_have_no_such_advice():
    for target in (decimal.Decimal("nan"), "1.5"):
        assert "date" not in _told(lambda target=target: KernelRegressor(seed=1).learn_one({}, target))
