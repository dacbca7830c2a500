"""Lines to a folder of Parquet files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamkernel.connectors.file_system import file_id
from streamkernel.connectors.files.existing import Existing
from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.parquet.columns import LineColumns, ParquetColumn
from streamkernel.connectors.parquet.folder import PartsFolder, Progress, write_part
from streamkernel.connectors.parquet.mark import REMEDY, PartsMark, fingerprint, part_name
from streamkernel.connectors.ports import Mark, Position, Sink, SinkError

__all__ = ["MOST_BYTES", "ParquetSink"]

_LINES_AT_ONCE = 4096
# More bytes of an unfinished part than this go to a file.
MOST_BYTES = 2**24
# The pause after a part could not be written, in seconds.
_PAUSE_SECONDS = 10.0
# The approximate size of a line as a dict.
_LINE_BYTES = 600


class ParquetSink(Sink):
    """A sink that writes lines to the part files of a folder, ``part-00000000.parquet`` and so on.

    The sink writes a part next to the folder, makes it durable, and renames it into the folder, so that readers find
    whole files only. After a restart it removes the parts that the mark does not know. The replay writes their lines
    again, so each line is in one part.

    Parameters
    ----------
    path
        The folder. It is created if it is missing.
    columns
        The columns of a line and their types, the same in all parts.
    classes
        Classes with a probability column each.
    existing
        The treatment of existing parts without a mark: ``"refuse"`` to open the folder, ``"append"`` parts after them,
        or ``"replace"`` them.
    roll_seconds
        How long to fill a part, in seconds; each flush makes its rows durable. None: each flush ends a part.
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
        self._columns = LineColumns(columns, classes)
        self._folder = PartsFolder(path, self._columns.schema, compression)
        self._clock = clock
        self._descriptor: int | None = None
        self._described = ", ".join(f"{name} ({kind})" for name, kind in columns)
        self._begin(Progress(0))

    def _begin(self, found: Progress) -> None:
        """Begin a part, with the rows it has already in files."""
        self._part, self._n_rows, _ = found
        self._lines: list[Mapping[str, Any]] = []
        self._batches: list[pa.RecordBatch] = []
        self._began: float | None = self._clock() if self._n_rows else None
        self._not_before = 0.0
        self._last = fingerprint(self._folder.path, self._part - 1)

    def open(self, mark: Mark | None = None) -> None:
        """Open the folder, or continue at the part of the mark; see `Sink.open`.

        Raises
        ------
        SinkError
            Also if the folder is not the mark's, its parts have other columns, it has parts without a mark (as
            `existing` says), or another sink writes to it.

        """
        self.close()
        known = self._known(mark)
        with self._system_errors():
            self._folder.find(known, self.existing)  # before any change
            self._descriptor = self._folder.open()
            try:
                found = self._folder.find(known, self.existing)
                self._folder.settle(found)
                self._begin(found)
            except BaseException:
                self._unlock()
                raise

    def find_problem(self, mark: Mark | None = None) -> None:
        """Raise the error of `open`, without opening the folder for writing; see `Sink.find_problem`."""
        with self._system_errors():
            self._folder.find(self._known(mark), self.existing)

    def find_problem_anew(self, mark: Mark | None, before: Mark | None = None, *, stays: bool = False) -> None:
        """Raise the error of `set_aside` and `open`, without a change; see `Sink.find_problem_anew`."""
        with self._system_errors(), self._folder.locked():
            kept = stays or self.existing != "refuse"
            if kept or not self._folder.find_old_name(self._read(mark), self._read(before)):
                self._folder.find(None, self.existing)

    def set_aside(self, mark: Mark | None, before: Mark | None = None) -> str:
        """Rename the folder to one that ends in .old, unless `existing` says otherwise; see `Sink.set_aside`."""
        if self.existing != "refuse":
            return ""
        with self._system_errors(), self._folder.locked():
            return self._folder.set_aside(self._read(mark), self._read(before))

    def _read(self, mark: Mark | None) -> PartsMark | None:
        return PartsMark.from_json(self.path, mark)

    def _known(self, mark: Mark | None) -> PartsMark | None:
        """Return a mark to continue from; raise SinkError if it has other columns."""
        known = self._read(mark)
        if known is not None and known.columns != self._described:
            raise SinkError(
                f"{self.path}: its parts have the columns {known.columns}, and with include, classes and target_type "
                f"as they are now they would have {self._described}: change them back, {REMEDY}"
            )
        return known

    def write(self, lines: Sequence[Mapping[str, Any]], positions: Sequence[Position] = ()) -> None:  # noqa: ARG002
        """Take lines, and write a part after its time; see `Sink.write`."""
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
        """Make the lines durable, as a part or as rows of an unfinished one; see `Sink.flush`."""
        self._check_open()
        self._encode()
        with self._system_errors():
            if self.roll_seconds is None or self._due:
                self._roll()
            else:
                self._keep()
            folder = file_id(self._folder.path)
        return PartsMark(self._part, self._n_rows, folder, self._last, self._described)._asdict()

    def _encode(self) -> None:
        if self._lines:
            self._batches.append(self._columns.batch(self._lines))
            self._lines = []

    def _keep(self) -> None:
        """Write the rows in memory to a file next to the folder."""
        if self._batches:
            table = pa.Table.from_batches(self._batches)
            self._folder.keep(self._part, self._n_rows, table)
            self._n_rows += table.num_rows
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
        """End the part, if it has any rows."""
        self._encode()
        if not self._batches and not self._n_rows:
            return
        name = part_name(self._part)
        kept = self._folder.rows(self._part, self._n_rows)
        if kept is None:
            raise SinkError(f"{self.path}: the rows of {name} in {self._folder.unfinished} are gone: start again")
        table = pa.concat_tables([kept, pa.Table.from_batches(self._batches, self._columns.schema)])
        try:
            write_part(self._folder.path / name, self._folder.unfinished / name, table, self._folder.compression)
        except OSError:
            self._not_before = self._clock() + _PAUSE_SECONDS
            raise
        for path in self._folder.unfinished.glob(f"{name}.*"):
            path.unlink()
        self._begin(Progress(self._part + 1))

    @property
    def waiting(self) -> int:
        """1 after the time of a part: the next `write` ends it, even without lines."""
        return int(self._due)

    @property
    def waiting_bytes(self) -> int:
        """Approximately how many bytes wait in memory."""
        return _LINE_BYTES * len(self._lines) + self._batched_bytes

    @property
    def exactly_once(self) -> bool:
        """True: a restart removes the parts that the mark does not know."""
        return True

    def close(self) -> None:
        """End the part and close; closing twice does nothing.

        Raises
        ------
        SinkError
            If the part cannot be written. Its rows up to the last mark stay next to the folder.

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
        with suppress(OSError):  # rows wait there
            self._folder.unfinished.rmdir()
        os.close(self._descriptor)
        self._descriptor = None

    def _check_open(self) -> None:
        if self._descriptor is None:
            raise SinkError(f"{self.path}: the sink is not open")

    @contextmanager
    def _system_errors(self) -> Iterator[None]:
        """Raise SinkError, in one sentence, for an error of the system."""
        try:
            yield
        except OSError as error:
            raise SinkError(f"{self.path}: cannot be written: {os_reason(error)}") from None
        except pa.ArrowException as error:
            raise SinkError(f"{self.path}: a part cannot be read: {error!s:.200}: {REMEDY}") from None
