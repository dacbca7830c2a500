"""A watched directory: each file that arrives by rename is read once, as a whole, with bounded memory."""

from __future__ import annotations

import gzip
import os
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.connectors import CsvSource, JsonLinesSource, Position, Record, Source, SourceError
from streamkernel.connectors.files import watched
from streamkernel.connectors.files.places import FilePlace

CSV = partial(CsvSource, target="y")


def arrive(folder: Path, name: str, text: str | bytes, modified: int) -> Path:
    """Write a file under a name that is let be, and give it its own."""
    part = folder / f"{name}.part"
    part.write_bytes(text.encode() if isinstance(text, str) else text)
    os.utime(part, ns=(modified, modified))
    return part.rename(folder / name)


def rows(*numbers: int) -> str:
    return "a,y\n" + "".join(f"{number},yes\n" for number in numbers)


def poll_all(source: Source) -> list[Record]:
    found: list[Record] = []
    while polled := source.poll(100, 0):
        found += polled
    return found


def values(records: list[Record]) -> list[object]:
    return [record.x.get("a") for record in records]


def kept(source: Source, records: list[Record]) -> dict[int, Position]:
    """Return what a checkpoint holds once these records are dealt with."""
    end = source.lasting(records[-1].next)
    return {end.partition: end}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The directory that is watched."""
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def test_files_are_read_as_they_were_modified_once_they_have_their_names(folder: Path) -> None:
    source = CSV(str(folder), watch=True)
    source.open()
    assert source.starting_offsets == {}
    assert source.poll(10, 0) == []
    arrive(folder, "b.csv", rows(1), 10)
    arrive(folder, "c.csv", rows(3), 20)
    arrive(folder, "a.csv.gz", gzip.compress(rows(2).encode()), 20)
    for name in (".hidden.csv", "half.csv.part", "other.csv.tmp"):
        (folder / name).write_text("garbage")
    (folder / "sub").mkdir()
    records = source.poll(10, 0)
    # Before the first record is learned, it is to be stored which files come in which order.
    (start,) = source.starting_offsets.values()
    place = FilePlace.of(start)
    assert place is not None
    assert place.order is not None
    assert [Path(one).name for one in place.order.files] == ["b.csv", "a.csv.gz", "c.csv"]
    assert source.chooses_order
    assert not source.exhausted
    assert values(records + poll_all(source)) == [1, 2, 3]
    (folder / "half.csv.part").write_text(rows(4))
    (folder / "half.csv.part").rename(folder / "half.csv")
    assert values(poll_all(source)) == [4]
    source.close()


@given(
    arrivals=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=8),
    stops=st.lists(st.integers(1, 5), max_size=6),
)
def test_each_record_comes_once_whatever_arrives_while_a_run_is_down(
    tmp_path_factory: pytest.TempPathFactory, arrivals: list[tuple[int, int]], stops: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("in")
    positions: dict[int, Position] = {}
    seen: list[object] = []
    number = 0
    for stop in [*stops, 1000]:
        for modified, length in [arrivals.pop() for _ in range(min(2, len(arrivals)))] if stop < 1000 else arrivals:
            number += 1
            arrive(folder, f"{number}.csv", rows(*(100 * number + i for i in range(length))), modified)
        source = CSV(str(folder), watch=True)
        source.open(positions)
        left = stop
        while left and (polled := source.poll(left, 0)):
            seen += values(polled)
            left -= len(polled)
            positions |= {key: at for key, at in source.starting_offsets.items() if key not in positions}
            positions[polled[-1].next.partition] = polled[-1].next
        positions = {key: source.lasting(place) for key, place in positions.items()}
        for key in source.settled(positions):
            del positions[key]
        source.close()
    expected = [float(line.split(",")[0]) for path in folder.iterdir() for line in path.read_text().splitlines()[1:]]
    assert sorted(map(float, seen)) == sorted(expected)  # type: ignore[arg-type]


def test_finished_files_may_be_removed_and_are_told(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    first = arrive(folder, "a.csv", rows(1, 2), 10)
    source = CSV(str(folder), watch=True)
    source.open()
    records = source.poll(10, 0)
    positions = kept(source, records)
    assert source.poll(10, 0) == []
    source.saved(positions)
    assert "a.csv: read and saved, may be removed" in caplog.text
    source.close()
    first.unlink()
    arrive(folder, "b.csv", rows(3), 5)
    source.open(positions)
    assert values(poll_all(source)) == [3]
    source.close()


def test_a_file_that_changes_after_it_was_read_is_told_and_not_read_again(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = arrive(folder, "a.csv", rows(1), 10)
    source = CSV(str(folder), watch=True)
    source.open()
    positions = kept(source, poll_all(source))
    path.write_text(rows(1, 2))
    assert poll_all(source) == [] == poll_all(source)
    assert caplog.text.count("was written to after it was read: the late content is not read. Write") == 1
    source.close()
    source.open(positions)
    assert poll_all(source) == []
    path.rename(folder / "b.csv")
    assert values(poll_all(source)) == [1, 2]
    source.close()


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three finished files are known by name, and two files are read at once."""
    monkeypatch.setattr(watched, "MOST_FINISHED", 3)
    monkeypatch.setattr(watched, "MOST_AT_ONCE", 2)


