"""The folder of a Parquet output: its parts, the rows of an unfinished one, and what a restart removes."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from streamkernel.connectors.file_system import sync_folder, write_obstacle
from streamkernel.connectors.files.existing import Existing, half_set_aside, lock, rename_aside
from streamkernel.connectors.parquet.mark import REMEDY, PartsMark, part_name, parts_of
from streamkernel.connectors.ports import SinkError

__all__ = ["PartsFolder", "Progress", "write_part"]

_log = logging.getLogger(__name__)

# The unit that readers skip and hold in memory.
ROW_GROUP = 2**17


class Progress(NamedTuple):
    """The next part of a folder, its rows at the mark, and the parts to remove."""

    part: int
    n_rows: int = 0
    removed: tuple[Path, ...] = ()


def write_part(path: Path, aside: Path, table: pa.Table, compression: str) -> None:
    """Write rows to a file under another name, make it durable, and rename it.

    The same rows make the same bytes, in any batches. Raises OSError if the system refuses; then there is no such file.
    """
    try:
        with aside.open("wb") as file:
            pq.write_table(table, file, row_group_size=ROW_GROUP, compression=compression)
            file.flush()
            os.fsync(file.fileno())
        aside.rename(path)
    except BaseException:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


class PartsFolder:
    """A folder of parts, and one next to it, ``.NAME.unfinished``, for files that are not parts yet.

    The rows of an unfinished part are files there, each with the number of its first row in its name.

    Parameters
    ----------
    path
        The folder; of a link, its target.
    schema, compression
        The columns of the parts, and how they are compressed.

    """

    def __init__(self, path: str | os.PathLike[str], schema: pa.Schema, compression: str) -> None:
        self.path = Path(os.path.realpath(path))
        self.unfinished = self.path.with_name(f".{self.path.name}.unfinished")
        self.old = self.path.with_name(f"{self.path.name}.old")
        self._shown = Path(path)
        self._schema = schema
        self.compression = compression

    def _rows_file(self, part: int, first: int) -> Path:
        return self.unfinished / f"{part_name(part)}.{first}"

    def keep(self, part: int, first: int, rows: pa.Table) -> Path:
        """Make rows of an unfinished part durable, from a first row on; return their file."""
        path = self._rows_file(part, first)
        write_part(path, path.with_name(f"{path.name}.new"), rows, self.compression)
        return path

    def rows(self, part: int, n_rows: int) -> pa.Table | None:
        """Return the first rows of a part, unfinished or whole; None if they are gone."""
        tables, found = [self._schema.empty_table()], 0
        while found < n_rows and (path := self._rows_file(part, found)).exists():
            tables.append(self._read(path))
            found += tables[-1].num_rows
        whole = self.path / part_name(part)
        table = self._read(whole) if found < n_rows and whole.exists() else pa.concat_tables(tables)
        return table.slice(0, n_rows) if table.num_rows >= n_rows else None

    def _read(self, path: Path) -> pa.Table:
        with pq.ParquetFile(path) as file:
            return file.read().cast(self._schema)

    def find(self, mark: PartsMark | None, existing: Existing) -> Progress:
        """Return the progress of the folder, without a change; raise SinkError if a run must not write there."""
        if self.path.exists() and not self.path.is_dir():
            raise SinkError(f"{self._shown}: is a file, and Parquet needs a folder: give another path")
        parts = parts_of(self.path)
        if mark is not None:
            return self._find_marked(mark, parts)
        if existing == "replace":
            return Progress(0, removed=tuple(parts.values()))
        others = len(list(self.path.glob("*.parquet")))
        if existing == "refuse" and others:
            raise SinkError(
                f"{self._shown}: holds {others:,} files of Parquet that no checkpoint of this daemon knows, and was "
                "not touched: move the folder away, or set existing: append or existing: replace for this output"
            )
        if parts and not (schema := pq.read_schema(list(parts.values())[-1])).equals(self._schema):
            raise SinkError(
                f"{self._shown}: its parts have the columns {_listed(schema)}, and new ones would have "
                f"{_listed(self._schema)}: move the folder away, or give another path"
            )
        return Progress(max(parts, default=-1) + 1)

    def _find_marked(self, mark: PartsMark, parts: dict[int, Path]) -> Progress:
        if not mark.part and not mark.rows:
            if parts and not mark.names(self.path):
                raise SinkError(f"{self._shown}: holds parts that no checkpoint of this daemon knows: {REMEDY}")
        elif not self.path.is_dir():
            advice = f"put it back, {REMEDY}"
            if mark.fits(self.old):
                advice = half_set_aside(self.old)
            raise SinkError(
                f"{self._shown}: there is no such folder, and {mark.part:,} parts of it are recorded at the "
                f"checkpoint: {advice}"
            )
        elif mark.last is not None and not mark.fits(self.path):
            raise SinkError(
                f"{self._shown}: is another folder than at the checkpoint, without the {part_name(mark.part - 1)} "
                f"recorded there: put the right folder back, {REMEDY}"
            )
        later = tuple(path for number, path in parts.items() if number >= mark.part)
        if mark.rows and self.rows(mark.part, mark.rows) is None:
            raise SinkError(
                f"{self._shown}: the first {mark.rows:,} rows of {part_name(mark.part)} are recorded at the "
                f"checkpoint, and neither there nor in {self.unfinished}: put them back, {REMEDY}"
            )
        if mark.rows and mark.part in parts and pq.read_metadata(parts[mark.part]).num_rows == mark.rows:
            return Progress(mark.part + 1, removed=later[1:])  # a stop ended the part at the mark
        return Progress(mark.part, mark.rows, later)

    def open(self) -> int:
        """Create and lock the folders; return the descriptor of the lock.

        Raises SinkError if another process writes there, or a part could not be renamed into the folder.
        """
        for one in (self.path / "part", self.unfinished / "part"):
            if (why := write_obstacle(one)) is not None:
                raise SinkError(f"{one}: cannot be written: {why}")
        self.path.mkdir(parents=True, exist_ok=True)
        if os.path.ismount(self.path):
            raise SinkError(
                f"{self._shown}: is the root of a file system, and the daemon needs a second folder next to it: "
                f"name a folder in it, such as {self._shown / 'predictions'}"
            )
        self.unfinished.mkdir(exist_ok=True)
        sync_folder(self.path.parent)
        return self._lock()

    def _lock(self) -> int:
        descriptor = os.open(self.unfinished, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            lock(descriptor, self._shown)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock for a moment, if the folder is there."""
        descriptor = self._lock() if self.unfinished.is_dir() else None
        try:
            yield
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def settle(self, found: Progress) -> None:
        """Bring a locked folder to its progress; the replay writes the lines of removed parts again."""
        kept = set()
        if found.n_rows:
            # One file, because the old ones may be gone or have other rows after these.
            kept.add(self.keep(found.part, 0, self.rows(found.part, found.n_rows)))
        for path in found.removed:
            path.unlink(missing_ok=True)
        if found.removed:
            _log.info("%s: %d parts that no checkpoint knows are removed", self._shown, len(found.removed))
        sync_folder(self.path)
        for path in set(self.unfinished.glob("part-*.parquet*")) - kept:
            path.unlink(missing_ok=True)

    def find_old_name(self, mark: PartsMark | None, before: PartsMark | None) -> bool:
        """Whether `set_aside` would rename the folder; raises SinkError if the name belongs to another folder."""
        if not parts_of(self.path) or not (mark is None or mark.fits(self.path)):
            return False
        ours = before is not None and before.fits(self.old) and len(parts_of(self.old)) == len(os.listdir(self.old))
        if self.old.exists() and not ours:
            raise SinkError(
                f"{self.path}: cannot be set aside as {self.old.name}, which is another one: move that away"
            )
        return True

    def set_aside(self, mark: PartsMark | None, before: PartsMark | None) -> str:
        """Rename the folder of a mark to ``NAME.old``, in place of the one before; return a phrase about it."""
        return rename_aside(self.path, self.old) if self.find_old_name(mark, before) else ""


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in schema)
