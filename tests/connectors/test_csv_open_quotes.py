"""Quoted fields of CSV that are long, reach over lines, or have no end: nothing within one is a record."""

from __future__ import annotations

import logging
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from draining import consistent, drain, written

from streamkernel.connectors import CsvSource, Record
from streamkernel.connectors.files import csv as csv_module
from streamkernel.connectors.files import lines as joining

pytestmark = pytest.mark.usefixtures("no_pause")

LINES_LIKE_ROWS = b"\n".join(b"%d,note,maybe" % number for number in range(12_000))
"""A text of more than 131,072 characters, where the csv module stops by default."""


def with_text(text: bytes) -> bytes:
    return b'id,text,y\n1,short,yes\n2,"' + text + b'",no\n3,short,yes\n'


def read(tmp_path: Path, data: bytes, name: str = "data.csv", **options: Any) -> list[Record]:
    return drain(CsvSource(written(tmp_path / name, data), **options))


def reasons(records: list[Record]) -> list[str | None]:
    return [record.fault and record.fault.reason for record in records]


@pytest.mark.parametrize("multiline", [True, False])
@pytest.mark.parametrize("limit", [100, 100_000])
@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz"])
def test_beyond_max_record_bytes_it_is_one_dead_letter(
    tmp_path: Path, name: str, limit: int, *, multiline: bool
) -> None:
    data = with_text(LINES_LIKE_ROWS)
    records = read(tmp_path, data, name, target="y", multiline=multiline, max_record_bytes=limit)
    assert reasons(records) == [None, "too_long", None]
    assert records[1].raw == data[len(b"id,text,y\n1,short,yes\n") :][:limit]
    length = len(LINES_LIKE_ROWS) + len(b'2,"",no')
    assert records[1].fault is not None
    assert records[1].fault.detail == f"{length:,} bytes, more than max_record_bytes ({limit:,})"
    consistent(records, data, start=10)


def test_a_physical_line_beyond_the_limit_may_open_a_quote(tmp_path: Path) -> None:
    data = b'a,b\n1,"' + b"x" * 300 + b'\n5,6\n7,8"\n' + b"y" * 300 + b',"z\n1,2"\n3,4\n'
    records = read(tmp_path, data, max_record_bytes=100)
    assert reasons(records) == ["too_long", "too_long", None]
    assert records[2].x == {"a": 3.0, "b": 4.0}
    consistent(records, data, start=4)


def test_without_multiline_the_lines_of_a_quoted_field_are_one_dead_letter(tmp_path: Path) -> None:
    data = b'a,b,y\n1,x,t\n2,"5,6,t\r\n7,8,f\n9",f\n3,z,t\n'
    source = CsvSource(written(tmp_path / "data.csv", data), target="y")
    records = drain(source)
    assert reasons(records) == [None, "open_quote", None]
    assert records[1].fault is not None
    assert records[1].fault.detail == "a quoted field spans 3 lines"
    assert records[1].raw == b'2,"5,6,t\r\n7,8,f\n9",f'
    assert [record.x.get("a") for record in records] == [1.0, None, 3.0]
    consistent(records, data, start=6)
    # A replay has it alone.
    alone = source.decode(records[1].raw, records[1].position, records[1].next)
    assert alone.x == {"a": 2.0, "b": "5,6,t\r\n7,8,f\n9"}


@pytest.mark.parametrize("multiline", [True, False])
@pytest.mark.parametrize("name", ["data.csv", "data.csv.zst"])
def test_a_quote_without_an_end_costs_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, *, multiline: bool
) -> None:
    monkeypatch.setattr(joining, "REACH", 2000)
    more = b"3,4\n" * 1000
    for data in (
        b'a,b\n1,"2\n' + more,  # to the end of the file
        b'a,b\n1,"2\n' + more + b'5,"6"\n' + more,  # what follows the next quote says that it closes nothing
        b'a,b\n1,"2\n' + more + b'5",6\n',  # beyond reach
    ):
        records = read(tmp_path, data, name, multiline=multiline, max_record_bytes=100)
        assert reasons(records)[0] == "csv_width"
        assert {record.fault for record in records[1:]} == {None}
        assert len(records) == data.count(b"\n") - 1
        consistent(records, data, start=4)


def test_memory_is_bounded_however_long_a_quoted_field_is(tmp_path: Path) -> None:
    path = written(tmp_path / "data.csv", with_text(LINES_LIKE_ROWS * 5))
    peaks = []
    for _ in range(3):  # threads of other tests may be at work during one of them
        tracemalloc.start()
        records = drain(CsvSource(path, target="y", max_record_bytes=1000))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert reasons(records) == [None, "too_long", None]
    assert min(peaks) < 6_000_000


@pytest.mark.parametrize("multiline", [True, False])
def test_a_followed_file_waits_for_the_end_of_a_quote_and_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, multiline: bool
) -> None:
    monkeypatch.setattr(csv_module, "TELL_SECONDS", 0.0)
    path = written(tmp_path / "data.csv", b'a,b\n1,2\n3,"x\n')
    with (
        CsvSource(path, follow=True, multiline=multiline, max_record_bytes=1000) as source,
        path.open("ab", buffering=0) as file,
    ):
        source.open()
        assert [record.x for record in source.poll(10, timeout=0)] == [{"a": 1.0, "b": 2.0}]
        for _ in range(300):
            assert source.poll(10, timeout=0) == []
            file.write(b"5,6\n5,6\n")
        assert caplog.record_tuples == [("streamkernel.connectors.files.csv", logging.WARNING, caplog.messages[0])]
        assert "data.csv: the record at line 3 (offset 8) opens a quote that is not closed yet" in caplog.text
        file.write(b'"\n7,8\n')
        records = source.poll(10, timeout=0) + source.poll(10, timeout=0)
        assert reasons(records) == ["too_long", None]
        assert records[1].x == {"a": 7.0, "b": 8.0}