@pytest.mark.usefixtures("few")
def test_what_came_late_is_told_and_the_names_are_bounded(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(1, 8):
        arrive(folder, f"{number}.csv", rows(number), 10 * number)
    source = CSV(str(folder), watch=True)
    source.open()
    records = poll_all(source)
    assert values(records) == [1, 2, 3, 4, 5, 6, 7]
    positions = kept(source, records)
    place = FilePlace.of(next(iter(positions.values())))
    assert place is not None
    assert place.order is not None
    assert len(place.order.finished) <= 3
    assert place.order.watermark is not None
    late = arrive(folder, "late.csv", rows(99), 15)
    assert poll_all(source) == []
    assert "late.csv is late" in caplog.text
    source.close()
    source.open(positions)
    assert poll_all(source) == []
    late.touch()
    assert values(poll_all(source)) == [99]
    source.close()


@pytest.mark.usefixtures("few")
def test_what_was_read_and_left_is_passed_over_without_a_word(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A warning that asks to touch it would have it learned twice."""
    caplog.set_level("INFO")
    source = CSV(str(folder), watch=True)
    source.open()
    for number in range(1, 9):
        arrive(folder, f"{number}.csv", rows(number), 10 * number)
        records = poll_all(source)
        assert values(records) == [number]
    arrive(folder, "0.csv", rows(99), 15)
    assert poll_all(source) == [] == poll_all(source)
    (told,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "0.csv is late" in told
    positions = kept(source, records)
    source.close()
    caplog.clear()
    # A restart cannot tell the one from the others: their number is told, and nothing else.
    source.open(positions)
    assert poll_all(source) == [] == poll_all(source)
    (told,) = caplog.messages
    assert told == (
        f"{folder}: 6 files older than the last 3 read, such as {folder}/5.csv, are there and count as read: touch a "
        "new one to have it read"
    )
    arrive(folder, "00.csv", rows(98), 15)
    assert poll_all(source) == []
    assert "00.csv is late" in caplog.text
    source.close()


@given(arrivals=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), min_size=1, max_size=12))
def test_each_file_is_read_once_or_told_once(
    tmp_path_factory: pytest.TempPathFactory, arrivals: list[tuple[int, int]]
) -> None:
    """However the times of files are mixed, and however few are remembered."""
    folder = tmp_path_factory.mktemp("in")
    told: list[str] = []
    read: list[object] = []
    with pytest.MonkeyPatch.context() as patch, CSV(str(folder), watch=True) as source:
        patch.setattr(watched, "MOST_FINISHED", 2)
        patch.setattr(watched._log, "warning", lambda *said: told.append(str(said[1])))
        source.open()
        for number, (modified, looks) in enumerate(arrivals):
            arrive(folder, f"{number}.csv", rows(number), modified)
            for _ in range(looks):
                read += values(poll_all(source))
        read += values(poll_all(source))
    found = [*(f"{number:g}" for number in read), *(Path(path).stem for path in told)]
    assert sorted(found, key=int) == [str(number) for number in range(len(arrivals))]


@pytest.mark.parametrize(
    ("bad", "detail", "before"),
    [
        ("b,y\n1,no\n", "it lacks 'a' and it also has 'b'", []),
        (gzip.compress(rows(8, 9).encode())[:-12], "the compressed data end early", None),
    ],
    ids=["other columns", "cut short"],
)
def test_a_file_that_cannot_be_read_is_one_dead_letter(
    folder: Path, bad: str | bytes, detail: str, before: list[object] | None
) -> None:
    arrive(folder, "a.csv", rows(1), 10)
    name = "b.csv.gz" if isinstance(bad, bytes) else "b.csv"
    arrive(folder, name, bad, 20)
    arrive(folder, "c.csv", rows(3), 30)
    source = CSV(str(folder), watch=True)
    source.open()
    records = poll_all(source)
    (dead,) = [record for record in records if record.fault is not None]
    assert dead.fault is not None
    assert dead.fault.reason == "corrupt"
    assert detail in dead.fault.detail
    assert dead.raw.endswith(name.encode())
    assert dead.position.partition == 1
    if before is not None:
        assert values(records) == [1, None, 3]
    positions = kept(source, records[: records.index(dead) + 1])
    source.close()
    source.open(positions)
    assert values(poll_all(source)) == [3]
    source.close()


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(rows(1))
    with pytest.raises(SourceError, match=r"a\.csv: .*nor a pattern.* follow: true"):
        CSV(str(path), watch=True).open()


def test_a_folder_that_was_not_opened_has_nothing_to_remove(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    CsvSource(str(tmp_path), watch=True).saved({0: Position("", 0, 0)})  # as a replay does
    assert caplog.messages == []


@pytest.mark.parametrize("again", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize("name", ["b.csv", "b.csv.gz", "b.jsonl.gz"])
def test_a_file_whose_header_is_written_first_is_read_once_it_has_records(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, again: bool
) -> None:
    """A header that is not whole yet binds no other file."""
    content = [b"y,amo", b"y,amount\nyes,3\nno,4\n"] if "csv" in name else [b"", b'{"amount": 3}\n{"amount": 4}\n']
    header, whole = map(gzip.compress, content) if name.endswith(".gz") else content
    (tmp_path / name).write_bytes(header)
    with (CSV if "csv" in name else partial(JsonLinesSource, target="y"))(str(tmp_path), watch=True) as source:
        source.open()
        assert poll_all(source) == [] == poll_all(source)
        if again:
            source.open(dict(source.starting_offsets))
            assert poll_all(source) == []
        (tmp_path / name).write_bytes(whole)
        records = poll_all(source)
        assert [record.x["amount"] for record in records] == [3, 4]
        source.open(kept(source, records))
        assert poll_all(source) == []
        assert caplog.messages == []
