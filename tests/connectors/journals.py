"""Journals of numbered records: what writes them, and what reads them to the end."""

from __future__ import annotations

import json
from pathlib import Path

from streamkernel.connectors.journal.lines import JournalEntry
from streamkernel.connectors.journal.source import JournalSource
from streamkernel.connectors.journal.writer import JournalWriter
from streamkernel.connectors.ports import Position

SEGMENT = 1024


def opened(folder: Path, max_bytes: int = 16 * SEGMENT, ids: int = 1000) -> JournalWriter:
    writer = JournalWriter(folder, max_bytes, ids)
    writer.open()
    return writer


def entry(number: int, id: str | None = None) -> JournalEntry:
    return JournalEntry(json.dumps({"n": number}).encode(), id)


def read(source: JournalSource, most: int = 10_000) -> list[int]:
    return [record.x["n"] for record in source.poll(most, 0)]


def drain(source: JournalSource) -> Position:
    """Read all there is; gives where the next record will begin."""
    while records := source.poll(10_000, 0):
        end = records[-1].next
    return end


def all_of(folder: Path) -> list[int]:
    with JournalSource(folder) as source:
        source.open()
        numbers = []
        while some := read(source):
            numbers += some
        return numbers
