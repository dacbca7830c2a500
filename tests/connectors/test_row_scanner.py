"""Rows of CSV that are scanned into columns have there what their decoder makes of each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_scanner import LONGEST, NUMBERS, SETTINGS, TYPES, WORDS, check, damaged

from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.settings import ColumnSettings, InputSettings
from streamkernel.connectors.files.row_scanner import CsvScanner
from streamkernel.connectors.files.rows import CsvRows

HEADERS = st.sampled_from(
    [
        ["a", "b", "y"],
        ["y"],
        ["a", "", "b", "y", ""],
        ["1", "2", "y"],
        ["a", "A", "y"],
        ["\u00e9", "y", "d.e"],
        ["1", "y"],
    ]
)
FIELDS = st.one_of(
    NUMBERS,
    st.builds(
        "{}{}{}".format, st.sampled_from([" ", "\t", ""]), NUMBERS, st.sampled_from([" ", "\x0b", "\u00a0", "\r"])
    ),
    WORDS,
    st.sampled_from(["a", "b", " Y ", "y", "A", "1", "1.", ".5", "+1", "1,5", "inf", "-nan", "\u0661", "E\u0301"]),
)
QUOTED = st.one_of(FIELDS, FIELDS, FIELDS, FIELDS.map(lambda field: '"' + field.replace('"', '""') + '"'))


def _rows(columns: list[str], delimiter: str) -> st.SearchStrategy[bytes]:
    width = len(columns)
    fields = st.lists(QUOTED, min_size=width, max_size=width) | st.permutations(columns) | st.lists(QUOTED, max_size=5)
    return damaged(fields.map(delimiter.join), b'"," \t\r\n;\x00\xff\xc3\xa9\xef\xbb\xbf01_.ay')


def _pair(columns: list[str], target: Any, target_type: str, delimiter: str, inputs: InputSettings) -> Any:
    rules = ColumnRules(inputs, LONGEST)
    decoder = CsvRows(columns, target, target_type, delimiter, "utf-8", LONGEST, rules)
    return CsvScanner(columns, target, target_type, delimiter, "utf-8", LONGEST, decoder.rules), decoder


@settings(max_examples=500, deadline=None)
@given(st.data(), HEADERS, st.sampled_from(["y", "y", None]), TYPES, st.sampled_from(",,;\t |1"), SETTINGS)
def test_rows(
    data: st.DataObject, columns: list[str], target: str | None, target_type: str, delimiter: str, inputs: InputSettings
) -> None:
    scanner, decoder = _pair(columns, target, target_type, delimiter, inputs)
    for raws in data.draw(st.lists(st.lists(_rows(columns, delimiter), min_size=1, max_size=6), max_size=3)):
        scanner._rest = 0
        check(scanner, decoder, raws, data.draw(st.sampled_from([b"\n", b"", b"\xa9"])))


@settings(max_examples=400, deadline=None)
@given(st.lists(FIELDS.filter(lambda field: "," not in field), min_size=1, max_size=40), TYPES)
@example(["1_0", "1e5", " 1.5 ", "nan", "inf", "\u0661", "", " ", "\ufeff1"], "float")
def test_fields(fields: list[str], target_type: str) -> None:
    scanner, decoder = _pair(["a", "y"], "y", target_type, ",", InputSettings())
    check(scanner, decoder, [f"{field},{field}".encode() for field in fields])


def test_the_header_again_is_odd_and_names_as_labels_are_not() -> None:
    scanner, decoder = _pair(["a", "b", "y"], "y", "bool", ",", InputSettings())
    raws = [b"1,b,y", b"a,b,y", b"y,a,b", b' A ,"b",Y', b"a,b,n", b"2,,y"]
    assert check(scanner, decoder, raws) == [True, False, False, False, True, True]


def test_numbers_as_names() -> None:
    for columns, expected in ([["1", "2", "y"], [True, False, False]], [["1", "2"], []]):
        scanner, decoder = _pair(columns, columns[-1], "str", ",", InputSettings())
        assert check(scanner, decoder, [b"1,2,3", b"1,2,y", b"y,1,2"]) == expected


def test_usual_rows_are_plain() -> None:
    rng = np.random.default_rng(1)
    columns = [*(rng.normal(size=300).astype(str) for _ in range(8)), rng.integers(0, 10**7, 300).astype(str)]
    columns += [rng.choice(["red", "gr\u00fcn", '"a, b"', ""], 300), rng.choice(["0", "1"], 300)]
    names = [*map("x{}".format, range(8)), "n", "text", "y"]
    raws = [",".join(row).encode() for row in zip(*columns, strict=True)]
    for target_type in ("str", "int", "bool", "float"):
        inputs = InputSettings(na=("NA",), types={"n": ColumnSettings("string")})
        scanner, decoder = _pair(names, "y", target_type, ",", inputs)
        for start in range(0, 300, 100):
            assert check(scanner, decoder, raws[start : start + 100]) == [True] * 100


@pytest.mark.parametrize(("delimiter", "encoding"), [("\u00e9", "utf-8"), (",", "latin-1")])
def test_other_bytes_are_not_scanned(delimiter: str, encoding: str) -> None:
    rules = ColumnRules(InputSettings(), LONGEST).in_texts()
    scanner = CsvScanner(["a", "y"], "y", "str", delimiter, encoding, LONGEST, rules)
    assert scanner.scan(b"1,2", np.array([0]), np.array([3])) is None
