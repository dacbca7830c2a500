"""A journal: what is acknowledged is read exactly once, whatever is killed, full or failing."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from journals import SEGMENT, all_of, drain, entry, opened, read

from streamkernel.connectors.journal import writer as writing
from streamkernel.connectors.journal.layout import segments
from streamkernel.connectors.journal.lines import JournalEntry, parse_line, to_line
from streamkernel.connectors.journal.source import JournalSource
from streamkernel.connectors.journal.writer import JournalWriter, Refusal
from streamkernel.connectors.ports import Position, SinkError, SourceError


@given(st.text(max_size=20), st.dictionaries(st.text(max_size=5), st.floats(allow_nan=False) | st.text(max_size=5)))
def test_a_line_has_its_entry(id: str, record: dict[str, Any]) -> None:
    raw = json.dumps(record).encode()
    for one in (JournalEntry(raw, id), JournalEntry(raw)):
        line = to_line(one)
        assert line.count(b"\n") == 1
        assert parse_line(line[:-1]) == one
        assert json.loads(line)["record"] == record


@given(st.data())
def test_every_acknowledged_record_is_read_once_through_any_kills(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    writer, source = opened(folder, 64 * SEGMENT), JournalSource(folder, checkpoints_kept=2)
    source.open()
    acknowledged: list[int] = []
    learned: list[int] = []  # by a reader whose checkpoints are `saved`
    saved: tuple[dict[int, Position], int] = ({}, 0)
    positions: dict[int, Position] = {}
    number = 0
    for step in data.draw(st.lists(st.sampled_from("aaarrskw"), max_size=40)):
        if step == "a":  # requests, of which some are answered and all are known by their ids
            requests = []
            for size in data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=3)):
                requests.append([entry(number + i, str(number + i)) for i in range(size)])
                number += size
            assert writer.append(requests) == [[True] * len(one) for one in requests]
            acknowledged = list(range(number))
            assert writer.append(requests) == [[False] * len(one) for one in requests]  # the answer was lost
        elif step == "w":  # the writer is killed in a group, of which some bytes are on the disk
            (group,) = [b"".join(to_line(entry(number + i, str(number + i))) for i in range(9))]
            cut = data.draw(st.integers(0, len(group)))
            with segments(folder)[-1].path.open("ab") as file:
                file.write(group[:cut])
            read_too_early = [one for one in all_of(folder) if one >= number]
            assert read_too_early == []
            for descriptor in writer._descriptors:
                os.close(descriptor)
            writer = opened(folder, 64 * SEGMENT)
            writer.append([[entry(number + i, str(number + i)) for i in range(9)]])  # it is sent again
            number += 9
            acknowledged = list(range(number))
        elif step == "r":
            records = source.poll(data.draw(st.integers(1, 50)), 0)
            if records and not positions:
                assert records[0].position == source.starting_offsets[0]
            learned += [record.x["n"] for record in records]
            if records:
                positions = {0: records[-1].next}
        elif step == "s":
            if positions:
                positions = {0: source.lasting(positions[0])}
                source.saved(positions)
                saved = positions, len(learned)
        else:  # the reader is killed
            source.close()
            positions, n_learned = saved
            del learned[n_learned:]
            source.open(positions)
    while some := read(source):
        learned += some
    assert learned == acknowledged
    source.close()
    writer.close()


def test_ids_are_remembered_over_restarts_and_behind_deleted_segments(tmp_path: Path) -> None:
    source = JournalSource(tmp_path, checkpoints_kept=1)
    source.open()
    for start in range(0, 600, 100):
        writer = opened(tmp_path)
        writer.append([[entry(number, f"id-{number}")] for number in range(start, start + 100)])
        writer.append([[entry(-1)]])
        source.saved({0: drain(source)})
        writer.close()
    assert segments(tmp_path)[0].base > 0
    writer = opened(tmp_path)
    answers = writer.append([[entry(number, f"id-{number}")] for number in range(700)])
    assert [number for number, new in enumerate(answers) if new == [True]] == list(range(600, 700))
    writer.close()
    source.close()


def test_an_exact_entry_with_the_id_of_another_record_is_refused_with_its_request(tmp_path: Path) -> None:
    """Also after a restart, in a segment that is being written and in one whose ids are in a file."""

    def exact(number: int, id: str) -> JournalEntry:
        return entry(number, id)._replace(exact=True)

    writer = opened(tmp_path, 64 * SEGMENT)
    assert writer.append([[exact(1, "a")], [exact(2, "a")]]) == [[True], Refusal.OTHER]
    assert writer.append([[exact(1, "a"), exact(3, "c"), exact(4, "c")]]) == [Refusal.OTHER]
    for number in range(100, 300):
        writer.append([[entry(number, str(number))]])
    writer.append([[exact(5, "e")]])
    assert list(tmp_path.glob("*.ids"))
    for _ in range(2):
        writer.close()
        writer = opened(tmp_path, 64 * SEGMENT)
        again = [[exact(2, "a")], [exact(6, "e")], [exact(1, "a"), exact(5, "e")], [exact(3, "c"), exact(2, "a")]]
        assert writer.append(again) == [Refusal.OTHER, Refusal.OTHER, [False, False], Refusal.OTHER]
        assert writer.append([[entry(2, "a")]]) == [[False]]  # of one that is not exact, the first record counts
    assert [one for one in all_of(tmp_path) if one < 100] == [1, 5]
    writer.close()


def test_few_ids_are_remembered(tmp_path: Path) -> None:
    writer = opened(tmp_path, 64 * SEGMENT, ids=100)
    for number in range(1000):
        writer.append([[entry(number, str(number))]])
    writer.close()
    writer = opened(tmp_path, 64 * SEGMENT, ids=100)
    assert writer.append([[entry(0, "0")], [entry(999, "999")], [entry(901, "901")]]) == [[True], [False], [False]]
    assert 1 <= len(list(tmp_path.glob("*.ids"))) <= 2 < len(segments(tmp_path))
    writer.close()


def test_a_full_journal_takes_nothing_until_it_was_read_and_saved(tmp_path: Path) -> None:
    writer, source = opened(tmp_path), JournalSource(tmp_path, max_bytes=16 * SEGMENT, checkpoints_kept=3)
    source.open()
    n_taken = 0
    while writer.append([[entry(n_taken)]]) != [Refusal.FULL]:
        n_taken += 1
    assert writer.size <= 16 * SEGMENT
    assert writer.append([[entry(0)] * 10, [entry(0)]]) == [Refusal.FULL, Refusal.FULL]
    end = drain(source)
    assert writer.append([[entry(n_taken)]]) == [Refusal.FULL]
    source.saved({0: end})  # one checkpoint alone makes room where it is full
    assert writer.append([[entry(n_taken)]]) == [[True]]
    assert read(source) == [n_taken]
    source.close()
    writer.close()


def test_segments_stay_for_the_checkpoints_that_are_kept(tmp_path: Path) -> None:
    writer, source = opened(tmp_path, 64 * SEGMENT), JournalSource(tmp_path, checkpoints_kept=2)
    source.open()
    ends: list[Position] = []
    for _ in range(3):
        writer.append([[entry(number)] for number in range(300)])  # more than a segment
        ends.append(drain(source))
        source.saved({0: ends[-1]})
        source.saved({0: ends[-1]})  # in the place of the one before
    assert [one.base for one in segments(tmp_path)] == [ends[1].offset]
    with JournalSource(tmp_path) as again:
        again.open({0: ends[1]})
        assert len(read(again)) == 300
        with pytest.raises(SourceError, match="records after offset 0 were deleted"):
            again.open({0: ends[0]._replace(offset=0)})
    source.close()
    writer.close()


def test_a_power_failure_left_a_hole(tmp_path: Path) -> None:
    writer = opened(tmp_path)
    writer.append([[entry(1)]])
    writer.close()
    line = to_line(entry(2))
    with segments(tmp_path)[-1].path.open("ab") as file:
        file.write(line[:3] + bytes(len(line) - 6) + line[-3:] + line)
    writer = opened(tmp_path)
    writer.append([[entry(3)]])
    assert all_of(tmp_path) == [1, 3]
    writer.close()


@pytest.mark.parametrize("call", ["pwrite", "fdatasync"])
def test_a_group_that_cannot_be_written_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    writer = opened(tmp_path)
    writer.append([[entry(1, "1")]])

    def full(*arguments: Any) -> int:
        if call == "pwrite":
            os_pwrite(arguments[0], arguments[1][:5], arguments[2])
        raise OSError(errno.ENOSPC, "No space left on device")

    os_pwrite = os.pwrite
    monkeypatch.setattr(writing.os, call, full)
    for _ in range(2):
        with pytest.raises(OSError, match="No space"):
            writer.append([[entry(2, "2")]])
    monkeypatch.undo()
    assert all_of(tmp_path) == [1]
    assert writer.append([[entry(2, "2")], [entry(1, "1")]]) == [[True], [False]]
    assert all_of(tmp_path) == [1, 2]
    writer.close()


@pytest.mark.parametrize("what", ["removed", "moved", "segment", "replaced"])
def test_what_is_no_longer_there_is_not_written_to(tmp_path: Path, what: str) -> None:
    """An open file takes bytes that nobody would ever read: they must not be acknowledged."""
    folder = tmp_path / "journal"
    writer, source = opened(folder), JournalSource(folder)
    writer.append([[entry(1)]])
    source.open()
    assert read(source) == [1]
    if what == "segment":
        segments(folder)[0].path.unlink()
    else:
        folder.rename(tmp_path / "elsewhere")
    if what == "removed":
        shutil.rmtree(tmp_path / "elsewhere")
    if what == "replaced":
        shutil.copytree(tmp_path / "elsewhere", folder)
    for _ in range(2):
        with pytest.raises(OSError, match="start this service again"):
            writer.append([[entry(2)]])
    if what != "segment":
        with pytest.raises(SourceError, match=r"removed or replaced.*start over"):
            source.poll(10, 0)
    if what == "moved":
        (tmp_path / "elsewhere").rename(folder)
        assert writer.append([[entry(2)]]) == [[True]]
        assert read(source) == [2]
    source.close()
    writer.close()


def test_ids_are_counted_once_where_a_new_segment_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = JournalWriter(tmp_path, 2**20, 3)
    writer.open()
    wide = b'{"n": 1, "a": "%s"}' % (b"x" * 2**16)
    writer.append([[JournalEntry(wide, "a"), JournalEntry(wide, "b")]])
    real = writing.open_regular

    def none_left(*_: Any) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(writing, "open_regular", none_left)
    for _ in range(3):
        with pytest.raises(OSError, match="Too many"):
            writer.append([[entry(2, "c")]])
    monkeypatch.setattr(writing, "open_regular", real)
    writer.append([[entry(2, "c")]])
    writer.close()
    again = JournalWriter(tmp_path, 2**20, 3)
    again.open()
    assert again.append([[entry(3, one) for one in "abcd"]]) == [[False, False, False, True]]
    again.close()


def test_a_second_writer_is_turned_away(tmp_path: Path) -> None:
    writer = opened(tmp_path)
    with pytest.raises(SinkError, match=r"another output .*\(this process\)"):
        opened(tmp_path)
    writer.close()
    opened(tmp_path).close()


def test_a_damaged_journal_is_refused(tmp_path: Path) -> None:
    writer = opened(tmp_path)
    for number in range(200):
        writer.append([[entry(number)]])
    writer.close()
    first, *_, last = segments(tmp_path)
    kept = last.path.read_bytes()
    last.path.write_bytes(b"")
    with pytest.raises(SinkError, match="is shorter than what was committed"):
        opened(tmp_path)
    last.path.write_bytes(kept)
    first.path.write_bytes(b"")
    with pytest.raises(SinkError, match="does not end where"):
        opened(tmp_path)
