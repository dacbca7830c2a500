"""What a sink writes as CSV is read back as it was, whatever it holds: by Python, pandas, polars and our own source."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd
import polars as pl
import pytest
from draining import drain
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamkernel.connectors import CsvSink, CsvSource
from streamkernel.connectors.files.fields import split_fields

texts = st.text(st.sampled_from("ab1 ,;\t\r\n\"'\\#\0\ufeff\u2028é") | st.characters(codec="utf-8"), max_size=6)


def write(path: Path, names: list[str], rows: list[list[str]]) -> None:
    with CsvSink(path) as sink:
        sink.open()
        for row in rows:
            sink.write([dict(zip(names, row, strict=True))])


def by_csv(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file, strict=True))


def by_pandas(path: Path) -> list[list[str]]:
    table = pd.read_csv(path, dtype=str, keep_default_na=False, header=None)
    return [list(row) for row in table.itertuples(index=False)]


def by_polars(path: Path) -> list[list[str]]:
    table = pl.read_csv(path, infer_schema=False, has_header=False).fill_null("")
    return [list(row) for row in table.iter_rows()]


@example([["x\ry", ""], ["\r", "\n"], ["\r\n", "a\r"]])
@example([["a", "b"], ["\ufeff", " "], ["1", '"']])
@settings(max_examples=30)
@given(
    st.integers(2, 3).flatmap(
        lambda width: st.lists(st.lists(texts, min_size=width, max_size=width), min_size=2, max_size=4)
    )
)
def test_fields_and_names_are_read_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]
) -> None:
    path = tmp_path_factory.mktemp("out") / "p.csv"
    names = [f"{name}-{index}" for index, name in enumerate(rows[0])]  # different, and not empty
    expected = [["n", *names], *(["1", *row] for row in rows[1:])]
    write(path, expected[0], expected[1:])
    assert by_csv(path) == by_pandas(path) == by_polars(path) == expected
    records = drain(CsvSource(path, multiline=True))
    assert [split_fields(record.raw.decode(), ",") for record in records] == expected[1:]
