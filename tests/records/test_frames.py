"""Frames and arrays: their columns are read as a whole, and come to the same as their rows' dicts one by one."""

import datetime
import decimal
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import base
from river.utils.dataframe import into_frame

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor, KernelClassifier, KernelRegressor, losses
from streamkernel.records.frames import Frame
from streamkernel.records.inputs import Inputs
from streamkernel.records.placement import Placement
from tests.one_by_one import assert_predicted_as_one_by_one, assert_probable_as_one_by_one

pytestmark = pytest.mark.filterwarnings("ignore:inputs past max_inputs", "ignore:classes past max_classes")


@dataclass(frozen=True)
class Kind:
    """One kind of column: how its values are drawn, and what they are called in each library."""

    draw: Any
    numpy: str
    nullable: str
    polars: Any
    arrow: Any


def _whole(bits, signed=True):
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    edges = [least, most, most - 1, 0, 2 ** (bits // 2) + 1]
    return lambda rng: int(edges[rng.integers(5)]) if rng.random() < 0.3 else int(rng.integers(-3 * signed, 4))


def _text(rng):
    return f"v{int(rng.exponential(4))}"


KINDS = {
    "float64": Kind(lambda rng: float(rng.normal()), "float64", "Float64", pl.Float64, pa.float64()),
    "float32": Kind(lambda rng: float(np.float32(rng.normal())), "float32", "Float32", pl.Float32, pa.float32()),
    "int64": Kind(_whole(64), "int64", "Int64", pl.Int64, pa.int64()),
    "int8": Kind(_whole(8), "int8", "Int8", pl.Int8, pa.int8()),
    "int32": Kind(_whole(32), "int32", "Int32", pl.Int32, pa.int32()),
    "uint64": Kind(_whole(64, signed=False), "uint64", "UInt64", pl.UInt64, pa.uint64()),
    "bool": Kind(lambda rng: bool(rng.random() < 0.4), "bool", "boolean", pl.Boolean, pa.bool_()),
    "text": Kind(_text, "object", "string", pl.String, pa.string()),
    "category": Kind(_text, "category", "category", pl.Categorical, pa.dictionary(pa.int32(), pa.string())),
}
#: What only columns of Python objects can hold.
MIXED = [
    1,
    2.5,
    -0.0,
    True,
    "1",
    "text",
    math.nan,
    None,
    decimal.Decimal("0.1"),
    np.float32(0.1),
    np.str_("text"),
    10**30,
]


@dataclass(frozen=True)
class Table:
    """Columns as Python values, None where not observed, with the kind of each."""

    columns: dict[str, list[Any]]
    kinds: dict[str, str]

    @property
    def rows(self):
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*self.columns.values(), strict=True)]

    def part(self, rows):
        return Table({name: values[rows] for name, values in self.columns.items()}, self.kinds)


