"""Tables of columns of every kind, in the frames of each library and in arrays."""

import decimal
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import strategies as st


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


def in_pandas(table):
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
    "pandas": in_pandas,
    "pandas nullable": _pandas_of(lambda kind: kind.nullable),
    "pandas pyarrow": _pandas_of(lambda kind: pd.ArrowDtype(kind.arrow)),
    "polars": _polars,
    "pyarrow": _arrow,
}


EACH_BOX = pytest.mark.parametrize("make", BOXES.values(), ids=BOXES)


def in_array_of_objects(table):
    array = np.empty((len(table.rows), len(table.columns)), object)
    for j, values in enumerate(table.columns.values()):
        array[:, j] = values
    return array


def numbered(rows):
    return [dict(enumerate(row.values())) for row in rows]


def values_of(many):
    """A series or an array as a list, a table or an array as lists."""
    if isinstance(many, pa.ChunkedArray):
        return many.to_pylist()
    return many.to_list() if hasattr(many, "to_list") else many.tolist()


def rows_of(many):
    if isinstance(many, pd.DataFrame):
        return many.to_dict("records")
    return many.to_pylist() if isinstance(many, pa.Table) else many.to_dicts()
