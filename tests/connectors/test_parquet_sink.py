"""The folder of parts: whole files only, each line in one of them, and nothing of anybody else's destroyed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connectors.parquet import parts
from connectors.parquet.columns import Column
from connectors.parquet.sink import ParquetSink
from connectors.ports import SinkError

COLUMNS = [Column("offset", "int"), Column("prediction", "str")]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out"


def sink(path: Path, columns: list[Column] = COLUMNS, **how: Any) -> ParquetSink:
    return ParquetSink(path, columns, **how)


def put(one: ParquetSink, *offsets: int) -> None:
    one.write([{"position": {"partition": 0, "offset": offset}, "prediction": str(offset)} for offset in offsets])


def rows(path: Path) -> list[list[int]]:
    """Give the offsets in each part, in the order of their names."""
    found = sorted(path.glob("*"))
    assert [one.name for one in found] == [parts.part_name(int(one.stem[5:])) for one in found]
    return [pq.read_table(one).column("offset").to_pylist() for one in found]


def flat(path: Path) -> list[int]:
    return [offset for part in rows(path) for offset in part]


def abandoned(one: ParquetSink) -> None:
    """End a sink as a kill would: nothing is written any more."""
    assert one._descriptor is not None
    os.close(one._descriptor)
    one._descriptor = None


def contents(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in sorted(folder.rglob("*")) if one.is_file()}


class TestParts:
    def test_each_flush_ends_a_part(self, path: Path) -> None:
        with sink(path) as one:
            one.open()
            put(one, 1, 2)
            assert rows(path) == []
            mark = one.flush()
            put(one, 3)
            one.flush()
            assert one.flush()["part"] == 2  # nothing came, no part
            put(one, 4)
        assert rows(path) == [[1, 2], [3], [4]]
        assert mark == json.loads(json.dumps(mark))
        assert not list(path.parent.glob(".*"))

    def test_the_same_rows_make_the_same_bytes_however_they_come(self, tmp_path: Path) -> None:
        made = []
        for name, cuts in (("a", [10_000]), ("b", [1, 4_096, 5_000, 903])):
            with sink(tmp_path / name) as one:
                one.open()
                start = 0
                for size in cuts:
                    put(one, *range(start, start + size))
                    start += size
            made.append(contents(tmp_path / name))
        assert made[0] == made[1]

    def test_long_parts_are_rows_groups_of_one_size(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(parts, "_ROW_GROUP", 3000)
        monkeypatch.setattr("connectors.parquet.sink._MOST_BYTES", 1000)  # what waits goes to a file
        with sink(path) as one:
            one.open()
            put(one, *range(5000))
            assert one.waiting_bytes < 1000
            put(one, *range(5000, 10_000))
        about = pq.read_metadata(path / "part-00000000.parquet")
        assert [about.row_group(group).num_rows for group in range(about.num_row_groups)] == [3000, 3000, 3000, 1000]
        assert rows(path) == [list(range(10_000))]

    def test_a_second_sink_is_kept_out(self, path: Path) -> None:
        with sink(path) as one:
            one.open()
            with pytest.raises(SinkError, match="another output writes to it"):
                sink(path).open(one.flush())

    def test_a_sink_that_is_not_open_says_so(self, path: Path) -> None:
        for act in (sink(path).flush, lambda: put(sink(path), 1)):
            with pytest.raises(SinkError, match="the sink is not open"):
                act()

    def test_a_file_in_its_place_is_told(self, path: Path) -> None:
        path.write_bytes(b"mine")
        with pytest.raises(SinkError, match="is a file, and parts of Parquet go to a folder"):
            sink(path).open()
        assert path.read_bytes() == b"mine"


class TestTime:
    """Parts that are filled for some seconds."""

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    def test_a_part_ends_when_its_time_is_over_and_not_with_a_flush(self, path: Path, clock: Clock) -> None:
        with sink(path, roll_seconds=60, clock=clock) as one:
            one.open()
            put(one, 1)
            one.flush()
            clock.now = 59.0
            put(one, 2)
            assert one.flush()["rows"] == 2
            assert (rows(path), one.waiting) == ([], 0)
            clock.now = 60.0
            assert one.waiting == 1  # which makes the loop write
            one.write([])
            assert rows(path) == [[1, 2]]
            assert one.waiting == 0
            put(one, 3)
        assert rows(path) == [[1, 2], [3]]

    @pytest.mark.parametrize("ended", [False, True], ids=["filled", "ended"])
    @pytest.mark.parametrize("more", [False, True])
    def test_a_kill_loses_and_doubles_nothing(self, path: Path, clock: Clock, ended: bool, more: bool) -> None:
        one = sink(path, roll_seconds=60, clock=clock)
        one.open()
        put(one, 1)
        clock.now = 60.0
        one.write([])
        put(one, 2, 3)
        mark = one.flush()
        if more:
            put(one, 4)
            one.flush()
        if ended:
            clock.now = 120.0
            put(one, *([5] if more else []))
            assert len(rows(path)) == 2
        abandoned(one)
        with sink(path, roll_seconds=60, clock=clock) as again:
            again.find_problem(mark)
            again.open(mark)
            put(again, 4, 5)
        found = rows(path)
        assert flat(path) == [1, 2, 3, 4, 5]
        # A part that ended with just the rows of the mark is left alone.
        assert found == ([[1], [2, 3], [4, 5]] if ended and not more else [[1], [2, 3, 4, 5]])

    def test_rows_that_are_gone_are_told(self, path: Path, clock: Clock) -> None:
        one = sink(path, roll_seconds=60, clock=clock)
        one.open()
        put(one, 1)
        mark = one.flush()
        abandoned(one)
        shutil.rmtree(path.parent / ".out.unfinished")
        with pytest.raises(
            SinkError, match=r"the first 1 rows of part-00000000\.parquet are recorded at the checkpoint"
        ):
            sink(path).open(mark)


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
        with pytest.raises(SinkError, match="there is no such folder, and 2 parts of it are recorded"):
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
        with pytest.raises(SinkError, match="is another folder than at the checkpoint, without the part-00000001"):
            sink(path).open(mark)
        assert contents(path) == before

    def test_other_columns_are_refused_with_the_way_on(self, path: Path) -> None:
        mark, _ = self.run(path, kill=True)
        before = contents(path)
        for act in (ParquetSink.find_problem, ParquetSink.open):
            with pytest.raises(
                SinkError, match=r"have the columns offset, prediction, and .* change them back, give an"
            ):
                act(sink(path, [*COLUMNS, Column("id", "str")]), mark)
        assert contents(path) == before

    @pytest.mark.parametrize("wrong", [7, {"part": 1}, {"length": 3, "head": "", "tail": "", "inode": 1}])
    def test_what_is_no_mark_of_parts_is_refused(self, path: Path, wrong: Any) -> None:
        with pytest.raises(SinkError, match="is not of a folder of parts: give another path"):
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
            with pytest.raises(SinkError, match=r"holds 1 files of Parquet that no checkpoint .* existing: append or"):
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
        with pytest.raises(
            SinkError, match=r"its parts have the columns offset \(int64\), prediction \(string\), and new"
        ):
            sink(path, [Column("offset", "int")], existing="append").open()

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
            with pytest.raises(SinkError, match=r"cannot be set aside as out\.old, which is another one"):
                act(sink(path), mark, mark)


class TestFullDisk:
    """What the system refuses waits, and is written once that can be done."""

    @pytest.fixture
    def full(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
        state = {"full": False}
        fsync = os.fsync

        def refusing(descriptor: int) -> None:
            if state["full"]:
                raise OSError(28, "No space left on device")
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", refusing)
        return state

    @pytest.mark.parametrize("roll_seconds", [None, 3600.0])
    def test_no_line_is_lost_or_doubled(self, path: Path, full: dict[str, bool], roll_seconds: float | None) -> None:
        with sink(path, roll_seconds=roll_seconds) as one:
            one.open()
            put(one, 1)
            one.flush()
            full["full"] = True
            put(one, 2)
            for _ in range(2):
                with pytest.raises(SinkError, match="out: cannot be written: No space left on device"):
                    one.flush()
            full["full"] = False
            put(one, 3)
            mark = one.flush()
            put(one, 4)
            abandoned(one)
        with sink(path, roll_seconds=roll_seconds) as one:
            one.open(mark)
            put(one, 4)
        assert flat(path) == [1, 2, 3, 4]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(["write", "flush", "time", "kill", "close"]), max_size=25),
    st.sampled_from([None, 10.0]),
)
def test_whatever_happens_each_line_stands_there_once(
    tmp_path_factory: pytest.TempPathFactory, happenings: list[str], roll_seconds: float | None
) -> None:
    path = tmp_path_factory.mktemp("parts") / "out"
    clock = Clock()
    one = sink(path, roll_seconds=roll_seconds, clock=clock)
    one.open()
    marked: tuple[int, Any] = (0, one.flush())
    next_one = 0
    for happening in [*happenings, "flush", "close"]:
        if happening == "write":
            put(one, next_one, next_one + 1)
            next_one += 2
        elif happening == "flush":
            marked = (next_one, one.flush())
        elif happening == "time":
            clock.now += 10.0
            one.write([])
        else:
            abandoned(one) if happening == "kill" else one.close()
            one = sink(path, roll_seconds=roll_seconds, clock=clock)
            next_one, mark = marked
            one.open(mark)
    one.close()
    assert flat(path) == list(range(next_one))
