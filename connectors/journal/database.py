"""The database of a journal: its tables, how it is opened, and its errors in words.

The table `records` has a row for each record: its position, the id by which a repeat is known, a digest of its bytes,
and the bytes. A reader clears the bytes of records that no restart needs. The ids stay until newer ones replace them.
"""

from __future__ import annotations

import os
import sqlite3
from hashlib import blake2b
from pathlib import Path

from streamkernel.connectors.os_reason import os_reason

__all__ = ["FILE", "Database", "JournalState", "digest_of", "journal_reason"]

FILE = "journal.sqlite"
SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
    position INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, digest BLOB NOT NULL, record BLOB
);
CREATE TABLE IF NOT EXISTS journal (identity TEXT NOT NULL, bytes INTEGER NOT NULL, first INTEGER NOT NULL);
INSERT INTO journal SELECT lower(hex(randomblob(16))), 0, 1 WHERE NOT EXISTS (SELECT * FROM journal);
"""
JournalState = tuple[str, int, int]
"""The identity of a journal, the bytes of the records it holds, and the position of the first of them."""

_BUSY_SECONDS = 5.0
_REASONS = {
    "SQLITE_FULL": "the disk is full",
    "SQLITE_BUSY": "another process holds its lock",
    "SQLITE_LOCKED": "another process holds its lock",
    "SQLITE_READONLY": "it may not be written",
    "SQLITE_CORRUPT": f"{FILE} is damaged: restore a backup, or remove the journal and start over with --fresh",
    "SQLITE_NOTADB": f"{FILE} is not a journal: restore a backup, or remove the journal and start over with --fresh",
}


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
        self.connection = sqlite3.connect(
            f"{self._path.as_uri()}?mode=rw",
            uri=True,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        self.connection.execute("PRAGMA synchronous = FULL")

    def is_in_place(self) -> bool:
        """Return whether the file that is open is still the journal in its folder."""
        try:
            return os.path.samestat(os.stat(self._path), self._opened)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def state(self) -> JournalState | None:
        """Return the state of the journal; None where the writer has not made its tables yet."""
        try:
            row: JournalState | None = self.connection.execute("SELECT identity, bytes, first FROM journal").fetchone()
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            return None
        return row


def digest_of(record: bytes) -> bytes:
    """Return a digest that differs for other bytes."""
    return blake2b(record, digest_size=16).digest()


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
