"""What a trial puts records into that reads no topic: a directory that is watched, or the journal of a service."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from streamkernel.connectors.journal.writer import JournalEntry, JournalWriter
from tests.chaos.account import Place
from tests.chaos.stream import Feeding, Row

_WAVE = 8
_PAUSE, _REST = 0.05, 0.6


class Directory:
    """Files of JSON lines that arrive by rename, each with what is put at once."""

    section: Mapping[str, Any] = {"kind": "jsonl", "path": "in", "watch": True}

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "in"
        self._folder.mkdir()
        self._files = 0

    def put(self, rows: Sequence[Row]) -> Iterator[tuple[Place, Row]]:
        lines = [(row.value or b"") + b"\n" for row in rows]
        path = self._folder / f"{self._files:06}.jsonl"
        path.with_suffix(".tmp").write_bytes(b"".join(lines))
        path.with_suffix(".tmp").rename(path)
        offset = 0
        for row, line in zip(rows, lines, strict=True):
            yield (self._files, offset), row
            offset += len(line)
        self._files += 1

    def close(self) -> None:
        pass


class Journal:
    """A journal, written as `streamkernel serve` does."""

    section: Mapping[str, Any] = {"kind": "journal", "directory": "journal"}

    def __init__(self, folder: Path) -> None:
        self._writer = JournalWriter(folder / "journal", max_bytes=2**28)
        self._writer.open()
        self._next = 1

    def put(self, rows: Sequence[Row]) -> Iterator[tuple[Place, Row]]:
        entries = [JournalEntry(row.value or b"", row.key.decode()) for row in rows]
        assert self._writer.append([[entry] for entry in entries]) == [[True]] * len(rows)
        for row in rows:
            yield (0, self._next), row
            self._next += 1

    def close(self) -> None:
        self._writer.close()


INTAKES: Mapping[str, Callable[[Path], Directory | Journal]] = {"directory": Directory, "journal": Journal}
"""By the source of a setting, what makes its intake in the folder of a trial."""


def pauses() -> Iterator[float]:
    """Yield the seconds before each time that records are put: they come in waves, with a rest between two.

    A directory that is watched has a checkpoint for each look that finds a new file, and a checkpoint shows all lines.
    Where files never rest, no line is ever due before that, and what a daemon does between two checkpoints is not seen.
    """
    return cycle([_REST, *[_PAUSE] * (_WAVE - 1)])


class IntakeFeeder(Feeding):
    """Puts records into an intake in waves; `rate` is that of records a second, with the rests between the waves."""

    def __init__(self, put: Callable[[Sequence[Row]], None], rows: Iterator[Row], rate: float) -> None:
        self._put, self._rows = put, rows
        self._at_once = max(1, round(rate * sum(islice(pauses(), _WAVE)) / _WAVE))
        super().__init__(pauses())

    def feed(self) -> None:
        self._put(list(islice(self._rows, self._at_once)))
        self.sent += self._at_once
