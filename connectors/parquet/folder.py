"""The folder of a Parquet output: the parts that a restart finds, and those it removes."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from streamkernel.connectors.durable import sync_folder
from streamkernel.connectors.file_system import write_obstacle
from streamkernel.connectors.files.existing import half_set_aside, rename, renamed
from streamkernel.connectors.files.locking import lock
from streamkernel.connectors.parquet.mark import REMEDY, PartsMark, part_name, parts_of
from streamkernel.connectors.parquet.parts import RowsFile, fingerprint, part_rows
from streamkernel.connectors.ports import SinkError

__all__ = ["Existing", "Found", "PartsFolder"]

_log = logging.getLogger(__name__)

Existing: TypeAlias = Literal["refuse", "append", "replace"]
"""The treatment of parts that no checkpoint knows."""


class Found(NamedTuple):
    """The state of a folder at a start: the next part, its rows at the mark, and the parts to remove."""

    part: int
    n_rows: int = 0
    removed: tuple[Path, ...] = ()


class PartsFolder:
    """A folder of parts, and one next to it, ``.NAME.unfinished``, for files that are not parts yet.

    Readers that take every file of a folder would stumble over other files in it.

    Parameters
    ----------
    path
        The folder; of a link, its target.
    schema
        The columns of the parts.

    """

    def __init__(self, path: str | os.PathLike[str], schema: pa.Schema) -> None:
        self.path = Path(os.path.realpath(path))
        self.beside = self.path.with_name(f".{self.path.name}.unfinished")
        self.old = self.path.with_name(f"{self.path.name}.old")
        self._shown = Path(path)
        self._schema = schema

    def find(self, mark: PartsMark | None, existing: Existing) -> Found:
        """Return the state of the folder, without a change; raise SinkError if a run must not write there."""
        if self.path.exists() and not self.path.is_dir():
            raise SinkError(f"{self._shown}: is a file, and Parquet needs a folder: give another path")
        parts = parts_of(self.path)
        if mark is not None:
            self._check_identity(mark, parts)
            if mark.rows and self._kept(mark.part, mark.rows) is None:
                raise SinkError(
                    f"{self._shown}: the first {mark.rows:,} rows of {part_name(mark.part)} are recorded at the "
                    f"checkpoint, and neither there nor in {self.beside}: put them back, {REMEDY}"
                )
            later = tuple(path for number, path in parts.items() if number >= mark.part)
            whole = parts.get(mark.part)
            if mark.rows and whole is not None and pq.read_metadata(whole).num_rows == mark.rows:
                return Found(mark.part + 1, removed=later[1:])  # a stop ended the part at the mark
            return Found(mark.part, mark.rows, later)
        if existing == "replace":
            return Found(0, removed=tuple(parts.values()))
        others = sorted(self.path.glob("*.parquet"))
        if existing == "refuse" and others:
            raise SinkError(
                f"{self._shown}: holds {len(others):,} files of Parquet that no checkpoint of this daemon knows, "
                "and was not touched: move the folder away, or set existing: append or existing: replace for this "
                "output"
            )
        if parts and not (schema := pq.read_schema(list(parts.values())[-1])).equals(self._schema):
            raise SinkError(
                f"{self._shown}: its parts have the columns {_listed(schema)}, and new ones would have "
                f"{_listed(self._schema)}: move the folder away, or give another path"
            )
        return Found(max(parts, default=-1) + 1)

    def _check_identity(self, mark: PartsMark, parts: dict[int, Path]) -> None:
        """Raise SinkError for another folder than the mark's: parts may be moved away, a copy has the last one."""
        if not mark.part and not mark.rows:
            if parts and not mark.names(self.path):
                raise SinkError(f"{self._shown}: holds parts that no checkpoint of this daemon knows: {REMEDY}")
        elif not self.path.is_dir():
            advice = half_set_aside(self.old) if _is_marked(self.old, mark) else f"put it back, {REMEDY}"
            raise SinkError(
                f"{self._shown}: there is no such folder, and {mark.part:,} parts of it are recorded at the "
                f"checkpoint: {advice}"
            )
        elif mark.last is not None and not _is_marked(self.path, mark):
            raise SinkError(
                f"{self._shown}: is another folder than at the checkpoint, without the {part_name(mark.part - 1)} "
                f"recorded there: put the right folder back, {REMEDY}"
            )

    def _kept(self, part: int, n_rows: int) -> list[pa.RecordBatch] | None:
        """Return the first rows of a part: from those next to the folder, or from the part; None if they are gone."""
        for batches in (self.rows(part).batches(), part_rows(self.path / part_name(part), self._schema)):
            kept, left = [], n_rows
            for batch in batches:
                kept.append(batch.slice(0, left))
                left -= kept[-1].num_rows
            if not left:
                return kept
        return None

    def rows(self, part: int) -> RowsFile:
        """Return the file with the rows of an unfinished part."""
        return RowsFile(self.beside / f"{part_name(part)}.rows", self._schema)

    def open(self) -> int:
        """Create and lock the folders; return the descriptor of the lock.

        Raises SinkError if another process writes there, or a part could not be renamed into the folder.
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
        return self._lock()

    def _lock(self) -> int:
        descriptor = os.open(self.beside, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            lock(descriptor, self._shown)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock for a moment, if the folder is there."""
        descriptor = self._lock() if self.beside.is_dir() else None
        try:
            yield
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def settle(self, found: Found) -> RowsFile:
        """Bring a locked folder to the state of the mark, and return the rows of its next part.

        Removes parts only, by their names: the replay writes their lines again.
        """
        rows = self.rows(found.part)
        if found.n_rows:
            rows.replace(self._kept(found.part, found.n_rows) or ())
        for path in found.removed:
            path.unlink(missing_ok=True)
        if found.removed:
            _log.info("%s: %d parts that no checkpoint knows are removed", self._shown, len(found.removed))
        sync_folder(self.path)
        for path in self.beside.glob("part-*.parquet*"):
            if not (found.n_rows and path == rows.path):
                path.unlink(missing_ok=True)
        return rows

    def find_old_name(self, mark: PartsMark | None, before: PartsMark | None) -> bool:
        """Whether `set_aside` would rename the folder; raises SinkError if the name belongs to another folder."""
        if not parts_of(self.path) or not (mark is None or _is_marked(self.path, mark)):
            return False
        if self.old.exists() and not (
            before is not None
            and _is_marked(self.old, before)
            and len(parts_of(self.old)) == len(list(self.old.iterdir()))
        ):
            raise SinkError(
                f"{self.path}: cannot be set aside as {self.old.name}, which is another one: move that away"
            )
        return True

    def set_aside(self, mark: PartsMark | None, before: PartsMark | None) -> str:
        """Rename the folder of a mark to ``NAME.old``, in place of the one before; return a phrase about it."""
        if not self.find_old_name(mark, before):
            return ""
        replaced = self.old.exists()
        if replaced:
            shutil.rmtree(self.old)
        rename(self.path, self.old)
        return renamed(self.path, self.old, replaced)


def _is_marked(path: Path, mark: PartsMark) -> bool:
    """Whether a folder is the one of a mark."""
    try:
        return mark.names(path) or (mark.last is not None and fingerprint(path / part_name(mark.part - 1)) == mark.last)
    except OSError:
        return False


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in schema)
