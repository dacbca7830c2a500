"""Appends records to a journal: many requests in one transaction, durable before they are acknowledged."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from enum import Enum
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from streamkernel.connectors.file_system import make_folder, open_regular, sync_folder
from streamkernel.connectors.journal.database import FILE, SCHEMA, Database, journal_reason
from streamkernel.connectors.ports import SinkError

__all__ = ["JournalEntry", "JournalWriter", "Refusal"]

_APPEND = "INSERT INTO records (id, digest, record) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING"
_OTHER = "SELECT * FROM records WHERE id = ? AND digest != ?"


class JournalEntry(NamedTuple):
    """A record for a journal.

    Attributes
    ----------
    record
        A JSON object in UTF-8.
    id
        The id by which a repeat is known. None: no other record is a repeat of this one.
    exact
        Whether a repeat must have the same bytes. The writer refuses another record with the id.

    """

    record: bytes
    id: str | None = None
    exact: bool = False


class Refusal(Enum):
    """Why the writer appended nothing of a request: no room, or an exact entry has the id of another record."""

    FULL = "full"
    OTHER = "other"


class JournalWriter:
    """Appends to the journal in a folder.

    Parameters
    ----------
    folder
        The folder of the journal. The writer creates it if it is missing.
    max_bytes
        The most bytes that the records may have. The reader frees space.

    Examples
    --------
    >>> import tempfile
    >>> writer = JournalWriter(Path(tempfile.mkdtemp()), max_bytes=2**24)
    >>> writer.open()
    >>> writer.append([[JournalEntry(b'{"a":1}', "one")], [JournalEntry(b'{"a":1}', "one")]])
    [[True], [False]]
    >>> writer.close()

    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self._database: Database | None = None

    def open(self) -> None:
        """Open the journal, and make it where it is missing.

        Raises
        ------
        SinkError
            Where the journal cannot be written or is damaged.

        """
        try:
            make_folder(self.folder, 0o700)
            os.close(open_regular(self.folder / FILE, os.O_RDWR | os.O_CREAT))
            sync_folder(self.folder)
            self._database = Database(self.folder)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.connection.executescript(f"BEGIN IMMEDIATE;{SCHEMA}COMMIT;")
        except (OSError, sqlite3.Error) as error:
            self.close()
            reason = journal_reason(error)
            raise SinkError(f"{self.folder}: the journal cannot be opened for writing: {reason}") from error

    def size(self) -> int:
        """Return how many bytes the records in the journal have; 0 where it cannot be read."""
        with suppress(sqlite3.Error, OSError):
            # A connection of its own: another thread may be in a transaction.
            with closing((database := Database(self.folder)).connection):
                state = database.state()
            return 0 if state is None else state.bytes
        return 0

    def append(self, requests: Sequence[Sequence[JournalEntry]]) -> list[list[bool] | Refusal]:
        """Append requests in one transaction, which is durable when this returns.

        Parameters
        ----------
        requests
            The entries of each request. The writer appends all entries of a request or none.

        Returns
        -------
        answers
            For each request whether each entry is new, and not a repeat; or why nothing of it was appended.

        Raises
        ------
        OSError, sqlite3.Error
            Where nothing could be appended. Another try is safe.

        """
        assert self._database is not None
        if not self._database.is_in_place():
            raise OSError(errno.ESTALE, "it was removed or replaced: put it back, or start this service again")
        with self._database.transaction():
            return [self._append(self._database, entries) for entries in requests]

    def _append(self, database: Database, entries: Sequence[JournalEntry]) -> list[bool] | Refusal:
        """Append the entries of a request, or none of them."""
        database.execute("SAVEPOINT request")
        new = []
        refusal = None
        for entry in entries:
            digest = blake2b(entry.record, digest_size=16).digest()
            new.append(database.execute(_APPEND, entry.id, digest, entry.record).rowcount > 0)
            if entry.exact and database.execute(_OTHER, entry.id, digest).fetchall():
                refusal = Refusal.OTHER
        (size,) = database.execute("SELECT bytes FROM journal").fetchone()
        if refusal is None and any(new) and size > self.max_bytes:
            refusal = Refusal.FULL
        if refusal is not None:
            database.execute("ROLLBACK TO request")
        database.execute("RELEASE request")
        return refusal or new

    def close(self) -> None:
        """Close the journal; closing twice does nothing."""
        if self._database is not None:
            self._database.connection.close()
            self._database = None
