"""Messages for people name the line of a record, as an editor counts them; positions stay offsets."""

from __future__ import annotations

from codecs import BOM_UTF8
from pathlib import Path

import pytest

from streamkernel.connectors import CsvSource, Position
from streamkernel.connectors.files import stream
from streamkernel.connectors.files.source import LineSource
from streamkernel.connectors.memory import MemorySource
from streamkernel.connectors.ports import Source
from tests.connectors.draining import written

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
