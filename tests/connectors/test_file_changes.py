"""The wait at the end of a followed file: it ends with a change, and without inotify after the pause."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rotating import Log

from streamkernel.connectors import JsonLinesSource
from streamkernel.connectors.files.bytes import File
from streamkernel.connectors.files.changes import Changes
from streamkernel.connectors.files.follow import FollowedFile
from streamkernel.connectors.files.listing import FileList
from streamkernel.connectors.files.watched import WatchedFiles

LONG = 30.0

linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def seconds_until_read(log: Log, *changes: Callable[[], object]) -> float:
    """Return how long a source waits for its next record while another thread makes changes one after another."""

    def change() -> None:
        for one in changes:
            time.sleep(0.05)
            one()

    writer = threading.Thread(target=change)
    begun = time.monotonic()
    writer.start()
    records = log.source.poll(10, timeout=LONG)
    took = time.monotonic() - begun
    writer.join()
    assert [record.x["a"] for record in records] == [log.next - 1]
    return took


@linux
def test_a_line_ends_the_wait(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.read()
    monkeypatch.setattr(FileList, "pause", LONG)
    for _ in range(3):
        assert seconds_until_read(log, log.write) < LONG / 3


@linux
def test_rotation_ends_the_wait(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.read()
    monkeypatch.setattr(FileList, "pause", LONG)
    assert seconds_until_read(log, log.rotate, log.path.touch, log.write) < LONG / 3
    assert seconds_until_read(log, log.write) < LONG / 3
    new = log.path.with_name("new")
    log.next = 7
    log.write(path=new)
    assert seconds_until_read(log, log.rotate, lambda: new.rename(log.path)) < LONG / 3


@linux
def test_the_writer_of_the_renamed_file_ends_the_wait(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.read()
    monkeypatch.setattr(FileList, "pause", LONG)
    log.rotate()
    assert seconds_until_read(log, lambda: log.write(path=log.part(1))) < LONG / 3


@linux
def test_another_part_ends_the_wait_after_one_that_ended(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.read()
    monkeypatch.setattr(FileList, "pause", LONG)
    following, there = FollowedFile.following, log.path.with_name("there")
    monkeypatch.setattr(FollowedFile, "following", lambda part: following(part) if there.exists() else None)
    log.rotate()
    log.write()
    assert seconds_until_read(log, there.touch) < LONG / 3


@linux
@pytest.mark.parametrize("pattern", ["", "*.jsonl"])
def test_a_file_that_gets_its_name_ends_the_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    monkeypatch.setattr(WatchedFiles, "pause", LONG)
    before = descriptors()
    with JsonLinesSource(tmp_path / pattern, watch=True) as source:
        source.open()
        log = Log(tmp_path / "log.part")
        log.source = source
        for number in range(3):
            log.write()
            assert seconds_until_read(log, lambda: log.path.rename(tmp_path / f"{number}.jsonl")) < LONG / 3  # noqa: B023
        log.path = tmp_path / "whole.jsonl"
        assert seconds_until_read(log, log.write) < LONG / 3
    assert descriptors() == before


@pytest.mark.parametrize("missing", ["system", "instances"])
def test_without_inotify_the_pause_ends_the_wait(log: Log, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    log.read()
    if missing == "system":
        monkeypatch.setattr(sys, "platform", "other")
    else:
        monkeypatch.setattr("ctypes.CDLL", _NoInstances)
    assert seconds_until_read(log, log.write) < LONG / 3


class _NoInstances:
    """A C library whose user has no instance of inotify left."""

    def __init__(self, _: None) -> None: ...

    def inotify_init1(self, _: int) -> int:
        return -1


@linux
def test_nothing_stays_open(log: Log) -> None:
    before = descriptors()
    log.read()
    for _ in range(3):
        log.source.poll(10, timeout=0.01)
        log.rotate()
        log.write()
        log.read()
    log.source.close()
    assert descriptors() < before


def test_a_wait_without_a_change_takes_its_time(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.touch()
    file = File(path)
    changes = Changes(path, file)
    begun = time.monotonic()
    changes.wait(0.05)
    assert time.monotonic() - begun >= 0.049
    changes.close()
    changes.close()
    file.close()
