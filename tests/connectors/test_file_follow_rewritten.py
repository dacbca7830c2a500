"""A followed file that is rewritten or replaced: no record is read twice, and a running source decides as a restart."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from rotating import Log

from streamkernel.connectors import SourceError

pytestmark = pytest.mark.usefixtures("no_pause")


def records(first: int, end: int) -> bytes:
    return b"".join(b'{"a": %d, "text": "a record of some length"}\n' % number for number in range(first, end))


@pytest.fixture
def read(tmp_path: Path) -> Log:
    """A log of 500 records that were read."""
    log = Log(tmp_path / "log.jsonl")
    log.path.write_bytes(records(0, 500))
    log.open()
    assert log.read() == list(range(500))
    return log


def moved_over(path: Path, data: bytes) -> None:
    other = path.with_name("other")
    other.write_bytes(data)
    other.rename(path)


def one_byte_is_changed(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(b"X")
        file.seek(0, os.SEEK_END)
        file.write(records(500, 501))


REWRITTEN: dict[str, Callable[[Path], object]] = {
    "a byte of the last record is changed": one_byte_is_changed,
    "a longer file with the same beginning": lambda path: moved_over(path, records(0, 200) + records(1000, 1500)),
    "a few records the same": lambda path: moved_over(path, records(0, 3) + records(1000, 1500)),
    "written again slowly": lambda path: path.write_bytes(records(0, 100)),
    "written again slowly, few records": lambda path: path.write_bytes(records(0, 3)),
    "deleted and written again": lambda path: (path.unlink(), path.write_bytes(records(0, 100))),
    "its first records are cut off": lambda path: moved_over(path, records(50, 501)),
    "a record before the others": lambda path: moved_over(path, records(7, 8) + records(0, 500)),
    "a byte of the first record is changed": lambda path: path.write_bytes(b"{ " + records(0, 501)[1:]),
    "other line ends": lambda path: path.write_bytes(records(0, 501).replace(b"\n", b"\r\n")),
    "room for it, and a beginning": lambda path: path.write_bytes(records(0, 100) + bytes(100_000)),
}


@pytest.mark.parametrize("how", REWRITTEN)
def test_what_repeats_a_part_of_what_was_read_is_refused_as_at_a_restart(read: Log, how: str) -> None:
    place = read.source.lasting(read.seen[-1].next)
    REWRITTEN[how](read.path)
    with pytest.raises(SourceError, match=r"log\.jsonl: .*--fresh") as running:
        read.read()
    with pytest.raises(SourceError) as again:
        read.read()
    read.source.close()
    with pytest.raises(SourceError) as restarted:
        read.open(place)
    assert str(running.value) == str(again.value) == str(restarted.value)


@pytest.mark.parametrize("unfinished", [b"", b'{"a": 50'])
def test_a_file_that_holds_what_was_read_is_gone_on_with(
    read: Log, unfinished: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    if unfinished:
        with read.path.open("ab") as file:
            file.write(unfinished)
        assert read.read() == []
    place = read.source.lasting(read.seen[-1].next)
    moved_over(read.path, records(0, 505))
    assert read.read() == list(range(500, 505))
    assert "was replaced by a file that begins with what was read" in caplog.text
    moved_over(read.path, records(0, 506))
    assert read.read() == [505]
    read.source.close()
    read.open(place)
    assert read.read() == list(range(500, 506))
    read.source.close()


@pytest.mark.parametrize("replace", [moved_over, Path.write_bytes])
def test_one_line_in_common_is_no_repetition(read: Log, replace: Callable[[Path, bytes], object]) -> None:
    """Not until there is more than one line can it be told."""
    replace(read.path, records(0, 1))
    assert read.read() == []
    with read.path.open("ab") as file:
        file.write(records(501, 503))
    assert read.read() == [0, 501, 502]
    read.source.close()


def test_room_for_what_is_yet_to_be_written_is_not_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = Log(tmp_path / "log.jsonl")
    log.path.write_bytes(bytes(600_000))
    log.open()
    (start,) = log.source.starting_offsets.values()
    assert log.read() == []
    with log.path.open("r+b", buffering=0) as file, caplog.at_level(logging.WARNING):
        file.write(records(0, 10) + b'{"a": ')
        assert log.read() == list(range(10))
        file.write(b"10}\n" + records(11, 9_000))
        assert log.read() == list(range(10, 9_000))
        place = log.source.lasting(log.seen[-1].next)
        file.write(records(9_000, 9_001))
        log.source.close()
        log.open(place)
        assert log.read() == [9_000]
        file.truncate()
        assert log.read() == []
    assert caplog.messages == []
    log.source.close()
    log.open(start)
    assert log.read() == list(range(9_001))
    log.source.close()
