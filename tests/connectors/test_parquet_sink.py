"""Parquet: columns of lines, whole parts only, each line in one of them, whatever time, kills and full disks do."""

from __future__ import annotations

import json
import math
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from parts_folder import Clock, abandoned, contents, flat, put, rows, sink

from streamkernel.connectors.parquet import folder
from streamkernel.connectors.parquet.columns import LineColumns, prediction_columns
from streamkernel.connectors.pass_through import PassedColumn
from streamkernel.connectors.ports import SinkError


def line(**values: Any) -> dict[str, Any]:
    return {"position": {"partition": 1, "offset": 2**40}, "prediction": None, "target": None, **values}


def read(kind: Any, *values: Any) -> list[Any]:
    table = LineColumns(prediction_columns(kind))
    column: list[Any] = table.batch([line(prediction=value) for value in values]).column("prediction").to_pylist()
    return column


def test_the_schema_is_known_before_the_first_line() -> None:
    included = [PassedColumn("id", "id"), PassedColumn("at", "when", "timestamp")]
    assert LineColumns(prediction_columns("bool", [], included)).schema == pa.schema(
        [
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("prediction", pa.bool_()),
            ("target", pa.bool_()),
            ("probabilities", pa.map_(pa.string(), pa.float64())),
            ("id", pa.string()),
            ("when", pa.timestamp("us", tz="UTC")),
        ]
    )
    assert LineColumns(prediction_columns("float", [True])).schema.names[2:] == ["prediction", "target", "std"]


@pytest.mark.parametrize(
    ("kind", "values", "found"),
    [
        ("str", ["a", 3, True, None, np.str_("b"), "\ud800"], ["a", "3", "true", None, "b", "\\ud800"]),
        ("int", [1, np.int64(2), 2**63, True, "3", None], [1, 2, None, None, None, None]),
        ("bool", [True, np.bool_(False), 1, "true", None], [True, False, None, None, None]),
        ("float", [1.5, np.float32(0.5), 2, math.nan, math.inf, "x", None], [1.5, 0.5, 2.0, None, None, None, None]),
    ],
)
def test_a_value_that_does_not_fit_is_null_and_told_once(
    kind: Any, values: list[Any], found: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    assert read(kind, *values) == found
    assert len(caplog.records) == (kind != "str")


def test_probabilities_are_a_map_or_columns() -> None:
    given_line = line(probabilities={True: 0.25, False: math.nan})
    (mapped,) = LineColumns(prediction_columns("bool")).batch([given_line]).to_pylist()
    assert mapped["probabilities"] == [("true", 0.25), ("false", None)]
    table = LineColumns(prediction_columns("bool", [True]), [True])
    rows = table.batch([given_line, line(probabilities={}), line()]).to_pylist()
    assert [row["probability_true"] for row in rows] == [0.25, None, None]
    assert [row["other_probability"] for row in rows] == [None, None, None]


def test_what_passes_through_has_its_type() -> None:
    included = [PassedColumn("id", "id"), PassedColumn("at", "at", "timestamp"), PassedColumn("n", "n", "int")]
    table = LineColumns(prediction_columns("str", (), included))
    rows = table.batch([line(id={"a": 1}, at="2026-11-22T09:00:00.5Z", n=3), line(id=7)]).to_pylist()
    assert (rows[0]["id"], rows[1]["id"]) == ('{"a":1}', "7")
    assert (rows[0]["at"], rows[0]["n"]) == (datetime(2026, 11, 22, 9, 0, 0, 500_000, UTC), 3)
    assert rows[1]["at"] is None


def test_a_name_without_a_column_is_refused() -> None:
    with pytest.raises(SinkError, match=r"parquet: .*no column .*'more'"):
        LineColumns(prediction_columns("str")).batch([line(more=1)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out"


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
        monkeypatch.setattr(folder, "ROW_GROUP", 3000)
        monkeypatch.setattr("streamkernel.connectors.parquet.sink.MOST_BYTES", 1000)  # what waits goes to a file
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

    def test_a_part_that_ended_with_the_rows_of_the_mark_is_left_alone(self, path: Path, clock: Clock) -> None:
        one = sink(path, roll_seconds=60, clock=clock)
        one.open()
        put(one, 1, 2)
        mark = one.flush()
        clock.now = 60.0
        one.write([])
        abandoned(one)
        with sink(path, roll_seconds=60, clock=clock) as again:
            again.find_problem(mark)
            again.open(mark)
            put(again, 3)
        assert rows(path) == [[1, 2], [3]]

    def test_rows_that_are_gone_are_told(self, path: Path, clock: Clock) -> None:
        one = sink(path, roll_seconds=60, clock=clock)
        one.open()
        put(one, 1)
        mark = one.flush()
        abandoned(one)
        shutil.rmtree(path.parent / ".out.unfinished")
        with pytest.raises(SinkError, match=r"first 1 rows of part-00000000\.parquet"):
            sink(path).open(mark)


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

    @pytest.mark.parametrize("seconds", [None, 3600.0])
    def test_no_line_is_lost_or_doubled(self, path: Path, full: dict[str, bool], seconds: float | None) -> None:
        with sink(path, roll_seconds=seconds) as one:
            one.open()
            put(one, 1)
            one.flush()
            full["full"] = True
            put(one, 2)
            for _ in range(2):
                with pytest.raises(SinkError, match=r"out: .*: No space left"):
                    one.flush()
            full["full"] = False
            put(one, 3)
            mark = one.flush()
            put(one, 4)
            abandoned(one)
        with sink(path) as one:
            one.open(mark)
            put(one, 4)
        assert flat(path) == [1, 2, 3, 4]

    def test_a_part_that_could_not_be_written_is_filled_on_for_a_while(self, path: Path, full: dict[str, bool]) -> None:
        clock = Clock()
        with sink(path, roll_seconds=60, clock=clock) as one:
            one.open()
            put(one, 1)
            clock.now, full["full"] = 60.0, True
            with pytest.raises(SinkError, match="No space left on device"):
                one.write([])
            full["full"] = False
            assert one.waiting == 0
            put(one, 2)
            assert rows(path) == []
            clock.now = 70.0
            one.write([])
            assert rows(path) == [[1, 2]]


@given(
    st.lists(st.sampled_from(["write", "flush", "time", "kill", "close"]), max_size=25),
    st.sampled_from([None, 10.0]),
)
@example(
    happenings=["write", "flush", "write", "close", "kill"], roll_seconds=10.0
)  # killed as it goes back into a part
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
