"""The rows of a part that is not complete: batches of Arrow in a file, one after the other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from streamkernel.connectors.durable import Appended, sync_folder
from streamkernel.connectors.files.mark import digest, last_bytes

__all__ = ["RowsFile"]


class RowsFile:
    """A file of batches that is appended to, and cut back to where a checkpoint knows it.

    Parameters
    ----------
    path
        The file, which is made with the first batch.
    schema
        The columns of the batches.

    Attributes
    ----------
    length
        How many of its bytes count.

    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self.length = 0
        self._schema = schema
        self._durable = 0
        self._appended = Appended(path)

    def append(self, batches: list[pa.RecordBatch]) -> None:
        """Write batches after the others; where the system refuses, none of them count."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        with open(descriptor, "wb") as file:
            file.truncate(self.length)  # what a failure left behind
            file.seek(self.length)
            for batch in batches:
                file.write(batch.serialize())
            file.flush()
            self.length = file.tell()

    def sync(self) -> None:
        """Make what was written durable, and the name of the file; SinkError, every time, where the disk lost it."""
        if self.length == self._durable:
            return
        with self.path.open("rb") as file:
            self._appended.sync(file.fileno())
        sync_folder(self.path.parent)
        self._durable = self.length

    def digest(self) -> str:
        """Return the SHA-256 of the last bytes, in hexadecimal; of nothing where there is no file."""
        if not self.length:
            return digest(b"")
        with self.path.open("rb") as file:
            return digest(last_bytes(file.fileno(), self.length))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches."""
        if not self.length:
            return
        with pa.OSFile(str(self.path)) as file:
            while file.tell() < self.length:
                yield pa.ipc.read_record_batch(pa.ipc.read_message(file), self._schema)

    def remove(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)
        self.length = self._durable = 0
