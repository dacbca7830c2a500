"""The sink of CSV: its fields, its columns, and its header after a restart."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from draining import unpack

from streamkernel.connectors import CsvSink, SinkError
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
