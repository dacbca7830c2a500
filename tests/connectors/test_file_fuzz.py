"""Arbitrary bytes as CSV and JSON lines: nothing crashes, nothing is lost, and any place can be resumed at."""

from __future__ import annotations

import csv
import json
import math
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from draining import consistent, drain, written
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.connectors import CsvSource, JsonLinesSource, Record, Source
from streamkernel.connectors.files import bytes as file_bytes

SUFFIXES = ["", ".gz", ".zst"]
HEADER = b"a,b,y\n"

CSV_PIECES = [
    *[b"1", b"-2.5", b"nan", b"inf", b"1e999", b"1_0", b"x", b"_", b" ", b"yes", b"0", b"\xc3\xa9", b"\xe9", b"\x00"],
    *[b",", b",", b",", b",", b"\n", b"\n", b"\n", b"\r\n", b"\r", b'"', b'""', b'"\n"', b'"a,b"'],
    *[b"1,2,yes\n", b"1,2,0\n", b"red,2,no\n", b'"x\ny",2,t\n', b"long" * 20],
]
JSON_PIECES = [
    *[b"{", b"}", b"[", b"]", b":", b",", b'"', b'"a"', b'"y"', b'"\\ud800"', b"\xff", b"\xc3\xa9", b"\x00", b"\\"],
    *[b"1", b"-0", b"1e999", b"1e-5", b"NaN", b"Infinity", b"null", b"true", b"18446744073709551616", b" "],
    *[b"\n", b"\n", b"\r\n", b"\r", b'{"a":1,"y":1}\n', b'{"a":NaN}\n', b'{"y":', b'{"a":"b"}\n', b"[[[[", b"9" * 60],
    b"\xef\xbb\xbf",
]


def bodies(pieces: list[bytes]) -> st.SearchStrategy[bytes]:
    made = st.lists(st.sampled_from(pieces) | st.binary(max_size=3), max_size=60).map(b"".join)
    return made | st.binary(max_size=200)


@contextmanager
def blocks_of(size: int) -> Iterator[None]:
    """Read files in blocks of so many bytes."""
    with mock.patch.object(file_bytes, "BLOCK_BYTES", size):
        yield


def check(make: Callable[[Path], Source], data: bytes, start: int, choose: Callable[[int], int], block: int) -> Any:
    """Read `data` in every way there is and return the records."""
    with tempfile.TemporaryDirectory() as directory:
        reference: list[Record] | None = None
        for suffix in SUFFIXES:
            path = written(Path(directory, f"data{suffix}"), data)
            records = drain(make(path))
            reference = reference or records
            assert records == reference
            consistent(records, data, start)
            with blocks_of(block):
                assert drain(make(path), at_once=1 + choose(5)) == reference
                if reference:
                    index = choose(len(reference))
                    assert drain(make(path), {0: reference[index].next}) == reference[index + 1 :]
        assert reference is not None
        return reference


def physical_lines(body: bytes) -> list[bytes]:
    lines = body.split(b"\n")
    return lines if lines[-1] else lines[:-1]


def naive_records(lines: list[bytes]) -> Iterator[list[bytes]]:
    """Yield the physical lines of each record: those to the end of a quote, or the one of a quote that has none."""
    while lines:
        texts = (line.removesuffix(b"\r").decode("utf-8", "surrogateescape") + "\n" for line in lines)
        try:
            next(reader := csv.reader(texts, strict=True))
            used = reader.line_num
        except csv.Error:
            used = 1
        yield lines[:used]
        lines = lines[used:]


def naive_csv(line: bytes, target_type: str, max_record_bytes: int) -> tuple[Any, Any, str | None, bool]:
    """Decode one line of CSV in the plainest way; the twin of the quick one."""
    line = line.removesuffix(b"\r")
    if len(line) > max_record_bytes:
        return {}, None, "too_long", False
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return {}, None, "encoding", False
    text = text.removeprefix("\ufeff")  # where files were put together
    if not text.strip() and "," not in text:
        return {}, None, None, True
    try:
        fields = next(csv.reader([text], strict=True)) if '"' in text else text.split(",")
    except csv.Error:
        fields = []
    if len(fields) != 3:
        return {}, None, "csv_width", False
    label: Any = fields.pop()
    if label.strip() == "" or (target_type == "float" and label.strip().lstrip("+-").lower() == "nan"):
        label = None
    elif target_type == "float":
        try:
            label = float(label.replace("_", "x"))
        except ValueError:
            label = math.inf
        if not math.isfinite(label):
            return {}, None, "target", False
    x: dict[str, Any] = {}
    for name, field in zip(["a", "b"], fields, strict=True):
        try:
            number = float(field.replace("_", "x"))
        except ValueError:
            if field.strip():
                x[name] = field
        else:
            if math.isinf(number):
                return {}, None, "infinite", False
            if not math.isnan(number):
                x[name] = number
    return x, label, None, False


