"""The place behind a last line that had no line end."""

from __future__ import annotations

from pathlib import Path

import pytest
from draining import rest, taken, written

from streamkernel.connectors import CsvSource, Position, SourceError

pytestmark = pytest.mark.usefixtures("no_pause")


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
