"""Frames and arrays: their columns are read as a whole, and come to the same rows as their records one by one."""

import decimal
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river.utils.dataframe import into_frame

from streamkernel import AdaptiveKernelClassifier, KernelRegressor
from streamkernel.records.batches import FrameEncoder
from streamkernel.records.frames import Frame, RecordFrame
from streamkernel.records.inputs import Inputs
from tests.records.tables import (
    EACH_BOX,
    tables,
    values_of,
)

pytestmark = pytest.mark.filterwarnings("ignore:inputs past max_inputs", "ignore:classes past max_classes")


def _assert_encoded_alike(X, rows, learn, max_inputs, standardize, known, n_rows):
    """Both ways of encoding, from the same inputs on."""
    one, other = (Inputs(max_inputs, standardize) for _ in range(2))
    for inputs in (one, other):
        inputs.encode(known, [True] * len(known))
    expected = one.encode(rows, learn)
    values = np.zeros((0, len(one)))
    for part, encoded in FrameEncoder(other, Frame(X).read(), np.array(learn)).parts(n_rows):
        n, d = encoded.values.shape
        assert (n, encoded.values.flags.c_contiguous) == (part.stop - part.start, True)
        assert d == len(other)
        values = np.concatenate([values, np.pad(encoded.values, ((0, 0), (0, len(one) - d)), constant_values=np.nan)])
        place = np.searchsorted(expected.extra_keys, encoded.extra_keys)
        assert (expected.extra_keys[place] == encoded.extra_keys).all()
        wide = np.zeros((n, len(expected.extra_keys)))
        wide[:, place] = encoded.extras
        assert (expected.extras[part] == wide).all()
    assert (list(other.columns), other.n_ignored) == (list(one.columns), one.n_ignored)
    assert other.columns.keys.tolist() == one.columns.keys.tolist()
    assert len(values) == len(rows)
    assert values.tobytes() == expected.values.tobytes() or np.array_equal(values, expected.values, equal_nan=True)
    assert (np.signbit(values) == np.signbit(expected.values))[~np.isnan(values)].all()


HOW = {
    "seed": st.integers(0, 2**32),
    "share": st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    "max_inputs": st.sampled_from([1, 2, 4, 7, 1000]),
    "standardize": st.booleans(),
    "n_known": st.sampled_from([0, 0, 1, 5]),
    "n_rows": st.sampled_from([1, 3, 256]),
}


def _both_ways(X, rows, seed, share, max_inputs, standardize, n_known, n_rows):
    rng = np.random.default_rng(seed)
    learn = [bool(rng.random() < share) for _ in rows]
    known = [{**rows[i], "only before": 1.0} for i in rng.integers(0, len(rows), n_known)]
    _assert_encoded_alike(X, rows, learn, max_inputs, standardize, known, n_rows)


@EACH_BOX
@given(table=tables(), how=st.fixed_dictionaries(HOW))
def test_a_frame_is_encoded_as_its_rows(make, table, how):
    _both_ways(make(table), table.rows, **how)


@pytest.mark.parametrize(
    "dtype", [np.float64, np.float32, np.float16, np.int64, np.uint64, np.uint8, np.bool_, np.str_]
)
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32), how=st.fixed_dictionaries(HOW))
def test_an_array_is_encoded_as_its_rows(dtype, seed, how):
    rng = np.random.default_rng(seed)
    array = (rng.normal(size=(rng.integers(1, 30), rng.integers(1, 6))) * 3).astype(np.int64).astype(dtype)
    for X in (array, np.asfortranarray(array), array[::2, ::-1]):
        _both_ways(X, [dict(enumerate(row.tolist())) for row in X], **how)


