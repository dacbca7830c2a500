"""A place in a file: known again by what was read before it, after a last line without an end, and as a line number."""

from __future__ import annotations

import os
import shutil
from codecs import BOM_UTF8
from pathlib import Path

import pytest
from draining import rest, taken, written

from streamkernel.connectors import CsvSource, JsonLinesSource, Position, Record, SourceError
from streamkernel.connectors.files import stream
from streamkernel.connectors.files.places import Head
from streamkernel.connectors.files.source import LineSource
from streamkernel.connectors.memory import MemorySource
from streamkernel.connectors.ports import Source

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
        before = list(source.poll(10_000, timeout=0))
    path.write_bytes(whole)
    with source:
        source.open()
        assert list(source.poll(10_000, timeout=0))[: len(before)] == before


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


def test_a_first_line_without_end_is_bounded() -> None:
    head = Head(b"x" * 2**21)
    head.add(b"x")
    assert len(head.data) == 2**20 + 2048


class TestUnended:
    """A last line without its end is a record; when it has grown since, it was not the record it is now."""

    @pytest.fixture
    def place(self, tmp_path: Path) -> tuple[Path, Position]:
        path = written(tmp_path / "data.csv", b"a,b\n1,1\n2,12")
        records, place = taken(CsvSource(path), 2)
        assert [record.x["b"] for record in records] == [1, 12]
        return path, place

    @pytest.mark.parametrize("multiline", [False, True])
    def test_it_is_told_once(self, tmp_path: Path, caplog: pytest.LogCaptureFixture, multiline: bool) -> None:
        for end in (b"\n", b""):
            path = written(tmp_path / "data.csv", b"a,b\n1,1\n2,12" + end)
            caplog.clear()
            with CsvSource(path, multiline=multiline) as source:
                source.open()
                assert [len(source.poll(1, timeout=0)) for _ in range(3)] == [1, 1, 0]
            told = "data.csv: the last line has no line end and is read as it is, though it may be cut short"
            assert [told in one for one in caplog.messages] == ([] if end else [True])

    @pytest.mark.parametrize("more", [b"", b"\n", b"\r\n", b"\r"])
    def test_its_end_may_come_later(self, place: tuple[Path, Position], more: bytes) -> None:
        path, position = place
        with path.open("ab") as file:
            file.write(more)
        source = CsvSource(path)
        assert [record for record in rest(source, position) if not record.blank] == []
        with path.open("ab") as file:
            file.write((b"\n" if more == b"\r" else b"" if more else b"\n") + b"3,3\n")
        (record,) = rest(source, position)
        assert record.x == {"a": 3, "b": 3}

    @pytest.mark.parametrize("suffix", ["", ".gz"])
    @pytest.mark.parametrize("more", [b"3.5", b"3.5\n", b",\n3,3\n", b"\r3\n"])
    def test_a_line_that_grew_is_named(self, place: tuple[Path, Position], more: bytes, suffix: str) -> None:
        path, position = place
        path = written(path.with_name(path.name + suffix), path.read_bytes() + more)
        with pytest.raises(SourceError, match=r"data\.csv.*'2,12'.* '2,12") as raised:
            CsvSource(path).open({0: position})
        assert "add a line end at byte 12" in str(raised.value)
        assert "--fresh" in str(raised.value)


DATA = b'a,b\r\n1,2\r\n\r\n3,"x\ny"\n4,5\n'


def lines_of(source: LineSource, positions: dict[int, Position] | None = None) -> list[str]:
    with source:
        source.open(positions)
        records = source.poll(100, 0)
        return [source.place(0, record.position.offset) for record in reversed(records)][::-1]


@pytest.mark.parametrize("mark", [b"", BOM_UTF8])
@pytest.mark.parametrize("follow", [False, True])
def test_line_ends_in_quotes_count(tmp_path: Path, mark: bytes, *, follow: bool) -> None:
    path = written(tmp_path / "data.csv", mark + DATA)
    said = [f"line {line} (offset {len(mark) + at})" for line, at in [(2, 5), (3, 10), (4, 12), (6, 20)]]
    assert lines_of(CsvSource(path, multiline=True, follow=follow)) == said


def test_where_there_is_no_line_the_offset_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lines_of(CsvSource(written(tmp_path / "data.csv.gz", b"a\n1\n"))) == ["offset 2"]
    path = written(tmp_path / "data.csv", b"a\n1\n22\n")
    with CsvSource(path) as source:
        source.open()
        assert [source.place(0, offset) for offset in (0, 2, 4)] == [
            "line 1 (offset 0)",
            "line 2 (offset 2)",
            "line 3 (offset 4)",
        ]
        # Not the beginning of a line: it was in the file that was rotated. Behind the end: in a file not read yet.
        assert [source.place(0, offset) for offset in (5, 100)] == ["offset 5", "offset 100"]
    assert source.place(0, 2) == "offset 2"
    monkeypatch.setattr(stream, "_MOST_COUNTED", 3)
    assert lines_of(CsvSource(path)) == ["line 2 (offset 2)", "offset 4"]


def test_of_several_files_the_file_is_said(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        written(tmp_path / name, b"a\n1\n")
    source: Source = CsvSource(f"{tmp_path}/*.csv")
    with source:
        source.open()
        source.poll(1, 0)
        source.poll(1, 0)
        places = [source.place(number, 2) for number in range(3)]
    assert places == [
        f"offset 2 of {tmp_path}/a.csv",
        f"line 2 (offset 2) of {tmp_path}/b.csv",
        "offset 2 of partition 2",
    ]
    assert MemorySource(()).place(0, 2) == "offset 2"
