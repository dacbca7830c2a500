"""Several files as one source: in one order, each record once, however the reading is cut and whatever comes beside."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.connectors import CsvSource, Position, Record, SourceError
from streamkernel.connectors.files.names import MOST_FILES
from streamkernel.connectors.files.places import FilePlace
from streamkernel.connectors.pass_through import PassedColumn
from tests.connectors.draining import drain, written

CSV = partial(CsvSource, target="y")


def three(folder: Path) -> list[str]:
    """Files of different kinds, one without a last line end, one with its columns in another order."""
    written(folder / "part-2.csv", b"a,y\n1,no\n2,yes\nx\n3,no")
    written(folder / "part-10.csv.gz", b"y,a\nyes,4\n\nno,5\n")
    written(folder / "part-100.csv.zst", b"a,y\n6,yes\n")
    return [str(folder / name) for name in ("part-2.csv", "part-10.csv.gz", "part-100.csv.zst")]


def values(records: list[Record]) -> list[object]:
    return [record.x.get("a") for record in records if record.fault is None and not record.blank]


def test_a_pattern_is_read_in_natural_order_by_the_header_of_each_file(tmp_path: Path) -> None:
    three(tmp_path)
    for name in (".part-1.csv", "part-1.csv.tmp", "part-3.csv.part"):
        (tmp_path / name).write_text("garbage")
    records = drain(CSV([f"{tmp_path}/part-*"]))
    assert values(records) == [1, 2, 3, 4, 5, 6]
    assert [record.y for record in records if record.y] == ["no", "yes", "no", "yes", "no", "yes"]
    assert [record.position.partition for record in records] == [0, 0, 0, 0, 1, 1, 1, 2]
    places = [(record.position.partition, record.position.offset) for record in records]
    assert len(set(places)) == len(places)
    assert [place[1] for place in places] == [4, 9, 15, 17, 4, 10, 11, 4]


@given(cuts=st.lists(st.integers(1, 4), max_size=8))
def test_each_record_comes_once_wherever_a_run_ends(tmp_path_factory: pytest.TempPathFactory, cuts: list[int]) -> None:
    folder = tmp_path_factory.mktemp("cuts")
    paths = three(folder)
    whole = drain(CSV([f"{folder}/part-*"]))
    positions: dict[int, Position] = {}
    records: list[Record] = []
    for cut in [*cuts, None]:
        with CSV([f"{folder}/part-*"]) as source:
            source.open(positions)
            if not positions:
                positions |= source.starting_offsets
            left = cut or 1000
            while left and not source.exhausted:
                polled = source.poll(left, 0)
                left -= len(polled)
                records += polled
                if polled:
                    positions[polled[-1].next.partition] = polled[-1].next
            positions = {key: source.lasting(place) for key, place in positions.items()}
            for key in source.settled(positions):
                del positions[key]
        assert len(positions) == 1
    assert [record[:2] for record in records] == [record[:2] for record in whole]
    assert [record.position[1:] for record in records] == [record.position[1:] for record in whole]
    place = FilePlace.of(positions[2])
    assert place is not None
    assert place.order is not None
    assert place.order.files == tuple(paths)
    assert place.at_end
    assert place.order.reordered


def test_finished_files_may_be_removed_and_the_open_one_may_not(tmp_path: Path) -> None:
    paths = three(tmp_path)
    source = CSV(paths)
    source.open()
    first = source.poll(100, 0)
    end = source.lasting(first[-1].next)
    middle = source.lasting(source.poll(1, 0)[-1].next)
    source.close()
    Path(paths[0]).unlink()
    assert values(drain(CSV(paths), {0: end})) == [4, 5, 6]
    Path(paths[1]).unlink()
    with pytest.raises(SourceError, match=r"part-10\.csv\.gz: .*no such file.*in the middle"):
        CSV(paths).open({1: middle})


def test_files_that_come_later_are_not_read_but_at_the_end_of_a_list(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    paths = three(tmp_path)
    pattern = [f"{tmp_path}/part-*"]
    for given_paths in (pattern, paths):
        source = CSV(given_paths)
        source.open()
        end = {0: source.lasting(source.poll(100, 0)[-1].next)}
        source.close()
        late = written(tmp_path / "part-3.csv", b"a,y\n7,no\n")
        if given_paths is pattern:
            assert values(drain(CSV(pattern), end)) == [4, 5, 6]
            assert "1 files match that did not when the run began, and are not read" in caplog.text
        else:
            assert values(drain(CSV([*paths, str(late)]), end)) == [4, 5, 6, 7]
            with pytest.raises(SourceError, match=r"other files in this order.*start over"):
                CSV([str(late), *paths]).open(end)
        late.unlink()


def test_a_single_file_can_become_the_first_of_several(tmp_path: Path) -> None:
    paths = three(tmp_path)
    single = CSV(paths[0])
    single.open()
    position = single.lasting(single.poll(2, 0)[-1].next)
    single.close()
    assert values(drain(CSV(paths), {0: position})) == [3, 4, 5, 6]
    with pytest.raises(SourceError, match="truncated or replaced"):
        CSV(paths[::-1]).open({0: position})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n1\n", r"c.csv: there is no column 'y' for the target"),
        ("a,b,y\n1,2,no\n", r"c.csv: its columns are not those of the files before it, it also has 'b': give all"),
        ("b,y\n1,no\n", r"it lacks 'a' and it also has 'b'"),
    ],
)
def test_other_columns_are_refused_before_anything_is_read(tmp_path: Path, text: str, message: str) -> None:
    written(tmp_path / "a.csv", b"a,y\n1,no\n")
    (tmp_path / "b.csv").write_text("")  # nothing is no other header
    (tmp_path / "c.csv").write_text(text)
    with pytest.raises(SourceError, match=message):
        CSV([f"{tmp_path}/*.csv"]).open()


def test_what_is_missing_or_too_much_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SourceError, match=r"\*.csv: no file matches"):
        CSV([f"{tmp_path}/*.csv"]).open()
    with pytest.raises(SourceError, match=r"none\.csv: there is no such file"):
        CSV([f"{tmp_path}/none.csv"]).open()
    three(tmp_path)
    monkeypatch.setattr("streamkernel.connectors.files.names.MOST_FILES", 2)
    with pytest.raises(SourceError, match=r"3 files.* 2: .*watch: true"):
        CSV([f"{tmp_path}/part-*"]).open()
    with pytest.raises(SourceError, match=r"was not taken from several files"):
        CSV([f"{tmp_path}/part-2*"]).open({3: Position("x", 3, 0)})
    with pytest.raises(ValueError, match=r"standard input .*several files"):
        CSV(["-", "a"])
    assert MOST_FILES == 10_000


def test_columns_pass_through_and_records_are_decoded_by_themselves(tmp_path: Path) -> None:
    for number in (1, 2):
        written(tmp_path / f"{number}.csv", f"id,a,y\nn{number},{number},yes\n".encode())
    source = CSV([f"{tmp_path}/*.csv"])
    source.pass_through([PassedColumn("id", "id", None)])
    source.open()
    assert [use.name for use in source.columns(source.poll(1, 0)[0])] == ["y", "id", "a"]
    (record,) = source.poll(10, 0)
    assert record.passed is not None
    assert dict(record.passed.columns) == {"id": "n2"}
    again = source.decode(record.raw, record.position, record.next)
    assert (again.x, again.y) == (record.x, record.y)
    source.close()

    mixed = CSV(three(tmp_path))
    mixed.open()
    mixed.poll(100, 0)
    mixed.poll(100, 0)
    with pytest.raises(SourceError, match="their columns in different orders"):
        mixed.decode(b"1,no", record.position, record.next)
    mixed.close()
