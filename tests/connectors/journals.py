"""Journals of numbered records: what writes them, and what reads them to the end."""

from __future__ import annotations

import json
from pathlib import Path

from streamkernel.connectors.journal.source import JournalSource
from streamkernel.connectors.journal.writer import JournalEntry, JournalWriter


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
