"""A file that grows, is rotated, copied, truncated or deleted while it is followed, and after a restart."""

from __future__ import annotations

import gzip
import logging
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from rotating import Log, compress

from streamkernel.connectors import CsvSource, JsonLinesSource, Record, SourceError
from streamkernel.connectors.files import rotation
from streamkernel.connectors.files.bytes import File, open_file

pytestmark = pytest.mark.usefixtures("no_pause")


def test_what_is_appended_is_read(log: Log) -> None:
    assert log.read() == [0, 1, 2]
    assert log.read() == []
    log.write(2)
    assert log.read() == [3, 4]
    assert log.source.total is None


def test_an_incomplete_line_waits_for_its_end(log: Log) -> None:
    log.read()
    with log.path.open("ab", buffering=0) as file:
        file.write(b'{"a": ')
        assert log.read() == []
        file.write(b"3}")
        assert log.read() == []
        file.write(b"\n")
        assert log.read() == [3]


def test_rename_and_create(log: Log) -> None:
    assert log.read() == [0, 1, 2]
    log.write()
    log.rotate()
    assert log.read() == [3]
    # The writer still has the old file open.
    log.write(path=log.part(1))
    assert log.read() == [4]
    log.path.touch()
    log.write(path=log.part(1))
    assert log.read() == [5]
    log.write(path=log.part(1))
    assert log.read() == [6]
    log.write(2)
    assert log.read() == [7, 8]
    assert log.seen[-1].position.offset == log.seen[0].next.offset
    assert log.seen[-1].position.stream != log.seen[1].position.stream


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_rotated_more_than_once_between_two_polls(log: Log, suffix: str) -> None:
    assert log.read() == [0, 1, 2]
    for number in range(3):
        log.write(2)
        log.rotate(number)
    log.write(2)
    if suffix:
        for age in (2, 3):
            compress(log.part(age), suffix)
    assert log.read() == list(range(3, 11))


@pytest.mark.parametrize("regrown", [0, 1, 10])
def test_copied_and_truncated(log: Log, regrown: int) -> None:
    assert log.read() == [0, 1, 2]
    log.write(2)
    shutil.copy(log.path, log.part(1))
    os.truncate(log.path, 0)
    log.write(regrown)
    # What had not been read yet is in the copy.
    assert log.read() == list(range(3, 5 + regrown))
    log.write()
    assert log.read() == [5 + regrown]


def test_truncated_without_a_copy_is_said(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    log.read()
    with log.path.open("ab") as file:
        file.write(b'{"a": 77')
    assert log.read() == []
    with caplog.at_level(logging.WARNING):
        os.truncate(log.path, 0)
        log.write()
        assert log.read() == [3]
    assert "was truncated at byte 35" in caplog.text


def test_a_writer_that_rotates_all_the_time_loses_nothing(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.jsonl")
    log.write()
    log.open()

    def write() -> None:
        for _ in range(30):
            log.write(100)
            log.rotate(number=40)
            log.write(50)

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        log.read()
    writer.join()
    log.read()
    log.source.close()
    assert log.numbers == list(range(1 + 30 * 150))


def in_the_midst(monkeypatch: pytest.MonkeyPatch, step: Callable[[], object]) -> None:
    """Let the first look into an earlier part come just after a step of a rotation."""
    steps = [step]

    def after_the_step(part: Path) -> File:
        if steps:
            steps.pop()()
        return open_file(part)

    monkeypatch.setattr(rotation, "open_file", after_the_step)


def test_resuming_in_the_midst_of_a_rotation(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.read()
    place = log.source.lasting(log.seen[-1].next)
    log.source.close()
    for number in (1, 2, 3):
        log.rotate(number)
        log.write(5)
    in_the_midst(monkeypatch, lambda: log.rotate(4))
    log.path.touch()
    log.open(place)
    assert log.read() == list(range(3, log.next))


def test_resuming_between_the_renaming_and_the_new_file(log: Log) -> None:
    log.read()
    log.source.close()
    log.write()
    log.rotate()
    log.open(log.seen[-1].next)
    assert log.read() == [3]
    log.write()
    assert log.read() == [4]


def test_a_compressed_file_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(gzip.compress(b""))
    with pytest.raises(SourceError, match="a compressed file cannot be followed"):
        JsonLinesSource(path, follow=True).open()


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
