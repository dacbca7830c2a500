"""A journal as a source: its records in the order of their acknowledgement, each once."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from streamkernel.connectors.bulk import too_long_record
from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.settings import InputSettings
from streamkernel.connectors.journal.database import FILE, Database, JournalState, journal_reason
from streamkernel.connectors.objects import JsonObjects
from streamkernel.connectors.pass_through import PassedColumn
from streamkernel.connectors.pass_through_reader import without_message
from streamkernel.connectors.ports import ColumnUse, Position, Record, Source, SourceError

__all__ = ["JournalSource"]

_LOOK_SECONDS = 0.01
_POLL_BYTES = 2**20
_STREAM = re.compile(r"(journal/[^;]*)(?:;last=([0-9a-f]{32}))?", re.ASCII)


class JournalSource(Source):
    """Read what `streamkernel.connectors.journal.writer.JournalWriter` appends, usually in another process.

    Parameters
    ----------
    directory
        The folder of the journal. The source waits for it if it is missing.
    target, target_type, max_record_bytes, max_string, inputs
        As in `streamkernel.connectors.files.source.JsonLinesSource`.
    follow
        Whether to wait for more records at the end.
    max_bytes
        The most bytes that the records may have. Beyond half of it, the newest checkpoint alone decides which records
        the source clears.
    remembered_ids
        The journal remembers the ids of this number of newest records, also of cleared ones.
    checkpoints_kept
        How many checkpoints a restart can choose from. 0: the source clears nothing.

    Examples
    --------
    >>> import tempfile
    >>> from streamkernel.connectors.journal.writer import JournalEntry, JournalWriter
    >>> folder = Path(tempfile.mkdtemp())
    >>> writer = JournalWriter(folder, max_bytes=2**24)
    >>> writer.open()
    >>> _ = writer.append([[JournalEntry(b'{"a": 1, "y": "yes"}')]])
    >>> writer.close()
    >>> with JournalSource(folder, target="y") as source:
    ...     source.open()
    ...     records = source.poll(10, timeout=0)
    >>> records[0].x, records[0].y
    ({'a': 1}, 'yes')

    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        target: str | None = None,
        target_type: str = "str",
        follow: bool = True,
        max_record_bytes: int = 2**20,
        max_string: int = 256,
        inputs: InputSettings | None = None,
        max_bytes: int = 2**28,
        remembered_ids: int = 100_000,
        checkpoints_kept: int = 0,
    ) -> None:
        self.directory = Path(directory)
        self.follow = follow
        self.max_record_bytes = max_record_bytes
        self.max_bytes = max_bytes
        self.remembered_ids = remembered_ids
        self.checkpoints_kept = checkpoints_kept
        rules = None if inputs is None else ColumnRules(inputs, max_string)
        self._decoder = JsonObjects(target, target_type, max_string, rules)
        self._forget()

    def _forget(self) -> None:
        self._database: Database | None = None
        self._stream = ""
        self._begin: Position | None = None
        self._at = 0  # the position of the next record
        self._ended = False
        self._saved: deque[int] = deque()

    def open(self, positions: Mapping[int, Position] | None = None) -> None:
        """Open the journal, or wait for a missing one; see `Source.open`.

        Raises
        ------
        SourceError
            When it is not the journal of the position, or the records after the position are gone.

        """
        self.close()
        if positions and set(positions) != {0}:
            raise SourceError(f"{self.directory}: a journal has only partition 0, not {sorted(positions)}")
        with self._errors():
            state = self._connect()
            if positions:
                self._resume(positions[0], state)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            reason = journal_reason(error)
            raise SourceError(f"{self.directory}: the journal cannot be read: {reason}") from error

    def _connect(self) -> JournalState | None:
        """Open the database where there is one, and return its state."""
        if not (self.directory / FILE).exists():
            return None
        database = Database(self.directory)
        state = database.state()
        if state is None:  # the writer is making it
            database.connection.close()
            return None
        self._database = database
        self._stream, self._at = f"journal/{state.identity}", state.first
        self._begin = Position(self._stream, 0, self._at)
        return state

    def _resume(self, position: Position, state: JournalState | None) -> None:
        match = _STREAM.fullmatch(position.stream)
        if state is None or match is None or self._stream != match[1]:
            what = "there is no journal" if state is None else "this is another journal than the checkpoint's"
            raise SourceError(f"{self.directory}: {what}: restore the previous one, or start over with --fresh")
        if position.offset < state.first:
            raise SourceError(
                f"{self.directory}: records after offset {position.offset} were deleted, because a newer checkpoint "
                "had read them"
            )
        if position.offset > state.newest + 1 or (match[2] and self._digest_before(position) not in ("", match[2])):
            raise SourceError(
                f"{self.directory}: does not hold what was read before offset {position.offset}: restore the previous "
                "journal, or start over with --fresh"
            )
        self._at = position.offset
        self._saved.append(self._at)

    def _digest_before(self, position: Position) -> str:
        """Return the digest of the record before a position; empty where the journal no longer has it."""
        assert self._database is not None
        found = "SELECT lower(hex(digest)) FROM records WHERE position = ?"
        row = self._database.execute(found, position.offset - 1).fetchone()
        return "" if row is None else str(row[0])

    def poll(self, max_records: int, timeout: float) -> Sequence[Record]:
        """Hand out the next records; see `Source.poll`."""
        deadline = time.monotonic() + timeout
        while True:
            with self._errors():
                if self._database is None:
                    self._connect()
                if rows := self._read(max_records):
                    return self._records(rows)
            left = deadline - time.monotonic()
            if left <= 0 or self.exhausted:
                return []
            time.sleep(min(_LOOK_SECONDS, left))

    def _read(self, max_records: int) -> list[tuple[int, bytes]]:
        """Return the next records with their positions."""
        rows: list[tuple[int, bytes]] = []
        if self._database is not None:
            chosen = "SELECT position, record FROM records WHERE position >= ? ORDER BY position LIMIT ?"
            n_bytes = 0
            with closing(self._database.execute(chosen, self._at, max_records)) as cursor:
                for row in cursor:
                    rows.append(row)
                    n_bytes += len(row[1])
                    if n_bytes >= _POLL_BYTES:
                        return rows
            if not rows and not self._database.is_in_place():
                raise SourceError(
                    f"{self.directory}: the journal was removed or replaced while it was read: restore the previous "
                    "one, or start over with --fresh"
                )
        self._ended = len(rows) < max_records
        return rows

    def _records(self, rows: Sequence[tuple[int, bytes]]) -> Sequence[Record]:
        starts = [Position(self._stream, 0, position) for position, _ in rows]
        ends = [Position(self._stream, 0, position + 1) for position, _ in rows]
        self._at = ends[-1].offset
        raws = [raw for _, raw in rows]
        if max(map(len, raws)) <= self.max_record_bytes:
            return self._decoder.records(raws, starts, ends)
        return [self.decode(*one) for one in zip(raws, starts, ends, strict=True)]

    def decode(self, raw: bytes, position: Position, following: Position) -> Record:
        """Return the record of raw bytes; see `Source.decode`."""
        if len(raw) > self.max_record_bytes:
            return too_long_record(raw, len(raw), self.max_record_bytes, position, following)
        return self._decoder.records([raw], [position], [following])[0]

    def pass_through(self, columns: Sequence[PassedColumn], *, message: bool = False) -> None:
        """Let each record hold these columns; see `Source.pass_through`."""
        self._decoder.passing = without_message(self.describe(), columns, message)

    def lasting(self, position: Position) -> Position:
        """Return a position with the digest of the record before it; see `Source.lasting`."""
        with suppress(sqlite3.Error):  # the next poll finds it
            if ";" not in position.stream and self._database and (digest := self._digest_before(position)):
                return position._replace(stream=f"{position.stream};last={digest}")
        return position

    def saved(self, positions: Mapping[int, Position]) -> None:
        """Clear the records that no restart needs; see `Source.saved`."""
        if 0 not in positions or not self.checkpoints_kept or self._database is None:
            return
        offset = positions[0].offset
        if not self._saved or self._saved[-1] != offset:  # else it replaces the checkpoint before
            self._saved.append(offset)
        while len(self._saved) > self.checkpoints_kept:
            self._saved.popleft()
        with suppress(sqlite3.Error):  # the next checkpoint tries again
            state = self._database.state()
            assert state is not None
            # After a restart the older checkpoints are unknown until there are as many new ones.
            until = self._saved[0] if len(self._saved) == self.checkpoints_kept else 0
            if state.bytes > self.max_bytes // 2:
                until = self._saved[-1]
            if until > state.first:
                self._clear(self._database, until, state.newest - self.remembered_ids)

    def _clear(self, database: Database, until: int, forgotten: int) -> None:
        """Clear the records before a position, and forget ids up to another one."""
        with database.transaction():
            database.execute("UPDATE records SET record = NULL WHERE position < ? AND record IS NOT NULL", until)
            database.execute(
                "DELETE FROM records WHERE position < ? AND (id IS NULL OR position <= ?)", until, forgotten
            )

    @property
    def starting_offsets(self) -> Mapping[int, Position]:
        """Where the journal began when it was opened."""
        return {} if self._begin is None else {0: self._begin}

    @property
    def exhausted(self) -> bool:
        """Whether the source reached the end and does not follow."""
        return not self.follow and self._ended

    @property
    def resumable(self) -> bool:
        """Whether a later run can continue where this one ended: always."""
        return True

    def columns(self, record: Record) -> Sequence[ColumnUse]:
        """Return what becomes of each column of a record; see `Source.columns`."""
        return self._decoder.columns(record.raw)

    def describe(self) -> str:
        """Return a phrase such as ``"journal out/journal"``."""
        return f"journal {self.directory}"

    def close(self) -> None:
        """Close the database; closing twice does nothing."""
        if self._database is not None:
            self._database.connection.close()
        self._forget()
