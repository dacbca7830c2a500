"""Part files: each is written whole before it has its name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from streamkernel.connectors.durable import sync_folder
from streamkernel.connectors.files.mark import digest, last_bytes

__all__ = ["ROW_GROUP", "fingerprint", "rows_of", "write_part"]

# What readers skip at once, and hold in memory at once.
ROW_GROUP = 2**17


def write_part(aside: Path, path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], compression: str) -> None:
    """Write a part: under another name until it is whole and durable.

    The same rows make the same bytes, however they are cut into batches. Raises OSError where the system refuses; then
    there is no part.
    """
    aside.unlink(missing_ok=True)
    try:
        with aside.open("xb") as file:
            with pq.ParquetWriter(file, schema, compression=compression) as writer:
                for group in _row_groups(batches, schema):
                    writer.write_table(group, row_group_size=ROW_GROUP)
            file.flush()
            os.fsync(file.fileno())
        aside.rename(path)
    except BaseException:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def _row_groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the rows of batches in tables of as many rows as a row group has, the last one shorter."""
    waiting: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in batches:
        waiting.append(batch)
        n_rows += batch.num_rows
        while n_rows >= ROW_GROUP:
            table = pa.Table.from_batches(waiting, schema).combine_chunks()
            yield table.slice(0, ROW_GROUP)
            waiting = table.slice(ROW_GROUP).to_batches()
            n_rows -= ROW_GROUP
    if n_rows:
        yield pa.Table.from_batches(waiting, schema).combine_chunks()


def rows_of(path: Path, most: int | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part, at most so many."""
    with pq.ParquetFile(path) as file:
        left = file.metadata.num_rows if most is None else most
        for batch in file.iter_batches():
            if left <= 0:
                return
            yield batch.slice(0, left)
            left -= batch.num_rows


def fingerprint(path: Path) -> tuple[int, str]:
    """Return the size of a part and the SHA-256 of its last bytes, in which Parquet says what is where in it."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        return size, digest(last_bytes(file.fileno(), size))
