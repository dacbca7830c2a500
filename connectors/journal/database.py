"""The database of a journal: its tables, how it is opened, and its errors in words.

The table `records` has a row for each record: its position, the id by which a repeat is known, a digest of its bytes,
and the bytes. A reader clears the bytes of records that no restart needs. The ids stay until newer ones replace them.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from streamkernel.connectors.os_reason import os_reason

__all__ = ["FILE", "Database", "JournalState", "journal_reason"]

FILE = "journal.sqlite"
SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
    position INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, digest BLOB NOT NULL, record BLOB
);
CREATE TABLE IF NOT EXISTS journal (identity TEXT NOT NULL, bytes INTEGER NOT NULL);
CREATE TRIGGER IF NOT EXISTS added AFTER INSERT ON records
    BEGIN UPDATE journal SET bytes = bytes + length(new.record); END;
CREATE TRIGGER IF NOT EXISTS cleared AFTER UPDATE OF record ON records
    BEGIN UPDATE journal SET bytes = bytes - length(old.record); END;
INSERT INTO journal SELECT lower(hex(randomblob(16))), 0 WHERE NOT EXISTS (SELECT * FROM journal);
"""
_STATE = """
SELECT identity, bytes, ifnull((SELECT min(position) FROM records WHERE record IS NOT NULL), newest + 1), newest
FROM journal, (SELECT ifnull(max(seq), 0) AS newest FROM sqlite_sequence WHERE name = 'records')
"""
_BUSY_SECONDS = 5.0
_REASONS = {
    "SQLITE_FULL": "the disk is full",
    "SQLITE_BUSY": "another process holds its lock",
    "SQLITE_LOCKED": "another process holds its lock",
    "SQLITE_READONLY": "it may not be written",
    "SQLITE_CORRUPT": f"{FILE} is damaged: restore a backup, or remove the journal and start over with --fresh",
    "SQLITE_NOTADB": f"{FILE} is not a journal: restore a backup, or remove the journal and start over with --fresh",
}


class JournalState(NamedTuple):
    """The identity of a journal, the bytes of its records, the first position that it holds, and the newest one."""

    identity: str
    bytes: int
    first: int
    newest: int


class Database:
    """An open connection to the database of a journal, which any thread may use, one at a time.

    Parameters
    ----------
    folder
        The folder of the journal, with its file in it.

    Raises
    ------
    sqlite3.Error, OSError
        Where it cannot be opened.

    """

    def __init__(self, folder: Path) -> None:
        self._path = folder.absolute() / FILE
        self._opened = os.stat(self._path)
        uri = f"{self._path.as_uri()}?mode=rw"
        self.connection = sqlite3.connect(
            uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        self.execute("PRAGMA synchronous = FULL")

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        """Execute a statement."""
        return self.connection.execute(statement, values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what is done inside, or nothing of it if an error is raised."""
        with self.connection:
            self.execute("BEGIN IMMEDIATE")
            yield

    def is_in_place(self) -> bool:
        """Return whether the file that is open is still the journal in its folder."""
        try:
            return os.path.samestat(os.stat(self._path), self._opened)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def state(self) -> JournalState | None:
        """Return the state of the journal; None where the writer has not made its tables yet."""
        if not self.execute("SELECT * FROM sqlite_schema WHERE name = 'journal'").fetchall():
            return None
        return JournalState(*self.execute(_STATE).fetchone())


def journal_reason(error: sqlite3.Error | OSError) -> str:
    """Return why a journal cannot be used, in words.

    Examples
    --------
    >>> journal_reason(sqlite3.OperationalError("no such table: records"))
    'no such table: records'

    """
    if isinstance(error, OSError):
        return os_reason(error)
    name = getattr(error, "sqlite_errorname", "")
    return next((reason for code, reason in _REASONS.items() if name.startswith(code)), str(error))
