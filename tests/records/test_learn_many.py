"""Models that learn and predict frames and arrays: as record by record, whatever the names, shapes and libraries."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import base

from streamkernel import AdaptiveKernelClassifier, KernelClassifier, KernelRegressor
from tests.laws.one_by_one import assert_predicted_as_one_by_one, assert_probable_as_one_by_one
from tests.records.frame_models import models_of_each_kind
from tests.records.tables import BOXES, Table, in_array_of_objects, numbered, rows_of, tables, values_of

pytestmark = pytest.mark.filterwarnings("ignore:inputs past max_inputs", "ignore:classes past max_classes")


@pytest.mark.parametrize("name", models_of_each_kind(0, 1, None))
@settings(max_examples=6)
@given(data=st.data(), table=tables(most=70), make=st.sampled_from([*BOXES.values(), in_array_of_objects]))
def test_learn_many_and_predict_many_are_the_loop(name, data, table, make):
    arguments = (st.integers(0, 99), st.sampled_from([2, 5, 1000]), st.sampled_from([None, False]))
    model = models_of_each_kind(*(data.draw(argument) for argument in arguments))[name]
    rows = numbered(table.rows) if make is in_array_of_objects else table.rows
    n, rng = len(rows), np.random.default_rng(data.draw(st.integers(0, 99)))
    if isinstance(model, base.Regressor):
        ys = [float(y) for y in rng.normal(size=n)]
    else:
        labels = data.draw(st.sampled_from([("a", "b"), (False, True), (3, 4)]))
        ys = (
            [labels[i] for i in rng.integers(0, 2, n)]
            if name == "two sides"
            else [f"c{i}" for i in rng.integers(0, 5, n)]
        )
    unlabeled = data.draw(st.sampled_from([0.0, 0.3]))
    ys = [None if rng.random() < unlabeled else y for y in ys]
    ws = [float(w) for w in rng.choice([0.0, 1.0, 2.5], n)] if data.draw(st.booleans()) else None

    one, many = model.clone(), model.clone()
    cut = data.draw(st.integers(0, n))
    for part in (slice(0, cut), slice(cut, n)):
        if part.start == part.stop:
            continue
        many.learn_many(make(table.part(part)), ys[part], ws and ws[part])
        for x, y, w in zip(rows[part], ys[part], (ws or [1.0] * n)[part], strict=True):
            one.learn_one(x, y, w)
        assert many.state_digest() == one.state_digest()

        asked, last = make(table.part(slice(-20, None))), rows[-20:]
        assert_predicted_as_one_by_one(one, last, values_of(many.predict_many(asked)))
        if isinstance(model, base.Classifier):
            table_of_many = many.predict_proba_many(asked)
            labels = list(one.predict_proba_one(last[0]))
            if make is in_array_of_objects:
                rows_of_many = [dict(zip(labels, row, strict=True)) for row in table_of_many.tolist()]
                assert_probable_as_one_by_one(one, last, rows_of_many)
            elif labels:
                text = not isinstance(table_of_many, pd.DataFrame)
                assert_probable_as_one_by_one(one, last, rows_of(table_of_many), text)
        assert many.state_digest() == one.state_digest()


@pytest.mark.parametrize(
    ("name", "box"), list(zip(models_of_each_kind(0, 1, None), itertools.cycle(BOXES), strict=False))
)
def test_a_long_frame_is_the_loop(name, box):
    """Of more rows and of more columns than a slice, which come late, and past `max_inputs`."""
    rng = np.random.default_rng(5)
    n = 300
    columns = {
        "x": rng.normal(size=n).tolist(),
        "late": [float(v) if i > 270 else None for i, v in enumerate(rng.normal(size=n))],
    }
    for j in range(8):  # as many values as each may have in any case
        columns[f"text{j}"] = [f"v{rng.integers(0, min(60, 1 + i))}" for i in range(n)]
    table = Table(columns, {name: "text" if name.startswith("text") else "float64" for name in columns})
    ys = [float(v) for v in rng.normal(size=n)] if "numbers" in name else ["ab"[i] for i in rng.integers(0, 2, n)]
    one = models_of_each_kind(3, 300, None)[name]
    one.advance(table.rows, ys)
    assert one.n_ignored_inputs > 0
    many = models_of_each_kind(3, 300, None)[name]
    frame = BOXES[box](table)
    many.learn_many(frame, ys)
    assert many.state_digest() == one.state_digest()
    assert_predicted_as_one_by_one(one, table.rows, values_of(many.predict_many(frame)))


@pytest.mark.parametrize("name", models_of_each_kind(0, 1, None))
def test_no_rows_and_no_columns(name):
    model = models_of_each_kind(1, 1000, None)[name]
    for X in (np.zeros((0, 3)), pd.DataFrame({"a": []}), pl.DataFrame({"a": []}), pa.table({"a": []})):
        model.learn_many(X, [])
        assert len(model.predict_many(X)) == 0
        if isinstance(model, base.Classifier):
            model.predict_proba_many(X)
    assert model.input_names == []
    for X in (np.zeros((3, 0)), pd.DataFrame(index=range(3))):
        model.learn_many(X, [1, 0, 1])
        assert values_of(model.predict_many(X)) == [model.predict_one({})] * 3
    assert model.n_records == 6


def test_what_an_array_is_answered_with():
    X = np.random.default_rng(0).normal(size=(40, 2))
    regressor = KernelRegressor(seed=1, batch_size=8)
    regressor.learn_many(X, X[:, 0])
    assert (regressor.predict_many(X).dtype, regressor.predict_many(X).shape) == (np.dtype("float64"), (40,))
    assert regressor.input_names == ["0", "1"] or regressor.input_names == ["1", "0"]
    for labels, dtype in (("no", "yes"), "U3"), ((False, True), "bool"), ((0, 1), "int64"), (("a", 1), "object"):
        for classifier in (KernelClassifier(seed=1, batch_size=8), AdaptiveKernelClassifier(seed=1, n_features=8)):
            assert classifier.predict_many(X).tolist() == [None] * 40
            assert classifier.predict_proba_many(X).shape == (40, 0)
            classifier.learn_many(X, [labels[int(x > 0)] for x in X[:, 0]])
            assert classifier.predict_many(X).dtype == np.dtype(dtype)
            assert classifier.predict_proba_many(X).shape == (40, 2)
            assert sorted(map(str, classifier.classes)) == sorted(map(str, labels))


def test_labels_that_are_tuples_are_answered_in_an_array_of_objects():
    X = np.arange(8.0)[:, None]
    model = AdaptiveKernelClassifier(seed=1, n_features=4)
    model.learn_many(X, [("a", i % 2) for i in range(8)])
    predicted = model.predict_many(X)
    assert predicted.shape == (8,)
    assert set(predicted) <= {("a", 0), ("a", 1)}


def test_rows_and_targets_are_matched_by_position():
    X = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0]})
    shuffled = pd.Series([1, 2, 3, 4], index=[3, 1, 0, 2])
    models = [KernelRegressor(seed=1, batch_size=2, max_features=64) for _ in range(2)]
    models[0].learn_many(X, shuffled)
    models[1].learn_many(X, shuffled.to_list())
    assert models[0].state_digest() == models[1].state_digest()