@st.composite
def tables(draw, kinds=tuple(KINDS), most=40):
    n, d = draw(st.integers(1, most)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    columns, chosen = {}, {}
    for j in range(d):
        name = f"{'abcdef'[j]}{draw(st.integers(0, 3))}"
        kind = chosen[name] = draw(st.sampled_from(kinds))
        missing = draw(st.sampled_from([0.0, 0.0, 0.3, 0.9, 1.0]))
        first = draw(st.sampled_from([0, 0, n // 2]))
        value = KINDS[kind].draw if kind != "mixed" else lambda rng: MIXED[rng.integers(len(MIXED))]
        columns[name] = [value(rng) if i >= first and rng.random() >= missing else None for i in range(n)]
        if kind.startswith("float") and draw(st.booleans()):
            columns[name] = [math.nan if v is None and rng.random() < 0.5 else v for v in columns[name]]
    return Table(columns, chosen)


def _pandas(table):
    def series(values, kind):
        holds_none = any(v is None for v in values)
        whole = kind.startswith(("int", "uint", "bool"))
        dtype = "object" if kind == "mixed" else KINDS[kind].nullable if whole and holds_none else KINDS[kind].numpy
        return pd.Series(values, dtype=dtype)

    return pd.DataFrame({name: series(values, table.kinds[name]) for name, values in table.columns.items()})


def _pandas_of(dtype):
    def make(table):
        return pd.DataFrame(
            {name: pd.Series(values, dtype=dtype(KINDS[table.kinds[name]])) for name, values in table.columns.items()}
        )

    return make


def _polars(table):
    return pl.DataFrame([pl.Series(name, v, KINDS[table.kinds[name]].polars) for name, v in table.columns.items()])


def _arrow(table):
    return pa.table({name: pa.array(v, KINDS[table.kinds[name]].arrow) for name, v in table.columns.items()})


BOXES = {
    "pandas": _pandas,
    "pandas nullable": _pandas_of(lambda kind: kind.nullable),
    "pandas pyarrow": _pandas_of(lambda kind: pd.ArrowDtype(kind.arrow)),
    "polars": _polars,
    "pyarrow": _arrow,
}
EACH_BOX = pytest.mark.parametrize("make", BOXES.values(), ids=BOXES)


def _object_array(table):
    array = np.empty((len(table.rows), len(table.columns)), object)
    for j, values in enumerate(table.columns.values()):
        array[:, j] = values
    return array


def _numbered(rows):
    return [dict(enumerate(row.values())) for row in rows]


# Encoded rows ---------------------------------------------------------------------------------------------------------
def _assert_encoded_alike(X, rows, learn, max_inputs, standardize, known, n_rows):
    """Both ways of encoding, from the same inputs on."""
    one, other = (Inputs(max_inputs, standardize) for _ in range(2))
    for inputs in (one, other):
        inputs.encode(known, [True] * len(known))
    expected = one.encode(rows, learn)
    values = np.zeros((0, len(one)))
    for part, encoded in Placement(other, Frame(X).read(), np.array(learn)).parts(n_rows):
        n, d = encoded.values.shape
        assert (n, encoded.values.flags.c_contiguous) == (part.stop - part.start, True)
        assert d == len(other)
        values = np.concatenate([values, np.pad(encoded.values, ((0, 0), (0, len(one) - d)), constant_values=np.nan)])
        place = np.searchsorted(expected.extra_keys, encoded.extra_keys)
        assert (expected.extra_keys[place] == encoded.extra_keys).all()
        wide = np.zeros((n, len(expected.extra_keys)))
        wide[:, place] = encoded.extras
        assert (expected.extras[part] == wide).all()
    assert (other.columns, other.n_ignored, other.keys.tolist()) == (one.columns, one.n_ignored, one.keys.tolist())
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
@settings(max_examples=150)
@given(table=tables(), how=st.fixed_dictionaries(HOW))
def test_a_frame_is_encoded_as_its_rows(make, table, how):
    _both_ways(make(table), table.rows, **how)


@settings(max_examples=200)
@given(table=tables(kinds=("mixed", "text", "float64", "bool")), how=st.fixed_dictionaries(HOW))
def test_columns_of_objects_are_encoded_as_their_rows(table, how):
    _both_ways(_pandas(table), table.rows, **how)
    _both_ways(_object_array(table), _numbered(table.rows), **how)


@pytest.mark.parametrize(
    "dtype", [np.float64, np.float32, np.float16, np.int64, np.uint64, np.uint8, np.bool_, np.str_]
)
@settings(max_examples=30)
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


@pytest.mark.parametrize("X", UNUSUAL.values(), ids=UNUSUAL)
def test_unusual_columns_are_what_iterating_over_the_rows_gives(X):
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
    assert _told(many.predict_many(X)) == [one.predict_one(x) for x in rows]


def test_the_frame_is_neither_changed_nor_kept():
    inputs, array = Inputs(10, True), np.array([[1.0, np.nan], [2.0, 3.0]])
    before = array.copy()
    ((_, rows),) = Placement(inputs, Frame(array).read(), np.array([False, True])).parts(256)
    rows.values[:] = 7.0
    assert np.array_equal(array, before, equal_nan=True)


def test_a_long_frame_of_many_columns_is_taken_in_parts():
    """A value of its own in every row would make a matrix of the whole call quadratic."""
    n = 3000
    frame = Frame(pd.DataFrame({"text": [f"v{i}" for i in range(n)]}))
    for learn in (True, False):
        inputs = Inputs(10_000, True)
        parts = list(Placement(inputs, frame.read(), np.full(n, learn)).parts(256))
        assert len(parts) == 12
        assert [rows.values.shape[1] for _, rows in parts][:2] == ([256, 512] if learn else [0, 0])
        assert all(len(rows.extra_keys) == (0 if learn else part.stop - part.start) for part, rows in parts)


# Models ---------------------------------------------------------------------------------------------------------------
def _models(seed, max_inputs, standardize):
    rest = {"seed": seed, "max_inputs": max_inputs, "standardize": standardize}
    growing = {"batch_size": 7, "block_size": 5, "max_features": 40, **rest}
    adaptive = {"n_features": 6, "metric_schedule": (10, 40), "tree_window": 60, "n_trees": 2, **rest}
    return {
        "softmax": KernelClassifier(max_classes=3, **growing),
        "two sides": KernelClassifier(loss=losses.Log(), **growing),
        "numbers": KernelRegressor(**growing),
        "adaptive classes": AdaptiveKernelClassifier(max_classes=3, **adaptive),
        "adaptive numbers": AdaptiveKernelRegressor(**adaptive),
    }


def _told(many):
    """A series or an array as a list, a table or an array as lists."""
    if isinstance(many, pa.ChunkedArray):
        return many.to_pylist()
    return many.to_list() if hasattr(many, "to_list") else many.tolist()


def _told_table(many):
    if isinstance(many, pd.DataFrame):
        return many.to_dict("records")
    return many.to_pylist() if isinstance(many, pa.Table) else many.to_dicts()


@pytest.mark.parametrize("name", _models(0, 1, None))
@settings(max_examples=60)
@given(data=st.data(), table=tables(most=90), make=st.sampled_from([*BOXES.values(), _object_array]))
def test_learn_many_and_predict_many_are_the_loop(name, data, table, make):
    arguments = (st.integers(0, 99), st.sampled_from([2, 5, 1000]), st.sampled_from([None, False]))
    model = _models(*(data.draw(argument) for argument in arguments))[name]
    rows = _numbered(table.rows) if make is _object_array else table.rows
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
    ys = [None if rng.random() < data.draw(st.sampled_from([0.0, 0.3])) else y for y in ys]
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

        asked = make(table)
        assert_predicted_as_one_by_one(one, rows, _told(many.predict_many(asked)))
        if isinstance(model, base.Classifier):
            table_of_many = many.predict_proba_many(asked)
            labels = list(one.predict_proba_one(rows[0]))
            if make is _object_array:
                told = [dict(zip(labels, row, strict=True)) for row in table_of_many.tolist()]
                assert_probable_as_one_by_one(one, rows, told)
            elif labels:
                text = not isinstance(table_of_many, pd.DataFrame)
                assert_probable_as_one_by_one(one, rows, _told_table(table_of_many), text)
        assert many.state_digest() == one.state_digest()


@pytest.mark.parametrize("name", _models(0, 1, None))
@EACH_BOX
def test_a_long_frame_is_the_loop(name, make):
    """Of more rows and of more columns than a slice, which come late, and past `max_inputs`."""
    rng = np.random.default_rng(5)
    n = 700
    table = Table(
        {
            "x": rng.normal(size=n).tolist(),
            "late": [float(v) if i > 300 else None for i, v in enumerate(rng.normal(size=n))],
            "text": [f"v{rng.integers(0, 1 + i)}" for i in range(n)],
        },
        {"x": "float64", "late": "float64", "text": "text"},
    )
    ys = [float(v) for v in rng.normal(size=n)] if "numbers" in name else ["ab"[i] for i in rng.integers(0, 2, n)]
    one, many = (_models(3, 300, None)[name] for _ in range(2))
    many.learn_many(make(table), ys)
    for x, y in zip(table.rows, ys, strict=True):
        one.learn_one(x, y)
    assert many.n_ignored_inputs > 0
    assert many.state_digest() == one.state_digest()
    assert_predicted_as_one_by_one(one, table.rows, _told(many.predict_many(make(table))))


# What is refused ------------------------------------------------------------------------------------------------------
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


@pytest.mark.parametrize("name", _models(0, 1, None))
@pytest.mark.parametrize(("columns", "message"), REFUSED, ids=[message for _, message in REFUSED])
@pytest.mark.parametrize("box", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_what_is_no_input_is_refused_and_changes_nothing(name, columns, message, box):
    model = _models(1, 1000, None)[name]
    for i in range(30):
        model.learn_one({"x": float(i), "b": 1.0}, i % 2)
    before = model.state_digest()
    n = 300  # more than a slice
    long = {column: [None] * n + values for column, values in columns.items()}
    for X, ys in ((columns, [1, 0]), (long, [1] * (n + 2))):
        with pytest.raises(ValueError, match=f"^{message}"):
            model.learn_many(box(X), ys)
        with pytest.raises(ValueError, match=f"^{message}"):
            model.predict_many(box(X))
        assert model.state_digest() == before
        assert sorted(model.input_names) == ["b", "x"]


@pytest.mark.parametrize(
    "value",
    [10**400, object(), datetime.datetime(2020, 1, 1), 1j, {"a": 1}],
    ids=lambda value: type(value).__name__,
)
def test_an_object_that_is_no_input_is_refused_by_the_words_of_learn_one(value):
    model = KernelRegressor(seed=1)
    with pytest.raises(ValueError, match=r"^input") as one:
        model.learn_one({0: value}, 1.0)
    for values in ([1.0, value], ["text", value], [value]):
        array = np.empty((len(values), 1), object)
        array[:, 0] = values
        for X in (array, pd.DataFrame({0: pd.Series(values, dtype=object)})):
            with pytest.raises(ValueError, match=r"^input") as many:
                model.learn_many(X, [1.0] * len(values))
            assert str(many.value) == str(one.value)
    assert model.input_names == []


def test_dates_in_an_array_are_not_numbers():
    dates = np.array([["2020-01-01"], ["2020-01-02"]], "datetime64[ns]")
    with pytest.raises(ValueError, match=r"^input 0 is of type datetime64"):
        KernelRegressor(seed=1).learn_many(dates, [1.0, 2.0])
    with pytest.raises(ValueError, match=r"^the target"):
        KernelRegressor(seed=1).learn_many(np.ones((2, 1)), dates[:, 0])


@pytest.mark.parametrize("X", [np.ones(3), np.ones((1, 1, 1)), np.array(1.0)], ids=lambda X: f"{X.ndim} dimensions")
def test_an_array_has_two_dimensions(X):
    with pytest.raises(ValueError, match=r"^X is an array of shape \(.*\): give one of shape \(n, d\)"):
        KernelRegressor(seed=1).predict_many(X)


@pytest.mark.parametrize("X", [[{"a": 1.0}], "a", None, 3], ids=repr)
def test_what_is_no_frame_is_refused(X):
    with pytest.raises(TypeError):
        KernelRegressor(seed=1).predict_many(X)


def test_a_column_named_by_a_date_is_refused():
    frame = pd.DataFrame({datetime.datetime(2020, 1, 1): [1.0]})
    with pytest.raises(ValueError, match="names and labels are strings, booleans or numbers"):
        KernelRegressor(seed=1).learn_many(frame, [1.0])


# Shapes and names -----------------------------------------------------------------------------------------------------
def test_columns_by_any_name_in_any_order():
    """Numbers as names, and among strings, which narwhals would take for positions."""
    rows = [{3: 1.0, 0: "a", (1, "x"): 2, "s": None}, {3: None, 0: "b", (1, "x"): 5, "s": "c"}] * 20
    one, many = (KernelRegressor(seed=1, batch_size=4) for _ in range(2))
    frame = pd.DataFrame({name: pd.Series([x[name] for x in rows], dtype=object) for name in rows[0]})
    frame[(1, "x")] = frame[(1, "x")].astype(int)
    many.learn_many(frame[frame.columns[::-1]], [1.0, 2.0] * 20)
    for x, y in zip(rows, [1.0, 2.0] * 20, strict=True):
        one.learn_one(x, y)
    assert many.state_digest() == one.state_digest()


@pytest.mark.parametrize("name", _models(0, 1, None))
def test_nan_is_nan_whatever_its_bits(name):
    """0 / 0 has its sign bit set, and each library has its own for null."""
    odd = np.array([0xFFF8000000000000, 0x7FFC000000000001], np.uint64).view(np.float64).tolist()
    digests = set()
    for missing in (None, math.nan, *odd):
        rows = [{"a": 1.0, "b": missing if i % 3 else 2.0} for i in range(20)]
        one, many = (_models(1, 10, None)[name] for _ in range(2))
        for x in rows:
            one.learn_one(x, 1)
        many.learn_many(pd.DataFrame(rows), [1] * 20)
        digests |= {one.state_digest(), many.state_digest()}
    assert len(digests) == 1


@pytest.mark.parametrize("name", _models(0, 1, None))
def test_no_rows_and_no_columns(name):
    model = _models(1, 1000, None)[name]
    for X in (np.zeros((0, 3)), pd.DataFrame({"a": []}), pl.DataFrame({"a": []}), pa.table({"a": []})):
        model.learn_many(X, [])
        assert len(model.predict_many(X)) == 0
        if isinstance(model, base.Classifier):
            model.predict_proba_many(X)
    assert model.input_names == []
    for X in (np.zeros((3, 0)), pd.DataFrame(index=range(3))):
        model.learn_many(X, [1, 0, 1])
        assert _told(model.predict_many(X)) == [model.predict_one({})] * 3
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


@pytest.mark.parametrize("make", [np.array, pd.Series, lambda ys: pl.Series(ys, strict=False), tuple])
@pytest.mark.parametrize("ys", [[1.5, 2.5], [1, 2], [True, False]], ids=repr)
def test_targets_in_any_box(make, ys):
    one, many = (AdaptiveKernelRegressor(seed=1, n_features=4) for _ in range(2))
    many.learn_many(np.ones((2, 1)), make(ys))
    for y in ys:
        one.learn_one({0: 1.0}, y)
    assert many.state_digest() == one.state_digest()
