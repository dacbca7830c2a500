"""The folder of an output in Parquet: what a restart finds there, what of it counts, and what is removed."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from streamkernel.connectors.durable import sync_folder
from streamkernel.connectors.file_system import write_obstacle
from streamkernel.connectors.files.existing import half_set_aside
from streamkernel.connectors.files.locking import lock
from streamkernel.connectors.parquet.aside import is_marked
from streamkernel.connectors.parquet.mark import REMEDY, PartsMark
from streamkernel.connectors.parquet.part_names import part_name, parts_of
from streamkernel.connectors.parquet.parts import fingerprint, rows_of
from streamkernel.connectors.parquet.rows import RowsFile
from streamkernel.connectors.ports import SinkError

__all__ = ["Existing", "Found", "PartsFolder"]

_log = logging.getLogger(__name__)

Existing: TypeAlias = Literal["refuse", "append", "replace"]
"""What becomes of parts that no checkpoint knows."""

_ROWS, _MOVED = ".rows", ".moved"


@dataclass(frozen=True)
class Found:
    """What a folder holds for a run that begins or goes on: which part it writes next, and what is not its own.

    Attributes
    ----------
    part
        The number of the next part.
    removed
        The parts that were written after the mark, or are replaced.
    kept
        The part of which the first rows are kept, because they were complete when the mark was made; None: the rows
        stand next to the folder.

    """

    part: int
    removed: tuple[Path, ...] = ()
    rows: int = 0
    kept: Path | None = None


class PartsFolder:
    """A folder of parts, and one next to it, ``.NAME.unfinished``, with what is not a part yet.

    Readers that take every file of a folder would stumble over anything else in it.

    Parameters
    ----------
    path
        The folder; of a link, the one it leads to.
    schema
        The columns of the parts.

    """

    def __init__(self, path: str | os.PathLike[str], schema: pa.Schema) -> None:
        self.path = Path(os.path.realpath(path))
        self.beside = self.path.with_name(f".{self.path.name}.unfinished")
        self._shown = Path(path)
        self._schema = schema

    def find(self, mark: PartsMark | None, existing: Existing) -> Found:
        """Return what is there for a run; raise SinkError where it may not go on there. Nothing is changed."""
        if self.path.exists() and not self.path.is_dir():
            raise SinkError(f"{self._shown}: is a file, and Parquet needs a folder: give another path")
        return self._find_new(existing) if mark is None else self._find_marked(mark)

    def _find_new(self, existing: Existing) -> Found:
        parts = parts_of(self.path)
        if existing == "replace":
            return Found(0, tuple(parts.values()))
        if existing == "append":
            if parts:
                self._check_columns(pq.read_schema(list(parts.values())[-1]))
            return Found(max(parts, default=-1) + 1)
        others = sorted(self.path.glob("*.parquet"))
        if others:
            raise SinkError(
                f"{self._shown}: holds {len(others):,} files of Parquet that no checkpoint of this daemon knows, "
                "and was not touched: move the folder away, or set existing: append or existing: replace for this "
                "output"
            )
        return Found(0)

    def _check_columns(self, schema: pa.Schema) -> None:
        if not schema.equals(self._schema):
            raise SinkError(
                f"{self._shown}: its parts have the columns {_listed(schema)}, and new ones would have "
                f"{_listed(self._schema)}: move the folder away, or give another path"
            )

    def _find_marked(self, mark: PartsMark) -> Found:
        parts = parts_of(self.path)
        self._check_identity(mark, parts)
        later = tuple(path for number, path in parts.items() if number >= mark.part)
        if not mark.rows:
            return Found(mark.part, later)
        if self._holds_rows(mark):
            return Found(mark.part, later, mark.rows)
        whole = parts.get(mark.part, self.moved(mark.part))
        n_rows = pq.read_metadata(whole).num_rows if whole.exists() else 0
        if n_rows < mark.rows:
            raise SinkError(
                f"{self._shown}: the first {mark.rows:,} rows of {part_name(mark.part)} are recorded at the "
                f"checkpoint, and neither there nor in {self.beside}: put them back, {REMEDY}"
            )
        if n_rows == mark.rows:
            return Found(mark.part + 1, later[1:])
        return Found(mark.part, later, mark.rows, whole)

    def _check_identity(self, mark: PartsMark, parts: dict[int, Path]) -> None:
        """Raise SinkError where the folder is not the one of a mark: parts may be moved away, a copy has the last."""
        if not mark.part and not mark.rows:
            if parts and not mark.names(self.path):
                raise SinkError(f"{self._shown}: holds parts that no checkpoint of this daemon knows: {REMEDY}")
            return
        if not self.path.is_dir():
            old = self.path.with_name(self.path.name + ".old")
            advice = half_set_aside(old) if is_marked(old, mark) else f"put it back, {REMEDY}"
            raise SinkError(
                f"{self._shown}: there is no such folder, and {mark.part:,} parts of it are recorded at the "
                f"checkpoint: {advice}"
            )
        if mark.names(self.path):
            return
        last = parts.get(mark.part - 1)
        if mark.last is not None and (last is None or fingerprint(last) != mark.last):
            raise SinkError(
                f"{self._shown}: is another folder than at the checkpoint, without the {part_name(mark.part - 1)} "
                f"recorded there: put the right folder back, {REMEDY}"
            )

    def _holds_rows(self, mark: PartsMark) -> bool:
        file = self.rows(mark.part)
        try:
            if file.path.stat().st_size < mark.bytes:
                return False
            file.length = mark.bytes
            return file.digest() == mark.tail
        except OSError:
            return False

    def rows(self, part: int) -> RowsFile:
        """Return the file of the rows of a part that is not complete."""
        return RowsFile(self.beside / f"{part_name(part)}{_ROWS}", self._schema)

    def aside(self, part: int) -> Path:
        """Return the name of a part until it is whole."""
        return self.beside / part_name(part)

    def open(self) -> int:
        """Make the folders and lock them; return the descriptor that holds the lock.

        Raises SinkError where another process writes there, or a part could not be renamed into the folder.
        """
        for one in (self.path / "part", self.beside / "part"):
            if (why := write_obstacle(one)) is not None:
                raise SinkError(f"{one}: cannot be written: {why}")
        self.path.mkdir(parents=True, exist_ok=True)
        if os.path.ismount(self.path):
            raise SinkError(
                f"{self._shown}: is the root of a file system, and the daemon needs a second folder next to it: "
                f"name a folder in it, such as {self._shown / 'predictions'}"
            )
        self.beside.mkdir(exist_ok=True)
        sync_folder(self.path.parent)
        descriptor = os.open(self.beside, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            lock(descriptor, self._shown)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock for a moment, where the folder is there: nobody writes to it then."""
        if not self.beside.is_dir():
            yield
            return
        descriptor = os.open(self.beside, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            lock(descriptor, self._shown)
            yield
        finally:
            os.close(descriptor)

    def settle(self, found: Found, mark: PartsMark | None) -> RowsFile:
        """Make a locked folder what `find` found it to be, and return the rows of its next part.

        Only parts are removed, by their names, and only those written after the mark or to be replaced: their lines
        are written again.
        """
        rows, whole = self.rows(found.part), self.moved(found.part)
        if found.kept is not None:
            # It stays next to the folder until the next mark knows the rows as they are written now.
            if found.kept != whole:
                found.kept.rename(whole)
                sync_folder(self.beside)
            rows.append([_as(self._schema, batch) for batch in rows_of(whole, found.rows)])
            rows.sync()
        elif found.rows and mark is not None:
            rows.length = mark.bytes
        for path in found.removed:
            path.unlink(missing_ok=True)
        if found.removed:
            _log.info("%s: %d parts that no checkpoint knows are removed", self._shown, len(found.removed))
        sync_folder(self.path)
        self.sweep([rows.path] * bool(found.rows) + [whole] * (found.kept is not None))
        return rows

    def sweep(self, but: Sequence[Path] = ()) -> None:
        """Remove what is next to the folder of parts that are not complete, but some files."""
        for end in ("", _ROWS, _MOVED):
            for path in self.beside.glob(f"part-*.parquet{end}"):
                if path not in but:
                    path.unlink(missing_ok=True)

    def moved(self, part: int) -> Path:
        """Return where a part is kept that a restart goes back into."""
        return self.beside / f"{part_name(part)}{_MOVED}"

    def leave(self) -> None:
        """Remove the second folder where nothing is in it."""
        try:
            self.beside.rmdir()
        except OSError:
            return


def _as(schema: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch that was read from a part with the very types it was written with."""
    return batch.cast(schema) if batch.schema != schema else batch


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in schema)
