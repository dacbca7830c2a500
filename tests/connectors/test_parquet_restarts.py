"""The folder of parts at a restart and at a new beginning: nothing of anybody else's is destroyed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from parts_folder import COLUMNS, abandoned, contents, put, rows, sink

from streamkernel.connectors.parquet.columns import ParquetColumn
from streamkernel.connectors.parquet.sink import ParquetSink
from streamkernel.connectors.ports import SinkError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out"


class TestRestarts:
    """What a mark does not know is removed, and what it knows stays."""

    def run(self, path: Path, kill: bool) -> tuple[Any, Any]:
        one = sink(path)
        one.open()
        put(one, 1)
        first = one.flush()
        put(one, 2)
        second = one.flush()
        put(one, 3)
        if kill:
            abandoned(one)
        else:
            one.close()
        return first, second

    @pytest.mark.parametrize("kill", [True, False])
    @pytest.mark.parametrize("back", [0, 1])
    def test_it_ends_as_if_nothing_had_happened(self, path: Path, kill: bool, back: int) -> None:
        mark = self.run(path, kill)[back]
        with sink(path) as one:
            one.open(mark)
            for offset in ([2], [3])[back:]:
                put(one, *offset)
                one.flush()
        assert rows(path) == [[1], [2], [3]]

    def test_what_is_not_a_part_stays(self, path: Path) -> None:
        mark, _ = self.run(path, kill=True)
        others = ["_SUCCESS", "part-7.parquet", "part-00000009.parquet.bak", "notes.txt"]
        for name in others:
            (path / name).write_bytes(b"mine")
        (path / "part-00000005.parquet").mkdir()
        (path.parent / ".out.unfinished/mine").write_bytes(b"mine")
        (path.parent / ".out.unfinished/part-00000001.parquet").write_bytes(b"half a part")
        with sink(path) as one:
            one.open(mark)
        assert sorted(one.name for one in path.iterdir()) == sorted(
            [*others, "part-00000000.parquet", "part-00000005.parquet"]
        )
        assert contents(path.parent / ".out.unfinished") == {"mine": b"mine"}

    def test_parts_may_be_moved_away(self, path: Path) -> None:
        _, mark = self.run(path, kill=True)
        for one in path.iterdir():
            one.unlink()
        with sink(path) as again:
            again.open(mark)
            put(again, 3)
        assert [one.name for one in path.iterdir()] == ["part-00000002.parquet"]

    def test_a_copy_is_known_by_its_last_part(self, path: Path, tmp_path: Path) -> None:
        _, mark = self.run(path, kill=True)
        shutil.copytree(path, tmp_path / "copy")
        shutil.rmtree(path)
        with pytest.raises(SinkError, match=r"no such folder.* 2 parts"):
            sink(path).open(mark)
        assert not path.exists()
        (tmp_path / "copy").rename(path)
        with sink(path) as again:
            again.open(mark)
        assert rows(path) == [[1], [2]]

    def test_another_folder_is_refused_and_not_touched(self, path: Path, tmp_path: Path) -> None:
        _, mark = self.run(path, kill=True)
        path.rename(tmp_path / "away")
        self.run(path, kill=False)
        (path / "part-00000001.parquet").write_bytes(b"something else")
        before = contents(path)
        with pytest.raises(SinkError, match=r"another folder .*part-00000001"):
            sink(path).open(mark)
        assert contents(path) == before

    def test_other_columns_are_refused_with_the_way_on(self, path: Path) -> None:
        mark, _ = self.run(path, kill=True)
        before = contents(path)
        for act in (ParquetSink.find_problem, ParquetSink.open):
            with pytest.raises(SinkError, match=r"columns offset .* and .* change them back"):
                act(sink(path, [*COLUMNS, ParquetColumn("id", "str")]), mark)
        assert contents(path) == before

    @pytest.mark.parametrize("wrong", [7, {"part": 1}, {"length": 3, "head": "", "tail": "", "file": None}])
    def test_what_is_no_mark_of_parts_is_refused(self, path: Path, wrong: Any) -> None:
        with pytest.raises(SinkError, match="is not from a folder of parts"):
            sink(path).open(wrong)


class TestExisting:
    """Parts that no checkpoint knows."""

    @pytest.fixture(autouse=True)
    def _parts(self, path: Path) -> None:
        with sink(path) as one:
            one.open()
            put(one, 1)

    def test_they_are_refused(self, path: Path) -> None:
        before = contents(path)
        for act in (ParquetSink.find_problem, ParquetSink.open):
            with pytest.raises(SinkError, match=r"1 files of Parquet .* existing: append"):
                act(sink(path))
        assert contents(path) == before

    def test_so_are_files_of_parquet_of_another_name(self, path: Path) -> None:
        (path / "part-00000000.parquet").rename(path / "mine.parquet")
        with pytest.raises(SinkError, match="existing: replace"):
            sink(path).open()

    def test_parts_are_appended(self, path: Path) -> None:
        with sink(path, existing="append") as one:
            one.open()
            put(one, 2)
        assert rows(path) == [[1], [2]]

    def test_but_not_of_other_columns(self, path: Path) -> None:
        with pytest.raises(SinkError, match=r"offset \(int64\), prediction \(string\), and new"):
            sink(path, [ParquetColumn("offset", "int")], existing="append").open()

    def test_they_are_replaced(self, path: Path) -> None:
        (path / "mine.parquet").write_bytes(b"mine")
        with sink(path, existing="replace") as one:
            one.open()
            put(one, 2)
        (path / "mine.parquet").unlink()
        assert rows(path) == [[2]]


class TestSettingAside:
    def test_a_folder_is_renamed_and_the_one_before_goes(self, path: Path) -> None:
        marks = []
        for number in range(3):
            with sink(path) as one:
                one.open()
                put(one, number)
                marks.append(one.flush())
            before = marks[number - 1] if number else None
            sink(path).find_problem_anew(marks[number], before)
            sink(path).set_aside(marks[number], before)
            assert not path.exists()
            assert rows(path.with_name("out.old")) == [[number]]

    def test_what_is_not_known_stays(self, path: Path, tmp_path: Path) -> None:
        with sink(path) as one:
            one.open()
            put(one, 1)
            mark = one.flush()
        path.rename(tmp_path / "away")
        with sink(path) as one:
            one.open()
            put(one, 2)
        sink(path).set_aside(mark)
        assert rows(path) == [[2]]
        with pytest.raises(SinkError, match="no checkpoint of this daemon knows"):
            sink(path).find_problem_anew(mark)

    def test_an_old_folder_of_somebody_else_is_not_destroyed(self, path: Path) -> None:
        with sink(path) as one:
            one.open()
            put(one, 1)
            mark = one.flush()
        path.with_name("out.old").mkdir()
        path.with_name("out.old").joinpath("mine").write_bytes(b"mine")
        for act in (ParquetSink.find_problem_anew, ParquetSink.set_aside):
            with pytest.raises(SinkError, match=r"out\.old, which is another"):
                act(sink(path), mark, mark)
