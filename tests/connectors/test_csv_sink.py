"""The sink of CSV: fields, columns, its header after a restart, and what readers make of it."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from draining import drain, unpack
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamkernel.connectors import CsvSink, CsvSource, SinkError
from streamkernel.connectors.files.fields import split_fields
from streamkernel.connectors.files.mark import FileMark

SUFFIXES = ["", ".gz", ".zst"]


def test_csv_fields(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    line = {
        "float": 0.1 + 0.2,
        "numpy": np.float64(0.1),
        "single": np.float32(0.5),
        "large": 1e22,
        "int": np.int64(3),
        "bool": True,
        "text": 'a,"b"\nc',
        "none": None,
        "nan": math.nan,
        "nested": {"a": 0.5, "b": [1]},
        "list": [1, 2],
    }
    with CsvSink(path) as sink:
        sink.open()
        sink.write([line])
    with path.open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row == {
        "float": "0.30000000000000004",
        "numpy": "0.1",
        "single": "0.5",
        "large": "1e+22",
        "int": "3",
        "bool": "True",
        "text": 'a,"b"\nc',
        "none": "",
        "nan": "nan",
        "nested": '{"a":0.5,"b":[1]}',
        "list": "[1,2]",
    }


def test_the_columns_are_those_of_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    with CsvSink(path) as sink:
        sink.open()
        sink.write([{"b": 1, "a": 2}, {"a": 3}])
        sink.write([{"a": 4, "b": 5}])
        with pytest.raises(SinkError, match=r"out\.csv: .*'c'.* b, a$"):
            sink.write([{"a": 6, "b": 7}, {"a": 8, "c": 9}])
    assert path.read_bytes() == b"b,a\n1,2\n,3\n5,4\n"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_resumed_file_keeps_its_header(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out.csv{suffix}"
    with CsvSink(path) as sink:
        sink.open()
        sink.write([{"b\nc": 1, "a,": 2}])
        length = sink.flush()
    with CsvSink(path) as sink:
        sink.open(length)
        sink.write([{"a,": 3, "b\nc": 4}])
        with pytest.raises(SinkError, match="no column for 'd'"):
            sink.write([{"d": 1}])
    assert unpack(path.read_bytes(), suffix) == b'"b\nc","a,"\n1,2\n4,3\n'


def test_a_resumed_file_without_a_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_bytes(b'"open\n')
    with path.open("rb") as file:
        mark = FileMark.of(file.fileno(), 6)._asdict()
    with pytest.raises(SinkError, match=r"out.csv: its header cannot be read"):
        CsvSink(path).open(mark)


LINE = {"position": {"offset": 1}, "prediction": "a", "probabilities": {"a": 0.75, "b": 0.25}, "id": "x"}


def written(path: Path, *lines: dict[str, Any], **how: Any) -> list[list[str]]:
    with CsvSink(path, **how) as sink:
        sink.open()
        sink.write(lines)
    return list(csv.reader(path.read_text().splitlines()))


def test_classes_are_columns(tmp_path: Path) -> None:
    rows = written(tmp_path / "p.csv", LINE, {**LINE, "probabilities": {}}, classes=["b"], included=["id"])
    assert rows[0] == ["position", "prediction", "probability_b", "other_probability", "id"]
    assert [row[2:4] for row in rows[1:]] == [["0.25", "0.75"], ["", ""]]


class TestAnotherSetOfColumns:
    """A file that is gone on with has the columns it had."""

    OTHER = r"p\.csv: has the columns .*, and those of include and classes are now .*: change them back, give another"

    def begun(self, path: Path, **how: Any) -> Any:
        with CsvSink(path, **how) as sink:
            sink.open()
            sink.write([LINE])
            return sink.flush()

    @pytest.mark.parametrize("more", [{"included": ["id", "zip"]}, {"included": ["id"], "classes": ["a"]}])
    def test_more_are_refused_at_once(self, tmp_path: Path, more: dict[str, Any]) -> None:
        mark = self.begun(tmp_path / "p.csv", included=["id"])
        before = (tmp_path / "p.csv").read_bytes()
        for act in (CsvSink.find_problem, CsvSink.open):
            with pytest.raises(SinkError, match=self.OTHER):
                act(CsvSink(tmp_path / "p.csv", **more), mark)
        assert (tmp_path / "p.csv").read_bytes() == before

    def test_classes_that_are_not_named_any_more_are_refused_with_the_first_line(self, tmp_path: Path) -> None:
        mark = self.begun(tmp_path / "p.csv", included=["id"], classes=["a"])
        with CsvSink(tmp_path / "p.csv", included=["id"]) as sink:
            sink.open(mark)
            with pytest.raises(SinkError, match=self.OTHER):
                sink.write([LINE])


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
