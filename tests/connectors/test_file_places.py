"""A place in a file is known again by what was read before it, and by nothing else."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from draining import rest, taken, written

from streamkernel.connectors import CsvSource, JsonLinesSource, Record, SourceError

pytestmark = pytest.mark.usefixtures("no_pause")

SUFFIXES = ["", ".gz", ".zst"]

# 300 columns: a header of more than 4,096 bytes.
COLUMNS = [f"measurement_{number}" for number in range(300)]

HEADER = (",".join(COLUMNS) + "\n").encode()


def rows(first: int, count: int) -> bytes:
    """Rows of 300 columns, each with its number in it."""
    return b"".join(b"%d" % number + b",0" * 299 + b"\n" for number in range(first, first + count))


def numbers(records: list[Record]) -> list[int]:
    assert not [record.fault for record in records if record.fault]
    return [int(record.x[COLUMNS[0]]) for record in records if record.x]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("count", [1, 100])
def test_a_file_with_the_same_long_header_is_another_one(tmp_path: Path, suffix: str, count: int) -> None:
    assert len(HEADER) > 4096
    path = written(tmp_path / f"data.csv{suffix}", HEADER + rows(0, 250))
    _, position = taken(CsvSource(path), count)
    written(path, HEADER + rows(1000, 250))
    with pytest.raises(SourceError, match=r"data\.csv.*replaced.*--fresh"):
        CsvSource(path).open({0: position})


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("alike", [100, 199])
def test_a_file_that_began_alike_and_went_on_otherwise_is_another_one(tmp_path: Path, suffix: str, alike: int) -> None:
    path = written(tmp_path / f"data.csv{suffix}", HEADER + rows(0, 250))
    _, position = taken(CsvSource(path), 200)
    written(path, HEADER + rows(0, alike) + rows(1000, 250 - alike))
    # Rows of different lengths: the place is in the middle of one, or where it was.
    with pytest.raises(SourceError, match=r"data\.csv.*replaced.*4,096 bytes"):
        CsvSource(path).open({0: position})


@pytest.mark.parametrize(
    ("suffix", "how", "count"),
    [
        ("", "rename", 1),
        ("", "copy", 100),
        (".gz", "rename", 300),
        (".gz", "copy", 1),
        (".zst", "rename", 100),
        (".zst", "copy", 300),
    ],
)
def test_a_rotation_while_nobody_reads_loses_nothing(tmp_path: Path, suffix: str, how: str, count: int) -> None:
    """Whichever of the parts, all of one header, was read."""
    path = written(tmp_path / "log.csv", HEADER + rows(0, 300))
    source = CsvSource(path, follow=True)
    records, position = taken(source, count)
    for part in range(2):
        if (tmp_path / "log.csv.1").exists():
            (tmp_path / "log.csv.1").rename(tmp_path / "log.csv.2")
        (path.rename if how == "rename" else lambda to: shutil.copy(path, to))(tmp_path / "log.csv.1")
        written(path, HEADER + rows(300 * (part + 1), 300))
    if suffix:
        whole = tmp_path / "log.csv.2"
        written(tmp_path / f"log.csv.2{suffix}", whole.read_bytes())
        whole.unlink()
    assert numbers(records + rest(source, position)) == list(range(900))


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize("size", [10, 700])
def test_a_record_has_one_name_however_far_the_file_has_grown(tmp_path: Path, follow: bool, size: int) -> None:
    """What stands in an output was written for it by a daemon that saw less of the file."""
    whole = b"".join(b'{"a": %d}\n' % number for number in range(1000))
    path = written(tmp_path / "data.jsonl", b"".join(whole.splitlines(keepends=True)[:size]))
    source = JsonLinesSource(path, follow=follow)
    with source:
        source.open()
        before = source.poll(10_000, timeout=0)
    path.write_bytes(whole)
    with source:
        source.open()
        assert source.poll(10_000, timeout=0)[: len(before)] == before


def test_a_place_is_known_after_the_file_was_truncated(tmp_path: Path) -> None:
    """By what was read, not by what the file holds when the checkpoint is due."""
    path = written(tmp_path / "log.csv", HEADER + rows(0, 50))
    source = CsvSource(path, follow=True)
    with source:
        source.open()
        records = source.poll(20, timeout=0)
        shutil.copy(path, tmp_path / "log.csv.1")
        os.truncate(path, 0)
        place = source.lasting(records[9].next)
    path.write_bytes(HEADER + rows(50, 1))
    assert numbers(rest(source, place)) == list(range(10, 51))


def test_the_place_at_the_end_of_a_file_that_was_left(tmp_path: Path) -> None:
    path = written(tmp_path / "log.csv", HEADER + rows(0, 20))
    source = CsvSource(path, follow=True)
    with source:
        source.open()
        records = source.poll(100, timeout=0)
        path.rename(tmp_path / "log.csv.1")
        path.write_bytes(HEADER)
        # It goes on in a file that has no record yet.
        assert source.poll(100, timeout=0) == []
        place = source.lasting(records[-1].next)
        with path.open("ab") as file:
            file.write(rows(20, 10))
        later = source.poll(100, timeout=0)
        # Those of the file before it were handed out, and may not be learned yet.
        assert source.lasting(records[-1].next) == place
        assert source.lasting(later[3].next) != place
    assert numbers(rest(source, place)) == list(range(20, 30))
