"""Frames and arrays that hold what is no input: refused by name, and nothing is changed."""

import datetime
import math

import narwhals
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from streamkernel import (
    AdaptiveKernelRegressor,
    KernelClassifier,
    KernelLeastSquaresRegressor,
    KernelNoveltyDetector,
    KernelRegressor,
)
from tests.records.frame_models import models_of_each_kind

REFUSED = [
    ({"x": [1.0, math.inf]}, "input 'x' is infinite"),
    ({"x": [1.0, 2.0], "new": [None, -math.inf]}, "input 'new' is infinite"),
    ({"x": [1.0, 2.0], "new": [datetime.date(2020, 1, 1), None]}, "input 'new' is of type date"),
    ({"x": [1.0, 2.0], "new": [b"a", b"b"]}, "input 'new' is of type bytes"),
    ({"x": [1.0, 2.0], "new": [[1.0], [2.0]]}, "input 'new' is of type"),
    # The first row decides, and of one row the first column, as in the loop.
    ({"b": [1.0, math.inf], "a": [datetime.date(2020, 1, 1), None]}, "input 'a' is of type date"),
    ({"b": [None, datetime.date(2020, 1, 1)], "a": [1.0, math.inf]}, "input 'b' is of type date"),
    ({"b": [1.0, math.inf], "a": [None, datetime.date(2020, 1, 1)]}, "input 'b' is infinite"),
]


@pytest.mark.parametrize("name", models_of_each_kind(0, 1, None))
def test_what_is_no_input_is_refused_and_changes_nothing(name, subtests):
    model = models_of_each_kind(1, 1000, None)[name]
    for i in range(30):
        model.learn_one({"x": float(i), "b": 1.0}, i % 2)
    before = model.state_digest()
    n = 300  # more than a slice
    for columns, message in REFUSED:
        for box in [pd.DataFrame, pl.DataFrame, pa.table]:
            with subtests.test(columns=columns, message=message, box=box):
                long = {column: [None] * n + values for column, values in columns.items()}
                for X, ys in ((columns, [1, 0]), (long, [1] * (n + 2))):
                    with pytest.raises(ValueError, match=f"^{message}"):
                        model.learn_many(box(X), ys)
                    with pytest.raises(ValueError, match=f"^{message}"):
                        model.predict_many(box(X))
                    assert model.state_digest() == before
                    assert sorted(model.input_names) == ["b", "x"]


def test_dates_in_an_array_are_not_numbers():
    dates = np.array([["2020-01-01"], ["2020-01-02"]], "datetime64[ns]")
    with pytest.raises(ValueError, match=r"^input 0 is of type datetime64"):
        KernelRegressor(seed=1).learn_many(dates, [1.0, 2.0])
    with pytest.raises(ValueError, match=r"^the target"):
        KernelRegressor(seed=1).learn_many(np.ones((2, 1)), dates[:, 0])


@pytest.mark.parametrize("X", [np.ones(3), np.ones((1, 1, 1)), np.array(1.0)], ids=lambda X: f"{X.ndim} dimensions")
def test_an_array_has_two_dimensions(X):
    with pytest.raises(ValueError, match=r"^X is an array of shape \(.*\(n, d\)"):
        KernelRegressor(seed=1).predict_many(X)


NO_FRAMES = {
    "list": ([{"a": 1.0}], "X is a list: pass an eager data frame"),
    "dict": ({"a": [1.0]}, "X is a dict: pass an eager data frame"),
    "text": ("a", "X is a str: pass an eager data frame"),
    "None": (None, "X is None: pass an eager data frame"),
    "number": (3, "X is a int: pass an eager data frame"),
    "pandas series": (pd.Series([1.0]), "X is a series, a Series: pass an eager data frame"),
    "polars series": (pl.Series([1.0]), "X is a series, a Series: pass an eager data frame"),
    "pyarrow column": (pa.chunked_array([[1.0]]), "X is a series, a ChunkedArray: pass an eager data frame"),
    "sparse": (sparse.csr_matrix([[1.0]]), r"X is sparse, a csr_matrix: pass X\.toarray\(\)"),
    "lazy": (pl.LazyFrame({"a": [1.0]}), "X is lazy, a LazyFrame: collect it first"),
    "wrapped": (narwhals.from_native(pl.LazyFrame({"a": [1.0]})), "X is lazy, a LazyFrame: collect it first"),
}
#: Every method that takes a frame, with a target of one row where it takes one.
CALLS = [
    *((kind, "learn_many", True) for kind in (KernelRegressor, KernelClassifier, KernelNoveltyDetector)),
    *((kind, "batch_step", True) for kind in (KernelRegressor, KernelClassifier, KernelNoveltyDetector)),
    (KernelLeastSquaresRegressor, "batch_step", True),
    (KernelLeastSquaresRegressor, "predict_many", False),
    (KernelRegressor, "predict_many", False),
    (KernelClassifier, "predict_many", False),
    (KernelClassifier, "predict_proba_many", False),
    (KernelNoveltyDetector, "score_many", False),
    (AdaptiveKernelRegressor, "learn_many", True),
    (AdaptiveKernelRegressor, "predict_many", False),
]


def _calls(X):
    for kind, method, learns in CALLS:
        call = getattr(kind(seed=1), method)
        arguments = [[1.0]] if learns and kind is not KernelNoveltyDetector else []
        yield lambda call=call, arguments=arguments: call(X, *arguments)


@pytest.mark.parametrize("case", NO_FRAMES)
def test_what_is_no_frame_is_refused_in_one_sentence(case):
    X, message = NO_FRAMES[case]
    for call in _calls(X):
        with pytest.raises(TypeError, match=f"^{message}") as error:
            call()
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "X",
    [pd.DataFrame([[1.0, 2.0, 3.0]], columns=["a", "b", "a"]), pa.table([[1.0], [2.0], [3.0]], names=["a", "b", "a"])],
    ids=["pandas", "pyarrow"],
)
def test_columns_of_the_same_name_are_refused_in_one_sentence(X):
    for call in _calls(X):
        with pytest.raises(ValueError, match=r"^X has several columns .*'a'"):
            call()


def test_a_column_named_by_a_date_is_refused():
    frame = pd.DataFrame({datetime.datetime(2020, 1, 1): [1.0]})
    with pytest.raises(ValueError, match="names and labels"):
        KernelRegressor(seed=1).learn_many(frame, [1.0])