def found(record: Record) -> tuple[Any, Any, str | None, bool]:
    return record.x, record.y, record.fault and record.fault.reason, record.blank


@given(
    body=bodies(CSV_PIECES),
    target_type=st.sampled_from(["str", "float"]),
    limit=st.sampled_from([8, 20, 2**20]),
    block=st.integers(1, 9),
    draw=st.data(),
)
def test_csv(body: bytes, target_type: str, limit: int, block: int, draw: st.DataObject) -> None:
    records = check(
        lambda path: CsvSource(path, target="y", target_type=target_type, max_record_bytes=limit),
        HEADER + body,
        len(HEADER),
        lambda count: draw.draw(st.integers(0, count - 1)),
        block,
    )
    lines = physical_lines(body)
    if any(len(line) > limit and b'"' in line for line in lines):
        return  # of what is cut off, only the number of quotes is known
    expected = []
    for together in naive_records(lines):
        raw = b"\n".join(together).removesuffix(b"\r")
        fault = "too_long" if len(raw) > limit else "open_quote"
        one = naive_csv(raw, target_type, limit) if len(together) == 1 else ({}, None, fault, False)
        expected.append(one)
    assert [found(record) for record in records] == expected


@given(
    body=bodies(CSV_PIECES),
    limit=st.sampled_from([8, 20, 2**20]),
    block=st.integers(1, 9),
    encoding=st.sampled_from(["utf-8", "latin-1", "shift_jis"]),
    draw=st.data(),
)
def test_multiline_csv(body: bytes, limit: int, block: int, encoding: str, draw: st.DataObject) -> None:
    records = check(
        lambda path: CsvSource(path, target="y", multiline=True, max_record_bytes=limit, encoding=encoding),
        HEADER + body,
        len(HEADER),
        lambda count: draw.draw(st.integers(0, count - 1)),
        block,
    )
    assert all(len(record.raw) <= limit for record in records)
    lines = physical_lines(body)
    if encoding == "utf-8" and not any(len(line) > limit and b'"' in line for line in lines):
        assert len(records) == len(list(naive_records(lines)))


@pytest.mark.parametrize("data", [b"", b"\n", b"\xef\xbb\xbf", b'"', b"\xff", b"a,a\n"])
def test_what_is_no_header_is_never_a_crash(data: bytes, tmp_path: Path) -> None:
    for multiline in (False, True):
        source = CsvSource(written(tmp_path / "data.csv", data), multiline=multiline)
        try:
            drain(source)
        except Exception as error:
            assert type(error).__name__ == "SourceError"  # noqa: PT017 - most are none


def naive_json(line: bytes) -> tuple[Any, Any, str | None, bool] | None:
    """Decode one line with the json module; None where only the quick decoder knows better."""
    try:
        value = json.loads(line.decode())
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not value.keys() <= {"a", "y"}:
        return None
    y = value.pop("y", None)
    x = value.get("a")
    if type(x) not in (int, float) or not math.isfinite(x) or y is not None:
        return None
    return {"a": x}, None, None, False


@given(body=bodies(JSON_PIECES), limit=st.sampled_from([8, 20, 2**20]), block=st.integers(1, 9), draw=st.data())
def test_json_lines(body: bytes, limit: int, block: int, draw: st.DataObject) -> None:
    start = 3 if body.startswith(b"\xef\xbb\xbf") else 0
    records = check(
        lambda path: JsonLinesSource(path, target="y", max_record_bytes=limit),
        body,
        start,
        lambda count: draw.draw(st.integers(0, count - 1)),
        block,
    )
    lines = physical_lines(body)
    assert len(records) == len(lines)
    for record in records:
        assert all(
            isinstance(value, str | bool) or (isinstance(value, int | float) and math.isfinite(value))
            for value in record.x.values()
        )
        expected = naive_json(record.raw) if record.fault is None or record.fault.reason != "too_long" else None
        assert expected is None or found(record) == expected
