"""A file that grows, is rotated, copied, truncated or deleted while it is followed."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from pathlib import Path

import pytest
from rotating import Log, compress

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
