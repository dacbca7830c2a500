"""Lines as columns of Arrow: types, values that do not fit, classes, and what passes through."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamkernel.connectors.parquet.columns import LineColumns, prediction_columns
from streamkernel.connectors.pass_through import PassedColumn
from streamkernel.connectors.ports import SinkError


def line(**values: Any) -> dict[str, Any]:
    return {"position": {"partition": 1, "offset": 2**40}, "prediction": None, "target": None, **values}


def read(kind: Any, *values: Any) -> list[Any]:
    table = LineColumns(prediction_columns(kind))
    column: list[Any] = table.batch([line(prediction=value) for value in values]).column("prediction").to_pylist()
    return column


def test_the_schema_is_known_before_the_first_line() -> None:
    included = [PassedColumn("id", "id"), PassedColumn("at", "when", "timestamp")]
    assert LineColumns(prediction_columns("bool", [], included)).schema == pa.schema(
        [
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("prediction", pa.bool_()),
            ("target", pa.bool_()),
            ("probabilities", pa.map_(pa.string(), pa.float64())),
            ("id", pa.string()),
            ("when", pa.timestamp("us", tz="UTC")),
        ]
    )
    assert LineColumns(prediction_columns("float", [True])).schema.names[2:] == ["prediction", "target", "std"]


@pytest.mark.parametrize(
    ("kind", "values", "found"),
    [
        ("str", ["a", 3, True, None, np.str_("b"), "\ud800"], ["a", "3", "true", None, "b", "\\ud800"]),
        ("int", [1, np.int64(2), 2**63, True, "3", None], [1, 2, None, None, None, None]),
        ("bool", [True, np.bool_(False), 1, "true", None], [True, False, None, None, None]),
        ("float", [1.5, np.float32(0.5), 2, math.nan, math.inf, "x", None], [1.5, 0.5, 2.0, None, None, None, None]),
    ],
)
def test_a_value_that_does_not_fit_is_null_and_told_once(
    kind: Any, values: list[Any], found: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    assert read(kind, *values) == found
    assert len(caplog.records) == (kind != "str")


def test_probabilities_are_a_map_or_columns() -> None:
    given_line = line(probabilities={True: 0.25, False: math.nan})
    (mapped,) = LineColumns(prediction_columns("bool")).batch([given_line]).to_pylist()
    assert mapped["probabilities"] == [("true", 0.25), ("false", None)]
    table = LineColumns(prediction_columns("bool", [True]), [True])
    rows = table.batch([given_line, line(probabilities={}), line()]).to_pylist()
    assert [row["probability_true"] for row in rows] == [0.25, None, None]
    assert [row["other_probability"] for row in rows] == [None, None, None]


def test_what_passes_through_has_its_type() -> None:
    included = [PassedColumn("id", "id"), PassedColumn("at", "at", "timestamp"), PassedColumn("n", "n", "int")]
    table = LineColumns(prediction_columns("str", (), included))
    rows = table.batch([line(id={"a": 1}, at="2026-11-22T09:00:00.5Z", n=3), line(id=7)]).to_pylist()
    assert (rows[0]["id"], rows[1]["id"]) == ('{"a":1}', "7")
    assert (rows[0]["at"], rows[0]["n"]) == (datetime(2026, 11, 22, 9, 0, 0, 500_000, UTC), 3)
    assert rows[1]["at"] is None


def test_a_name_without_a_column_is_refused() -> None:
    with pytest.raises(SinkError, match=r"parquet: .*no column .*'more'"):
        LineColumns(prediction_columns("str")).batch([line(more=1)])
