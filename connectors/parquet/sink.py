"""Lines to a folder of Parquet files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamkernel.connectors.file_system import file_id
from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.parquet.aside import find_old_name, set_aside
from streamkernel.connectors.parquet.columns import LineColumns, ParquetColumn
from streamkernel.connectors.parquet.folder import Existing, PartsFolder
from streamkernel.connectors.parquet.mark import REMEDY, PartsMark
from streamkernel.connectors.parquet.part_names import part_name
from streamkernel.connectors.parquet.parts import fingerprint, write_part
from streamkernel.connectors.parquet.rows import RowsFile
from streamkernel.connectors.ports import Mark, Position, Sink, SinkError

__all__ = ["MOST_BYTES", "ParquetSink"]

_LINES_AT_ONCE = 4096
# What waits for the end of a part beyond this waits in a file.
MOST_BYTES = 2**24
# How long a part that could not be written is filled on, in seconds.
_PAUSE_SECONDS = 10.0
# What a line takes as a dict, about.
_LINE_BYTES = 600


class ParquetSink(Sink):
    """Write lines to the part files of a folder, ``part-00000000.parquet`` and so on.

    A part is written next to the folder, made durable and renamed into it, so that readers find whole files only. After
    a restart the parts that the mark does not know are removed, and their lines come again: each stands in one part.

    Parameters
    ----------
    path
        The folder, made where it is missing.
    columns
        The columns of a line and their types, which are those of all parts.
    classes
        Classes with a column each for their probability.
    existing
        What becomes of parts that are there already, where there is no mark to go on from: ``"refuse"`` to open the
        folder, ``"append"`` parts after them, or ``"replace"`` them.
    roll_seconds
        How long a part is filled, in seconds; its rows are durable with each flush. None: each flush ends a part.
    compression
        ``"zstd"``, ``"snappy"``, ``"gzip"`` or ``"none"``.
    clock
        Gives seconds, and never goes back.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow.parquet
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "predictions")
    ...     with ParquetSink(path, [ParquetColumn("offset", "int"), ParquetColumn("prediction", "str")]) as sink:
    ...         sink.open()
    ...         sink.write([{"position": {"partition": 0, "offset": 7}, "prediction": "a"}])
    ...     pyarrow.parquet.read_table(path).to_pylist()
    [{'offset': 7, 'prediction': 'a'}]

    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Sequence[ParquetColumn],
        classes: Sequence[Any] = (),
        existing: Existing = "refuse",
        roll_seconds: float | None = None,
        compression: str = "zstd",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = Path(path)
        self.existing: Existing = existing
        self.roll_seconds = roll_seconds
        self.compression = compression
        self._columns = LineColumns(columns, classes)
        self._folder = PartsFolder(path, self._columns.schema)
        self._clock = clock
        self._descriptor: int | None = None
        self._begin(0, self._folder.rows(0), 0)
        self._last: tuple[int, str] | None = None

    def _begin(self, part: int, rows: RowsFile, n_rows: int) -> None:
        """Begin a part, of which some rows are kept."""
        self._part = part
        self._rows = rows
        self._n_kept = n_rows
        self._lines: list[Mapping[str, Any]] = []
        self._batches: list[pa.RecordBatch] = []
        self._began: float | None = self._clock() if n_rows else None
        self._not_before = 0.0

    def open(self, mark: Mark | None = None) -> None:
        """Open the folder, or go on after the part of the mark; see `Sink.open`.

        Raises
        ------
        SinkError
            Also where the folder is not the one of the mark, its parts have other columns, it holds parts though there
            is no mark (as `existing` says), or another sink writes to it.

        """
        self.close()
        known = self._known(mark)
        with self._system_errors():
            self._folder.find(known, self.existing)  # before anything is made
            self._descriptor = self._folder.open()
            try:
                found = self._folder.find(known, self.existing)
                rows = self._folder.settle(found, known)
            except BaseException:
                self._unlock()
                raise
        self._begin(found.part, rows, found.rows)
        self._last = self._fingerprint(found.part - 1)

    def find_problem(self, mark: Mark | None = None) -> None:
        """Raise what `open` would, without opening the folder for writing; see `Sink.find_problem`."""
        with self._system_errors():
            self._folder.find(self._known(mark), self.existing)

    def find_problem_anew(self, mark: Mark | None, before: Mark | None = None, *, stays: bool = False) -> None:
        """Raise what `set_aside` and `open` would, changing nothing; see `Sink.find_problem_anew`."""
        path = self._folder.path
        with self._system_errors(), self._folder.locked():
            kept = stays or self.existing != "refuse"
            if kept or find_old_name(path, self._read(mark), self._read(before)) is None:
                self._folder.find(None, self.existing)

    def set_aside(self, mark: Mark | None, before: Mark | None = None) -> str:
        """Rename the folder to one that ends in .old, unless `existing` says otherwise; see `Sink.set_aside`."""
        if self.existing != "refuse":
            return ""
        with self._system_errors(), self._folder.locked():
            return set_aside(self._folder.path, self._read(mark), self._read(before))

    def _read(self, mark: Mark | None) -> PartsMark | None:
        return PartsMark.from_json(self.path, mark)

    def _known(self, mark: Mark | None) -> PartsMark | None:
        """Return a mark to go on from; raise SinkError where it has other columns."""
        known = self._read(mark)
        if known is not None and known.columns != self._columns.columns:
            before, now = (
                ", ".join(f"{name} ({kind})" for name, kind in columns)
                for columns in (known.columns, self._columns.columns)
            )
            raise SinkError(
                f"{self.path}: its parts have the columns {before}, and with include, classes and target_type as they "
                f"are now they would have {now}: change them back, {REMEDY}"
            )
        return known

    def write(self, lines: Sequence[Mapping[str, Any]], positions: Sequence[Position] = ()) -> None:  # noqa: ARG002
        """Take lines; a part whose time is over is written. See `Sink.write`."""
        self._check_open()
        self._lines += lines
        if lines and self._began is None:
            self._began = self._clock()
        if len(self._lines) >= _LINES_AT_ONCE:
            self._encode()
        with self._system_errors():
            if self._due:
                self._roll()
            elif self._batched_bytes > MOST_BYTES:
                self._keep()

    def flush(self) -> dict[str, Any]:
        """Make the lines durable, as a part or as rows of one that is still filled; see `Sink.flush`."""
        self._check_open()
        self._encode()
        with self._system_errors():
            if self.roll_seconds is None or self._due:
                self._roll()
            else:
                self._keep()
                self._rows.sync()
            folder = file_id(self._folder.path)
            rows = self._rows
            columns = tuple((name, kind) for name, kind in self._columns.columns)
            mark = PartsMark(self._part, self._n_kept, rows.length, rows.digest(), folder, self._last, columns)
        return mark.to_json()

    def _encode(self) -> None:
        if self._lines:
            self._batches.append(self._columns.batch(self._lines))
            self._lines = []

    def _keep(self) -> None:
        """Move the rows in memory to the file next to the folder."""
        if not self._batches:
            return
        self._rows.append(self._batches)
        self._n_kept += sum(batch.num_rows for batch in self._batches)
        self._batches = []

    @property
    def _batched_bytes(self) -> int:
        return sum(int(batch.nbytes) for batch in self._batches)

    @property
    def _due(self) -> bool:
        began, seconds = self._began, self.roll_seconds
        if began is None or seconds is None:
            return False
        now = self._clock()
        return now - began >= seconds and now >= self._not_before

    def _roll(self) -> None:
        """End the part, where it has any rows."""
        self._encode()
        if not self._batches and not self._n_kept:
            return
        aside, path = self._folder.aside(self._part), self._folder.path / part_name(self._part)
        self._rows.sync()  # what the disk lost must not be read as if it were there
        try:
            write_part(aside, path, self._columns.schema, self._all_rows(), self.compression)
        except OSError:
            self._not_before = self._clock() + _PAUSE_SECONDS
            raise
        self._rows.remove()
        self._folder.moved(self._part).unlink(missing_ok=True)
        self._last = self._fingerprint(self._part)
        self._begin(self._part + 1, self._folder.rows(self._part + 1), 0)

    def _all_rows(self) -> Iterator[pa.RecordBatch]:
        yield from self._rows.batches()
        yield from self._batches

    def _fingerprint(self, part: int) -> tuple[int, str] | None:
        try:
            return fingerprint(self._folder.path / part_name(part))
        except OSError:  # the first one, or one that was moved away
            return None

    @property
    def waiting(self) -> int:
        """1 where the time of a part is over: the next `write` ends it, of no lines, too."""
        return int(self._due)

    @property
    def waiting_bytes(self) -> int:
        """How many bytes wait in memory, about."""
        return _LINE_BYTES * len(self._lines) + self._batched_bytes

    @property
    def exactly_once(self) -> bool:
        """True: parts that a mark does not know are removed at a restart."""
        return True

    def close(self) -> None:
        """End the part and close; closing twice does nothing.

        Raises
        ------
        SinkError
            Where the part cannot be made. Up to the last mark its rows are kept next to the folder.

        """
        if self._descriptor is None:
            return
        try:
            with self._system_errors():
                self._roll()
        except SinkError as error:
            raise SinkError(f"{error}: the last part is incomplete: the next start completes it") from None
        finally:
            self._unlock()

    def _unlock(self) -> None:
        assert self._descriptor is not None
        self._folder.leave()
        os.close(self._descriptor)
        self._descriptor = None

    def _check_open(self) -> None:
        if self._descriptor is None:
            raise SinkError(f"{self.path}: the sink is not open")

    @contextmanager
    def _system_errors(self) -> Iterator[None]:
        """Raise SinkError, in one sentence, for what the system refuses."""
        try:
            yield
        except OSError as error:
            raise SinkError(f"{self.path}: cannot be written: {os_reason(error)}") from None
        except pa.ArrowException as error:
            raise SinkError(f"{self.path}: a part cannot be read: {error!s:.200}: {REMEDY}") from None
