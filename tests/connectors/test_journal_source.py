"""The source of a journal: one that comes later, one that ends, what cannot be used, another journal."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from journals import entry, opened, read

from streamkernel.connectors.journal.layout import COMMITTED, parse_committed
from streamkernel.connectors.journal.lines import JournalEntry
from streamkernel.connectors.journal.source import JournalSource
from streamkernel.connectors.ports import SourceError


def test_a_journal_that_is_made_later(tmp_path: Path) -> None:
    with JournalSource(tmp_path / "later") as source:
        source.open()
        assert source.poll(10, 0.02) == []
        assert source.starting_offsets == {}
        writer = opened(tmp_path / "later")
        writer.append([[entry(1)]])
        assert read(source) == [1]
        assert source.starting_offsets[0].offset == 0
        writer.close()


def test_one_that_is_not_followed_ends(tmp_path: Path) -> None:
    writer = opened(tmp_path)
    writer.append([[entry(1)]])
    writer.close()
    with JournalSource(tmp_path, follow=False) as source:
        source.open()
        assert not source.exhausted
        assert read(source) == [1]
        assert source.exhausted


def test_what_cannot_be_used(tmp_path: Path) -> None:
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
    writer.append([[entry(number)] for number in range(100, 110)])
    shutil.copytree(tmp_path / "journal", tmp_path / "copy")
    writer.append([[entry(number)] for number in range(110, 120)])
    writer.close()
    with JournalSource(tmp_path / "journal") as source:
        source.open()
        (*_, last) = source.poll(100, 0)
        kept = source.lasting(last.next)
        assert source.lasting(kept) == kept != last.next
        source.open({0: kept})
        assert read(source) == []
    copy = opened(tmp_path / "copy")
    copy.append([[entry(number)] for number in range(200, 215)])  # as long as those that were read, and others
    copy.close()
    refused = pytest.raises(
        SourceError, match=r"does not hold what was read before offset \d+: restore the previous journal,"
    )
    with JournalSource(tmp_path / "copy") as source, refused:
        source.open({0: kept})


def test_another_journal_is_refused(tmp_path: Path) -> None:
    opened(tmp_path / "one").close()
    opened(tmp_path / "two").close()
    with JournalSource(tmp_path / "one") as source:
        source.open()
        begin = source.starting_offsets
    for name, what in (("two", "this is another journal"), ("none", "there is no journal")):
        with pytest.raises(SourceError, match=f"{what}.*start over"):
            JournalSource(tmp_path / name).open(begin)
    with (
        JournalSource(tmp_path / "one") as source,
        pytest.raises(SourceError, match="before offset 7"),
    ):
        source.open({0: begin[0]._replace(offset=7)})


def test_what_is_committed_is_told_whole(tmp_path: Path) -> None:
    writer = opened(tmp_path)
    writer.append([[entry(1)]])
    committed = tmp_path / COMMITTED
    whole = committed.read_bytes()
    assert parse_committed(whole) == writer.committed
    with JournalSource(tmp_path) as source:
        source.open()
        for cut in (b"", whole[:10], whole[::-1]):
            committed.write_bytes(cut)
            source.poll(0, 0)
        writer.append([[entry(2)]])
        assert read(source) + read(source) == [1, 2]
    writer.close()
