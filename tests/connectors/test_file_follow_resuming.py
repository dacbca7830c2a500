"""A followed file after a restart: its place is found again in whatever became of it."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from rotating import Log, compress

from streamkernel.connectors import JsonLinesSource, SourceError
from streamkernel.connectors.files import rotation
from streamkernel.connectors.files.bytes import File, open_file

pytestmark = pytest.mark.usefixtures("no_pause")


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
