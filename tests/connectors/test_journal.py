"""A journal: what is acknowledged is read exactly once, whatever is killed, full or failing."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.connectors.journal.database import FILE, journal_reason
from streamkernel.connectors.journal.source import JournalSource
from streamkernel.connectors.journal.writer import JournalEntry, JournalWriter, Refusal
from streamkernel.connectors.ports import Position, SinkError, SourceError


def opened(folder: Path, max_bytes: int = 2**20) -> JournalWriter:
    writer = JournalWriter(folder, max_bytes)
    writer.open()
    return writer


def entry(number: int, id: str | None = None, exact: bool = False) -> JournalEntry:
    return JournalEntry(json.dumps({"n": number}).encode(), id, exact)


def read(source: JournalSource, most: int = 10_000) -> list[int]:
    return [record.x["n"] for record in source.poll(most, 0)]


def all_of(folder: Path) -> list[int]:
    with JournalSource(folder) as source:
        source.open()
        return read(source)


@given(st.data())
def test_every_acknowledged_record_is_read_once_through_any_kills(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    writer, source = opened(folder), JournalSource(folder, checkpoints_kept=2)
    source.open()
    learned: list[int] = []  # by a reader whose checkpoints are `saved`
    saved: tuple[dict[int, Position], int] = ({}, 0)
    positions: dict[int, Position] = {}
    number = 0
    for step in data.draw(st.lists(st.sampled_from("aaarrskw"), max_size=40)):
        if step == "a":
            requests = []
            for size in data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=3)):
                requests.append([entry(number + i, str(number + i)) for i in range(size)])
                number += size
            assert writer.append(requests) == [[True] * len(one) for one in requests]
            assert writer.append(requests) == [[False] * len(one) for one in requests]  # the answer was lost
        elif step == "w":  # the writer dies in a transaction
            assert writer._database is not None
            connection = writer._database.connection
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO records (digest, record) VALUES (x'00', '{\"n\": -1}')")
            assert -1 not in all_of(folder)
            connection.close()
            writer = opened(folder)
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
    assert learned == list(range(number))
    source.close()
    writer.close()


def test_ids_are_remembered_over_restarts_and_after_their_records_are_cleared(tmp_path: Path) -> None:
    with JournalSource(tmp_path, checkpoints_kept=1, remembered_ids=300) as source:
        source.open()
        for start in range(0, 600, 100):
            writer = opened(tmp_path)
            writer.append([[entry(number, f"id-{number}")] for number in range(start, start + 100)])
            source.saved({0: source.poll(1000, 0)[-1].next})
            writer.close()
        writer = opened(tmp_path)
        assert writer.size() == 0
        answers = writer.append([[entry(number, f"id-{number}")] for number in (0, 299, 300, 599, 600)])
        assert answers == [[True], [True], [False], [False], [True]]
        writer.close()


def test_an_exact_entry_with_the_id_of_another_record_is_refused_with_its_request(tmp_path: Path) -> None:
    for restarted in (False, True):
        writer = opened(tmp_path)
        asked = [
            [entry(1, "a", True)],
            [entry(2, "a", True)],
            [entry(1, "a", True), entry(3, "c"), entry(4, "a", True)],
        ]
        assert writer.append(asked) == [[not restarted], Refusal.OTHER, Refusal.OTHER]
        assert writer.append([[entry(2, "a")]]) == [[False]]  # of one that is not exact, the first record counts
        assert all_of(tmp_path) == [1]
        writer.close()


def test_a_full_journal_takes_nothing_until_it_was_read_and_saved(tmp_path: Path) -> None:
    writer = opened(tmp_path, max_bytes=1000)
    with JournalSource(tmp_path, max_bytes=1000, checkpoints_kept=3) as source:
        source.open()
        n_taken = 0
        while writer.append([[entry(n_taken, str(n_taken))]]) != [Refusal.FULL]:
            n_taken += 1
        assert writer.size() <= 1000
        # A repeat needs no room; a smaller request may still have some.
        assert writer.append([[entry(0, "0")], [entry(0)] * 10]) == [[False], Refusal.FULL]
        *_, last = source.poll(1000, 0)
        assert writer.append([[entry(n_taken)]]) == [Refusal.FULL]
        source.saved({0: last.next})  # one checkpoint alone makes room where it is full
        assert writer.append([[entry(n_taken)]]) == [[True]]
        assert read(source) == [n_taken]
    writer.close()


def test_records_stay_for_the_checkpoints_that_are_kept(tmp_path: Path) -> None:
    writer = opened(tmp_path)
    with JournalSource(tmp_path, checkpoints_kept=2) as source:
        source.open()
        begin, ends = source.starting_offsets[0], []
        for _ in range(3):
            writer.append([[entry(number)] for number in range(300)])
            ends.append(source.poll(1000, 0)[-1].next)
            source.saved({0: ends[-1]})
            source.saved({0: ends[-1]})  # it replaces the one before
    with JournalSource(tmp_path) as again:
        again.open({0: ends[1]})
        assert len(read(again)) == 300
        with pytest.raises(SourceError, match="records after offset 1 were deleted"):
            again.open({0: begin})
    writer.close()


def test_errors_of_sqlite_are_sentences_and_nothing_is_appended(tmp_path: Path) -> None:
    writer = opened(tmp_path)
    assert writer._database is not None
    connection = writer._database.connection
    connection.execute("PRAGMA max_page_count = 1")
    with pytest.raises(sqlite3.Error) as full:
        writer.append([[JournalEntry(b"x" * 2**20, "1")]])
    connection.execute(f"PRAGMA max_page_count = {2**30}")
    connection.execute("PRAGMA busy_timeout = 1")
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.Error) as locked:
            writer.append([[entry(1, "1")]])
    assert [journal_reason(one.value) for one in (full, locked)] == [
        "the disk is full",
        "another process holds its lock",
    ]
    assert writer.append([[entry(1, "1")]]) == [[True]]
    writer.close()
    (tmp_path / FILE).write_bytes(b"no database" * 1000)
    with pytest.raises(SinkError, match=r"journal\.sqlite is not a journal: restore a backup"):
        opened(tmp_path)
    with pytest.raises(SourceError, match=r"journal\.sqlite is not a journal: restore a backup"):
        JournalSource(tmp_path).open()


def test_two_services_append_to_one_journal(tmp_path: Path) -> None:
    one, other = opened(tmp_path), opened(tmp_path)
    assert one.append([[entry(1, "1")]]) == other.append([[entry(2, "2")]]) == [[True]]
    assert other.append([[entry(1, "1")]]) == [[False]]
    assert all_of(tmp_path) == [1, 2]
    one.close()
    other.close()


@pytest.mark.parametrize("what", ["removed", "moved", "replaced"])
def test_a_journal_that_is_no_longer_there_is_not_written_to(tmp_path: Path, what: str) -> None:
    """An open file takes bytes that nobody would ever read: they must not be acknowledged."""
    folder = tmp_path / "journal"
    writer, source = opened(folder), JournalSource(folder)
    writer.append([[entry(1)]])
    source.open()
    assert read(source) == [1]
    folder.rename(tmp_path / "elsewhere")
    if what == "removed":
        shutil.rmtree(tmp_path / "elsewhere")
    if what == "replaced":
        shutil.copytree(tmp_path / "elsewhere", folder)
    for _ in range(2):
        with pytest.raises(OSError, match="start this service again"):
            writer.append([[entry(2)]])
    with pytest.raises(SourceError, match=r"removed or replaced.*start over"):
        source.poll(10, 0)
    if what == "moved":
        (tmp_path / "elsewhere").rename(folder)
        assert writer.append([[entry(2)]]) == [[True]]
        assert read(source) == [2]
    source.close()
    writer.close()


def test_a_journal_that_is_made_later_and_one_that_ends(tmp_path: Path) -> None:
    with JournalSource(tmp_path / "later") as source:
        source.open()
        assert source.poll(10, 0.02) == []
        assert source.starting_offsets == {}
        writer = opened(tmp_path / "later")
        writer.append([[entry(1)]])
        assert read(source) == [1]
        assert source.starting_offsets[0].offset == 1
        writer.close()
    with JournalSource(tmp_path / "later", follow=False) as source:
        source.open()
        assert not source.exhausted
        assert read(source) == [1]
        assert source.exhausted


def test_records_that_cannot_be_used(tmp_path: Path) -> None:
    writer = opened(tmp_path)
    writer.append([[JournalEntry(b"[1]"), JournalEntry(b'{"n": 1, "a": "%s"}' % (b"x" * 300)), entry(2)]])
    writer.append([[JournalEntry(b'{"long": "%s"}' % (b"x" * 900))]])
    writer.close()
    with JournalSource(tmp_path, max_record_bytes=500) as source:
        source.open()
        reasons = [record.fault and record.fault.reason for record in source.poll(10, 0)]
    assert reasons == ["not_an_object", "string_too_long", None, "too_long"]


def test_an_older_copy_that_grew_beyond_the_position_is_refused(tmp_path: Path) -> None:
    writer = opened(tmp_path / "journal")
    writer.append([[entry(number)] for number in range(10)])
    writer.close()
    shutil.copytree(tmp_path / "journal", tmp_path / "copy")
    writer = opened(tmp_path / "journal")
    writer.append([[entry(number)] for number in range(10, 20)])
    writer.close()
    with JournalSource(tmp_path / "journal") as source:
        source.open()
        (*_, last) = source.poll(100, 0)
        kept = source.lasting(last.next)
        assert source.lasting(kept) == kept != last.next
        source.open({0: kept})
        assert read(source) == []
    with JournalSource(tmp_path / "copy") as source:
        for numbers in ((), range(200, 215)):  # too short; as long as the journal that was read, with other records
            copy = opened(tmp_path / "copy")
            copy.append([[entry(number)] for number in numbers])
            copy.close()
            with pytest.raises(SourceError, match=r"what was read before offset 21: restore the previous journal,"):
                source.open({0: kept})


def test_another_journal_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        opened(tmp_path / name).close()
    with JournalSource(tmp_path / "one") as source:
        source.open()
        begin = source.starting_offsets
    for name, what in (("two", "this is another journal"), ("none", "there is no journal")):
        with pytest.raises(SourceError, match=f"{what}.*start over"), JournalSource(tmp_path / name) as source:
            source.open(begin)