UNUSUAL = {
    "128 bits": pl.DataFrame({"a": pl.Series([2**100, None, -1], dtype=pl.Int128), "b": [1, 2, 3]}),
    "nulls": pl.DataFrame({"a": [None, None, None], "b": [0.5, 1.5, None]}),
    "decimals": pl.DataFrame({"a": pl.Series([decimal.Decimal("0.10"), None, decimal.Decimal("1234567.89")])}),
    "enumeration": pl.DataFrame({"a": pl.Series(["x", None, "y"], dtype=pl.Enum(["y", "x"]))}),
    "decimals of arrow": pa.table({"a": pa.array([decimal.Decimal("0.1"), None, decimal.Decimal("3.3")])}),
    "halves": pa.table({"a": pa.array([0.1, 65504.0, None], pa.float16()), "b": [True, None, False]}),
    "large strings": pa.table({"a": pa.array(["x", None, "y"], pa.large_string())}),
    "numbers by code": pa.table({"a": pa.array([7, None, 7]).dictionary_encode()}),
    "chunks": pa.concat_tables([pa.table({"a": [1.5, None], "b": ["x", None]}), pa.table({"a": [2.5], "b": ["x"]})]),
    "categories that are numbers": pd.DataFrame({"a": pd.Categorical([7, None, 7])}),
    "ordered": pd.DataFrame({"a": pd.Categorical(["x", None, "y"], categories=["y", "x"], ordered=True)}),
    "sparse": pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.5, math.nan])}),
    "sparse whole": pd.DataFrame({"a": pd.arrays.SparseArray([0, 1, 0])}),
    "not a time": pd.DataFrame({"a": [pd.NaT, pd.NaT, pd.NaT], "b": [1.0, 2.0, 3.0]}),
    "missing objects": pd.DataFrame({"a": pd.Series([pd.NA, "x", None], dtype=object)}),
    "columns in levels": pd.DataFrame(
        [[1, "a"], [2, "b"], [3, "a"]], columns=pd.MultiIndex.from_tuples([("u", 1), ("u", 2)])
    ),
    "an index": pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=["p", "p", "q"]),
    "a view": pd.DataFrame({"a": np.arange(12.0), "b": np.arange(12)})[1::4],
}


def test_unusual_columns_are_what_iterating_over_the_rows_gives(subtests):
    for X in UNUSUAL.values():
        with subtests.test(X=X):
            rows = list(into_frame(X).iter_rows(named=True))
            assert len(rows) == 3
            for max_inputs in (1, 100):
                _assert_encoded_alike(X, rows, [True, False, True], max_inputs, True, [], 256)
                _assert_encoded_alike(X, rows, [False, True, True], max_inputs, False, rows[:1], 256)
            one, many = KernelRegressor(seed=1), KernelRegressor(seed=1)
            many.learn_many(X, [1.0, 2.0, 3.0])
            for x, y in zip(rows, [1.0, 2.0, 3.0], strict=True):
                one.learn_one(x, y)
            assert many.state_digest() == one.state_digest()
            assert many.input_names
            assert values_of(many.predict_many(X)) == [one.predict_one(x) for x in rows]


def test_a_long_frame_of_many_columns_is_taken_in_parts():
    """A value of its own in every row would make a matrix of the whole call quadratic."""
    n = 3000
    texts = {f"text{j}": [f"v{i}" if i // 50 == j else None for i in range(n)] for j in range(n // 50)}
    frame = Frame(pd.DataFrame(texts))
    for learn in (True, False):
        inputs = Inputs(10_000, True)
        parts = list(FrameEncoder(inputs, frame.read(), np.full(n, learn)).parts(256))
        assert len(parts) == 12
        assert [rows.values.shape[1] for _, rows in parts][:2] == ([256, 512] if learn else [0, 0])
        assert all(len(rows.extra_keys) == (0 if learn else part.stop - part.start) for part, rows in parts)


@pytest.mark.parametrize("method", ["learn_many", "batch_step"])
@pytest.mark.parametrize("dtype", [np.float64, np.int64, object])
def test_what_a_masked_array_masks_is_not_observed(method, dtype):
    values = (np.random.default_rng(0).normal(size=(300, 3)) * 9).astype(dtype)
    y = values[:, 0].astype(np.float64)
    holes = np.where(values > 4, np.nan, values.astype(np.float64))
    masked, plain = (KernelRegressor(seed=1) for _ in range(2))
    getattr(masked, method)(np.ma.masked_array(values, mask=values > 4), y)
    getattr(plain, method)(holes, y)
    assert masked.state_digest() == plain.state_digest()
    X = np.ma.masked_array(values, mask=values > 4)
    assert np.array_equal(masked.predict_many(X), plain.predict_many(holes))


class _RecordsInColumns(list):
    """Dicts whose columns are known."""

    n_read = 0

    def read(self):
        self.n_read += 1
        return RecordFrame(self).read()


@pytest.mark.parametrize("make", [AdaptiveKernelClassifier, KernelRegressor])
def test_records_that_know_their_columns_are_read_by_these(make):
    xs = [{"a": i % 7, "b": "uvw"[i % 3], **({"c": 0.5 * i} if i % 4 else {})} for i in range(400)]
    ys = [None if i % 5 == 0 else i % 2 for i in range(400)]
    models = [make(seed=1) for _ in range(2)]
    results = [models[0].advance(xs, ys)]
    records = _RecordsInColumns(xs)
    results.append(models[1].advance(records, ys))
    assert records.n_read == 1
    assert results[0].predictions == results[1].predictions
    assert models[0].state_digest() == models[1].state_digest()
