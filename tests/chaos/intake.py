"""What a trial puts records into that reads no topic: a directory that is watched, or the journal of a service."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from connectors.journal.lines import JournalEntry, to_line
from connectors.journal.writer import JournalWriter
from tests.chaos.account import Place
from tests.chaos.stream import Row

__all__ = ["INTAKES", "Intake", "IntakeFeeder"]

_PAUSE = 0.05


class Intake(Protocol):
    """Where the records of a trial go, beside its configuration.

    Attributes
    ----------
    section
        What the configuration says of it as a source.

    """

    section: Mapping[str, Any]

    def put(self, rows: Sequence[Row]) -> Iterator[tuple[Place, Row]]:
        """Add records that have a value, all at once, and yield where each of them is."""

    def close(self) -> None:
        """Let go of it."""


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
        self._writer = JournalWriter(folder / "journal", max_bytes=2**28, remembered_ids=1000)
        self._writer.open()

    def put(self, rows: Sequence[Row]) -> Iterator[tuple[Place, Row]]:
        offset = self._writer.committed
        entries = [JournalEntry(row.value or b"", row.key.decode()) for row in rows]
        assert self._writer.append([[entry] for entry in entries]) == [[True]] * len(rows)
        for row, entry in zip(rows, entries, strict=True):
            yield (0, offset), row
            offset += len(to_line(entry))

    def close(self) -> None:
        self._writer.close()


INTAKES: Mapping[str, Callable[[Path], Intake]] = {"directory": Directory, "journal": Journal}
"""By the source of a setting, what makes its intake in the folder of a trial."""


class IntakeFeeder:
    """Puts records into an intake steadily, on a thread of its own.

    Parameters
    ----------
    put
        Adds records.
    rows
        The records.
    rate
        Records a second.

    """

    def __init__(self, put: Callable[[Sequence[Row]], None], rows: Iterator[Row], rate: float) -> None:
        self.sent = 0
        self._put, self._rows = put, rows
        self._at_once = max(1, round(rate * _PAUSE))
        self._failures: list[BaseException] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="intake", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, and raise what went wrong, if anything did."""
        self._stopping.set()
        self._thread.join()
        if self._failures:
            raise self._failures[0]

    def _run(self) -> None:
        try:
            while not self._stopping.wait(_PAUSE):
                self._put(list(islice(self._rows, self._at_once)))
                self.sent += self._at_once
        except BaseException as error:
            self._failures.append(error)
