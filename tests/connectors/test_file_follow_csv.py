"""CSV files that are followed: each has a header of its own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from rotating import compress

from streamkernel.connectors import CsvSource, Record, SourceError

pytestmark = pytest.mark.usefixtures("no_pause")


def poll(source: CsvSource) -> list[tuple[dict[str, float], object]]:
    records: list[Record] = []
    while polled := source.poll(1000, timeout=0):
        records += polled
    return [(record.x, record.y) for record in records if not record.blank]


@pytest.mark.parametrize("multiline", [False, True])
def test_each_csv_file_has_a_header_of_its_own(tmp_path: Path, multiline: bool) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b"")
    with CsvSource(path, target="y", follow=True, multiline=multiline) as source:
        source.open()
        assert poll(source) == []
        with path.open("ab", buffering=0) as file:
            file.write(b"a,")
            assert poll(source) == []
            file.write(b"y\n1,t\n2")
            assert poll(source) == [({"a": 1.0}, "t")]
            file.write(b",f\n")
            assert poll(source) == [({"a": 2.0}, "f")]
        path.rename(tmp_path / "log.csv.1")
        path.write_bytes(b"y,b\nt,3\n")
        assert poll(source) == [({"b": 3.0}, "t")]
        (tmp_path / "log.csv.1").rename(tmp_path / "log.csv.2")
        path.rename(tmp_path / "log.csv.1")
        path.write_bytes(b"b,c\nt,3\n")
        with pytest.raises(SourceError, match="there is no column 'y' for the target"):
            source.poll(10, timeout=0)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_csv_resumes_in_a_part_under_its_own_header(tmp_path: Path, suffix: str) -> None:
    path, part = tmp_path / "log.csv", tmp_path / "log.csv.1"
    path.write_bytes(b"a,y\n1,t\n2,f\n")
    source = CsvSource(path, target="y", follow=True)
    with source:
        source.open()
        (record,) = source.poll(1, timeout=0)
    path.rename(part)
    path.write_bytes(b"y,b\nt,3\n")
    if suffix:
        compress(part, suffix)
    with source:
        source.open({0: record.next})
        assert poll(source) == [({"a": 2.0}, "f"), ({"b": 3.0}, "t")]


@pytest.mark.parametrize("copied", [True, False])
@pytest.mark.parametrize("header", [b"", b"a,y\n", b'"a","y"\n'])
def test_a_file_that_was_truncated_goes_on_with_its_columns(tmp_path: Path, header: bytes, *, copied: bool) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b"a,y\n1,t\n2,f\n")

    def truncate(number: int) -> None:
        if copied:
            shutil.copy(path, tmp_path / f"log.csv.{number}")
        os.truncate(path, 0)

    with CsvSource(path, target="y", follow=True) as source, path.open("ab", buffering=0) as file:
        source.open()
        assert poll(source) == [({"a": 1.0}, "t"), ({"a": 2.0}, "f")]
        truncate(2)
        file.write(header + b"3,t\n4,f\n")
        (*_, record) = source.poll(len(header.split(b"\n")), timeout=0)
        assert (record.x, record.y) == ({"a": 3.0}, "t")
        place = source.lasting(record.next)
        source.close()
        # Nothing in the file says what its columns are: the place does.
        source.open({0: place})
        assert source.lasting(place) == place
        assert poll(source) == [({"a": 4.0}, "f")]
        truncate(1)
        file.write(b"5,t\n6,f\n")
        (record,) = source.poll(1, timeout=0)
        assert (record.x, record.y) == ({"a": 5.0}, "t")
        place = source.lasting(record.next)
    with CsvSource(path, target="y") as source:
        source.open({0: place})
        assert poll(source) == [({"a": 6.0}, "f")]
