from __future__ import annotations

import gzip
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard
from draining import drain

from connectors import CsvSource, JsonLinesSource, Position, Record, SourceError
from connectors.files import follow, rotation
from connectors.files.bytes import File
from connectors.files.compressed import open_file
from connectors.files.identity import identity


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "PARTS_SECONDS", 0.0)
    monkeypatch.setattr(follow, "CHECK_SECONDS", 0.001)


class Log:
    """A file that a program writes lines to, and the source that follows it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.source = JsonLinesSource(path, follow=True)
        self.next = 0
        self.seen: list[Record] = []

    def write(self, count: int = 1, path: Path | None = None) -> None:
        with (path or self.path).open("ab") as file:
            for _ in range(count):
                file.write(b'{"a": %d}\n' % self.next)
                self.next += 1

    def rotate(self, number: int = 1) -> None:
        """Rename the parts as logrotate does."""
        for age in range(number, 0, -1):
            older, newer = self.part(age + 1), self.part(age)
            if newer.exists():
                newer.rename(older)
        self.path.rename(self.part(1))

    def part(self, age: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{age}")

    def open(self, position: Position | None = None) -> None:
        self.source.open({0: position} if position else None)

    def read(self) -> list[int]:
        """Read until nothing comes any more; the numbers that were read."""
        polled: list[Record] = []
        while records := self.source.poll(1000, timeout=0):
            polled += records
        assert not self.source.exhausted
        for record in polled:
            assert record.fault is None
        self.seen += polled
        return [record.x["a"] for record in polled]

    @property
    def numbers(self) -> list[int]:
        return [record.x["a"] for record in self.seen]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log = Log(tmp_path / "log.jsonl")
    log.write(3)
    log.open()
    yield log
    log.source.close()


def compress(path: Path, suffix: str) -> Path:
    """Do what gzip and zstd do: the same time on the result, and the plain file gone."""
    data, status = path.read_bytes(), path.stat()
    packed = path.with_name(path.name + suffix)
    packed.write_bytes(gzip.compress(data) if suffix == ".gz" else zstandard.ZstdCompressor().compress(data))
    os.utime(packed, ns=(status.st_atime_ns, status.st_mtime_ns))
    path.unlink()
    return packed


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


def test_a_poll_waits_for_the_first_record_and_no_longer(log: Log) -> None:
    log.read()
    timer = threading.Timer(0.05, log.write)
    timer.start()
    began = time.monotonic()
    assert [record.x["a"] for record in log.source.poll(1000, timeout=60)] == [3]
    assert time.monotonic() - began < 60
    timer.join()


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


def test_the_old_file_is_read_to_its_end_when_the_new_one_has_begun(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.read()
    log.rotate()
    replaced = follow.FollowedFile.is_replaced

    def last_words(file: follow.FollowedFile) -> bool:
        if not log.path.exists():
            # Between reading the old file and looking at the new one.
            log.write(path=log.part(1))
            log.write()
        return replaced(file)

    monkeypatch.setattr(follow.FollowedFile, "is_replaced", last_words)
    assert log.read() == [3, 4]


def test_the_last_line_of_a_finished_file_needs_no_end(log: Log) -> None:
    with log.path.open("ab") as file:
        file.write(b'{"a": 3}')
    log.next = 4
    assert log.read() == [0, 1, 2]
    log.rotate()
    log.write()
    assert log.read() == [3, 4]


def test_rotated_under_any_name_while_it_is_read(log: Log) -> None:
    log.read()
    log.write()
    log.path.rename(log.path.with_name("somewhere else"))
    log.write()
    assert log.read() == [3, 4]


def test_moved_out_of_sight_before_another_rotation(log: Log) -> None:
    log.read()
    elsewhere = log.path.with_name("elsewhere")
    log.path.rename(elsewhere)
    os.utime(elsewhere, (1e9, 1e9))
    log.part(2).write_bytes(b'{"a": 99}\n')
    os.utime(log.part(2), (9e8, 9e8))
    log.write()
    log.rotate()
    log.write()
    assert log.read() == [3, 4]


def test_compressed_without_keeping_its_time(log: Log) -> None:
    log.read()
    log.rotate()
    log.write()
    log.rotate()
    log.write()
    os.utime(compress(log.part(2), ".gz"))
    assert log.read() == [3, 4]


def test_deleted_and_written_anew(log: Log) -> None:
    log.read()
    log.path.unlink()
    assert log.read() == []
    log.write()
    assert log.read() == [3]


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


def test_rotated_twice_while_the_newest_file_is_still_empty(log: Log) -> None:
    log.read()
    log.rotate()
    log.write()
    log.rotate(1)
    assert log.read() == [3]
    log.path.touch()
    log.write()
    assert log.read() == [4]


def test_rotated_by_date(log: Log) -> None:
    log.read()
    for day in ("20240130", "20240131", "20240201"):
        log.write()
        log.path.rename(log.path.with_name(f"{log.path.name}-{day}"))
    log.write()
    assert log.read() == [3, 4, 5, 6]


def test_other_files_in_the_directory_are_none_of_ours(log: Log) -> None:
    log.read()
    for name in ("log.jsonl.old", "log.jsonl.bak", "log.jsonl~", "log.jsonl2", "other.jsonl.1", "log.jsonl.1.txt"):
        log.path.with_name(name).write_bytes(b'{"a": 99}\n')
    log.rotate()
    log.write()
    assert log.read() == [3]


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


def test_copied_and_truncated_in_the_middle_of_a_line(log: Log) -> None:
    log.read()
    with log.path.open("ab", buffering=0) as file:
        file.write(b'{"a": ')
        assert log.read() == []
        file.write(b"3}\n")
        log.next = 4
        shutil.copy(log.path, log.part(1))
        os.truncate(log.path, 0)
    log.write()
    assert log.read() == [3, 4]


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


def test_truncated_and_deleted(log: Log) -> None:
    log.read()
    os.truncate(log.path, 0)
    log.path.unlink()
    assert log.read() == []
    log.write()
    assert log.read() == [3]


def test_truncated_and_grown_beyond_the_old_length(log: Log) -> None:
    log.read()
    os.truncate(log.path, 0)
    log.write(1000)
    assert log.read() == list(range(3, 1003))


@pytest.mark.parametrize("how", ["rename", "copy"])
@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
@pytest.mark.parametrize("unread", [0, 2])
@pytest.mark.parametrize("beginning", [1, 1000])
def test_resuming_in_a_part_that_was_rotated_meanwhile(
    log: Log, how: str, suffix: str, unread: int, beginning: int
) -> None:
    log.write(beginning)
    log.read()
    log.source.close()
    log.write(unread)
    if how == "rename":
        log.rotate()
    else:
        shutil.copy(log.path, log.part(1))
        os.truncate(log.path, 0)
    log.write(2)
    if suffix:
        compress(log.part(1), suffix)
    log.open(log.seen[-1].next)
    log.read()
    assert log.numbers == list(range(3 + beginning + unread + 2))
    log.write()
    assert log.read() == [3 + beginning + unread + 2]


def test_resuming_three_rotations_ago(log: Log) -> None:
    log.read()
    log.source.close()
    for number in range(3):
        log.write(2)
        log.rotate(number)
    for age in (2, 3):
        compress(log.part(age), ".gz")
    log.write()
    log.open(log.seen[1].next)
    log.seen = log.seen[:2]
    log.read()
    assert log.numbers == list(range(10))


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


def test_copied_truncated_and_compressed_during_the_search(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.read()
    log.write(5)
    shutil.copy2(log.path, log.part(1))
    os.truncate(log.path, 0)
    in_the_midst(monkeypatch, lambda: compress(log.part(1), ".gz"))
    assert log.read() == list(range(3, 8))


def test_resuming_between_the_renaming_and_the_new_file(log: Log) -> None:
    log.read()
    log.source.close()
    log.write()
    log.rotate()
    log.open(log.seen[-1].next)
    assert log.read() == [3]
    log.write()
    assert log.read() == [4]


def test_any_record_can_be_resumed_at(log: Log) -> None:
    log.write(500)
    log.read()
    log.rotate()
    log.write(500)
    log.read()
    records = log.seen
    for index in (0, 1, 300, 502, 503, 504, 800):
        log.open(records[index].next)
        log.seen = []
        log.read()
        assert log.seen == records[index + 1 :]


def test_the_identity_does_not_depend_on_how_far_the_file_had_grown(log: Log) -> None:
    log.write(1000)
    log.read()
    at_once = log.seen
    data = log.path.read_bytes()
    log.source.close()
    log.path.write_bytes(b"")
    log.open()
    log.seen = []
    for line in data.split(b"\n")[:-1]:
        with log.path.open("ab") as file:
            file.write(line + b"\n")
        log.read()
    assert log.seen == at_once
    assert at_once[0].position.stream == identity(b"")
    assert at_once[1].position.stream == identity(data[:9])
    assert at_once[-1].next.stream == identity(data[:4096])


def test_a_replaced_file_without_its_old_part_is_refused(log: Log) -> None:
    log.read()
    log.source.close()
    log.path.write_bytes(b'{"b": 1}\n' * 10)
    with pytest.raises(SourceError, match=r"log.jsonl: the file was replaced since the checkpoint.*--fresh"):
        log.open(log.seen[-1].next)
    log.path.write_bytes(b"")
    with pytest.raises(SourceError, match=r"log.jsonl: the file is shorter than the position.*--fresh"):
        log.open(log.seen[-1].next)


def test_a_compressed_file_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(gzip.compress(b""))
    with pytest.raises(SourceError, match="a compressed file cannot be followed"):
        JsonLinesSource(path, follow=True).open()


def test_a_compressed_part_that_is_cut_short_is_an_error(log: Log) -> None:
    log.write(3000)
    log.source.open()
    first = log.source.poll(1, timeout=0)
    log.source.close()
    log.rotate()
    packed = compress(log.part(1), ".gz")
    packed.write_bytes(packed.read_bytes()[:-100])
    log.write()
    log.open(first[0].next)
    assert log.source.poll(10, timeout=0)
    with pytest.raises(SourceError, match=r"log.jsonl.1.gz: the compressed data end early"):
        log.read()


def poll(source: CsvSource) -> list[tuple[dict[str, float], object]]:
    records: list[Record] = []
    while polled := source.poll(1000, timeout=0):
        records += polled
    return [(record.x, record.y) for record in records]


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


@pytest.mark.parametrize("multiline", [False, True])
def test_csv_resumes_in_a_growing_file(tmp_path: Path, multiline: bool) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b"a,y\n1,t\n")
    source = CsvSource(path, target="y", follow=True, multiline=multiline)
    with source:
        source.open()
        (record,) = source.poll(10, timeout=0)
    with path.open("ab") as file:
        file.write(b"2,f\n")
    with source:
        source.open({0: record.next})
        assert poll(source) == [({"a": 2.0}, "f")]


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


def test_a_quoted_line_end_waits_for_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b'a,y\n"1\n')
    with CsvSource(path, follow=True, multiline=True) as source, path.open("ab", buffering=0) as file:
        source.open()
        assert poll(source) == []
        file.write(b"2\n")
        assert poll(source) == []
        file.write(b'3",4\n5,6\n')
        assert poll(source) == [({"a": "1\n2\n3", "y": 4.0}, None), ({"a": 5.0, "y": 6.0}, None)]


def test_a_file_that_was_followed_can_be_read_to_its_end(log: Log) -> None:
    log.read()
    again = JsonLinesSource(log.path)
    assert [record.x for record in drain(again, {0: log.seen[0].next})] == [{"a": 1}, {"a": 2}]


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
