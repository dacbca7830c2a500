"""Files of a part: the rows of an unfinished one, and the whole one, which is written before it has its name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from streamkernel.connectors.durable import Appended, sync_folder
from streamkernel.connectors.files.mark import digest, last_bytes

__all__ = ["ROW_GROUP", "RowsFile", "fingerprint", "part_rows", "write_part"]

# The unit that readers skip and hold in memory.
ROW_GROUP = 2**17


def write_part(path: Path, aside: Path, schema: pa.Schema, rows: Iterable[pa.RecordBatch], compression: str) -> None:
    """Write a part under another name, make it durable, and rename it.

    The same rows make the same bytes, in any batches. Raises OSError if the system refuses; then there is no part.
    """
    try:
        with aside.open("wb") as file:
            table = pa.Table.from_batches(rows, schema)
            pq.write_table(table, file, row_group_size=ROW_GROUP, compression=compression)
            file.flush()
            os.fsync(file.fileno())
        aside.rename(path)
    except BaseException:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def part_rows(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part; none if there is no such file."""
    if path.exists():
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches():
                yield batch.cast(schema)


def fingerprint(path: Path) -> tuple[int, str] | None:
    """Return the size of a part and the SHA-256 of its last bytes, Parquet's footer; None if it is not there."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            return size, digest(last_bytes(file.fileno(), size))
    except OSError:
        return None


class RowsFile:
    """The rows of an unfinished part: a file of Arrow batches, one after the other.

    Parameters
    ----------
    path
        The file. The first batch creates it.
    schema
        The columns of the batches.

    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self.n_rows = 0
        self._schema = schema
        self._length = 0
        self._appended = Appended(path)

    def append(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Write batches after the others; if the system refuses, none of them count."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        n_rows = 0
        with open(descriptor, "wb") as file:
            file.truncate(self._length)  # the rest of a failed attempt
            file.seek(self._length)
            for batch in batches:
                file.write(batch.serialize())
                n_rows += batch.num_rows
            file.flush()
            self._length = file.tell()
        self.n_rows += n_rows

    def sync(self) -> None:
        """Make the rows durable, and the name of the file; SinkError, every time, once the disk has lost them."""
        if self._length:
            with self.path.open("rb") as file:
                self._appended.sync(file.fileno())
            sync_folder(self.path.parent)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches, up to the end of the file or a torn one."""
        if not self.path.exists():
            return
        with pa.memory_map(str(self.path)) as file:
            while file.tell() < file.size():
                try:
                    batch = pa.ipc.read_record_batch(pa.ipc.read_message(file), self._schema)
                except (pa.ArrowException, EOFError, OSError):
                    return
                yield batch

    def replace(self, rows: Iterable[pa.RecordBatch]) -> None:
        """Make some rows, which may come from this file, its only ones; a crash leaves the old or the new ones."""
        fresh = RowsFile(self.path.with_name(f"{self.path.name}.new"), self._schema)
        fresh.path.unlink(missing_ok=True)
        fresh.append(rows)
        fresh.sync()
        fresh.path.rename(self.path)
        sync_folder(self.path.parent)
        self.n_rows, self._length = fresh.n_rows, fresh._length

    def remove(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)
        self.n_rows = self._length = 0
