"""Sinks that write lines to a file, as JSON lines or as CSV."""

from __future__ import annotations

import csv
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from streamkernel.connectors.class_columns import PROBABILITIES, ClassColumns
from streamkernel.connectors.encode import to_json, to_json_lines
from streamkernel.connectors.files.bytes import open_file
from streamkernel.connectors.files.existing import Existing, find_names, find_problem, set_aside
from streamkernel.connectors.files.fields import csv_rows, csv_text
from streamkernel.connectors.files.mark import FileMark
from streamkernel.connectors.files.output import OutputFile
from streamkernel.connectors.files.quoted import QuotedLines
from streamkernel.connectors.ports import Mark, Position, Sink, SinkError, SourceError
from streamkernel.connectors.target_columns import SpreadTargets

_LONGEST_HEADER = 2**24


class LineSink(Sink):
    """Lines into a file; the parameters are those of `JsonLinesSink`."""

    def __init__(self, path: str | PathLike[str], existing: Existing = "refuse") -> None:
        self.path = path
        self._output = OutputFile(path, existing)
        self._n_unpublished = 0

    def open(self, mark: Mark | None = None) -> None:
        """Open the file, or cut it to the length in `mark` and go on; see `Sink.open`.

        Raises
        ------
        SinkError
            Also where the file is not the one of the mark, holds something though there is no mark (as `existing`
            says), or is locked: another sink writes to it.

        """
        self._output.open(mark)

    def find_problem(self, mark: Mark | None = None) -> None:
        """Raise what `open` would, without opening the file for writing; see `Sink.find_problem`."""
        if not self._output.standard:
            find_problem(self._output.path, mark, self._output.existing)

    def find_problem_anew(self, mark: Mark | None, before: Mark | None = None, *, stays: bool = False) -> None:
        """Raise what `set_aside` and `open` would, changing nothing; see `Sink.find_problem_anew`."""
        path, existing = self._output.path, self._output.existing
        if self._output.standard:
            return
        if stays or existing != "refuse" or find_names(path, mark, before) is None:
            find_problem(path, None, existing, alone=True)

    def set_aside(self, mark: Mark | None, before: Mark | None = None) -> str:
        """Rename the file to one that ends in .old, unless `existing` says otherwise; see `Sink.set_aside`."""
        if self._output.standard or self._output.existing != "refuse":
            return ""
        return set_aside(self._output.path, mark, before)

    def write(self, lines: Sequence[Mapping[str, Any]], positions: Sequence[Position] = ()) -> None:  # noqa: ARG002
        """Take lines; see `Sink.write`. Standard output and pipes are given them at once."""
        data = self._encode(lines)
        self._n_unpublished = self.unpublished + len(lines)
        self._output.write(data)

    @abstractmethod
    def _encode(self, lines: Sequence[Mapping[str, Any]]) -> bytes | bytearray:
        """Return lines as they are to stand in the file."""

    def publish(self) -> None:
        """Write the lines to the file, but for a compressed one; see `Sink.publish`."""
        self._output.publish()

    @property
    def unpublished(self) -> int:
        """How many lines are not in the file, or cannot be decompressed yet."""
        return 0 if self._output.published else self._n_unpublished

    def flush(self) -> dict[str, Any] | None:
        """Make the lines durable; see `Sink.flush`."""
        return self._output.flush()

    @property
    def waiting_bytes(self) -> int:
        """How many bytes wait in memory."""
        return self._output.waiting_bytes

    @property
    def exactly_once(self) -> bool:
        """True for a file, compressed or not; standard output, pipes and devices are at-least-once."""
        return not self._output.special

    def close(self) -> None:
        """Flush and close; closing twice does nothing."""
        self._output.close()


class JsonLinesSink(LineSink):
    """Write each line as a JSON object.

    Parameters
    ----------
    path
        A file, compressed where it ends in .gz or .zst, or ``"-"`` for standard output. A missing directory is made.
    existing
        What becomes of a file that holds something, where there is no mark to go on from: ``"refuse"`` to open it,
        ``"append"`` to it, or ``"replace"`` what it holds.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = pathlib.Path(directory, "out", "predictions.jsonl")
    ...     with JsonLinesSink(path) as sink:
    ...         sink.open()
    ...         sink.write([{"prediction": True}, {"prediction": 1}])
    ...         mark = sink.flush()
    ...     path.read_bytes(), mark["length"]
    (b'{"prediction":true}\\n{"prediction":1}\\n', 37)

    """

    def _encode(self, lines: Sequence[Mapping[str, Any]]) -> bytearray:
        return to_json_lines(lines)


class CsvSink(LineSink):
    """Write each line as a line of CSV.

    The columns are the keys of the first line, or the header that is there already when a run is resumed. A key that
    a line lacks is an empty field; one that has no column is an error, and so is a first line that is appended to a
    file with other columns: then none of the lines is taken. Floats are written so that they read back the same,
    nested values as JSON.

    Parameters
    ----------
    path
        A file, compressed where it ends in .gz or .zst, or ``"-"`` for standard output. A missing directory is made.
    existing
        What becomes of a file that holds something, where there is no mark to go on from: ``"refuse"`` to open it,
        ``"append"`` to it, or ``"replace"`` what it holds.
    classes
        Classes with a column each for their probability, in the place of one for all of them; see
        `streamkernel.connectors.class_columns`.
    included
        The columns that are passed through to each line, of which a file that is gone on with must have the same; None:
        whatever the lines have.
    models
        The columns that lines have where there are several models, which such a file must have as well.
    targets
        Several targets with a column each for the prediction, the target and the probability, in the place of one for
        all of them; see `streamkernel.connectors.target_columns`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = pathlib.Path(directory, "predictions.csv")
    ...     with CsvSink(path) as sink:
    ...         sink.open()
    ...         sink.write([{"prediction": 0.1, "probabilities": {"a": 0.9}}, {"prediction": None}])
    ...     print(path.read_text(), end="")
    prediction,probabilities
    0.1,"{""a"":0.9}"
    ,

    """

    def __init__(
        self,
        path: str | PathLike[str],
        existing: Existing = "refuse",
        classes: Sequence[Any] = (),
        included: Sequence[str] | None = None,
        models: Sequence[str] = (),
        targets: Sequence[str] = (),
    ) -> None:
        super().__init__(path, existing)
        self._spread: ClassColumns | SpreadTargets = SpreadTargets(targets) if targets else ClassColumns(classes)
        self._models = tuple(models)
        self._included = included
        self._columns: dict[str, None] | None = None
        self._appended = False
        self._unverified = False

    def open(self, mark: Mark | None = None) -> None:
        """Open the file, or cut it to the length in `mark` and go on under its header; see `Sink.open`."""
        file = self._output.open(mark)
        self._columns = None
        self._appended = file.appended
        self._unverified = bool(file.length) and self._included is not None
        if file.length:
            try:
                self._columns = self._header()
            except SinkError:
                self._output.close()
                raise

    def find_problem(self, mark: Mark | None = None) -> None:
        """Raise what `open` would, without opening the file for writing; see `Sink.find_problem`."""
        super().find_problem(mark)
        known = None if self._output.special else FileMark.from_json(self._output.path, mark)
        if known is not None and known.length:
            self._header()

    def _header(self) -> dict[str, None]:
        """Return the columns of the file; raise SinkError where those that lines are to have are not among them."""
        try:
            columns = dict.fromkeys(self._read_header())
        except (SourceError, UnicodeDecodeError, csv.Error) as error:
            raise SinkError(f"{self.path}: its header cannot be read: {error}") from None
        if not columns.keys() >= {*self._models, *(self._included or ()), *self._spread.names}:
            raise self._other_columns(columns)
        return columns

    def _other_columns(self, columns: Iterable[str]) -> SinkError:
        configured = ", ".join((*self._models, *(self._included or ()), *self._spread.names)) or "none"
        of = "models, include and classes" if self._models else "include and classes"
        return SinkError(
            f"{self.path}: has the columns {', '.join(columns)}, and those of {of} are now "
            f"{configured}: change them back, give another path to continue in a new file, or start over with --fresh"
        )

    def _read_header(self) -> list[str]:
        file = open_file(self._output.path)
        try:
            lines = QuotedLines(file, _LONGEST_HEADER, ",", "utf-8")
            lines.reconsider(lines.take(1, deadline=0.0), 0)  # a name may hold a line end
            return next(csv_rows([line.decode() for line in lines.take(1, deadline=0.0).lines]))
        finally:
            file.close()

    def _encode(self, lines: Sequence[Mapping[str, Any]]) -> bytes:
        rows: list[Iterable[Any]] = []
        columns = self._columns
        lines = list(map(self._spread, lines)) if self._spread.names else lines
        if self._appended and lines and columns is not None and columns.keys() != lines[0].keys():
            raise SinkError(
                f"{self.path}: lines of the columns {', '.join(lines[0])} cannot be appended to a file of the columns "
                f"{', '.join(columns)}: move the file away"
            )
        self._appended &= not lines
        if self._unverified and lines and columns is not None:
            # A line need not have what a model gives besides its prediction, nor what a mended record does not carry.
            free = {PROBABILITIES, "std", *(self._included or ())}
            if columns.keys() - free - lines[0].keys() or lines[0].keys() - columns.keys():
                raise self._other_columns(columns)
            self._unverified = False
        for line in lines:
            if columns is None:
                columns = dict.fromkeys(line)
                rows.append(columns)
            elif not columns.keys() >= line.keys():
                unknown = next(name for name in line if name not in columns)
                raise SinkError(
                    f"{self.path}: there is no column for {unknown!r}: the columns are those of the first line, "
                    f"{', '.join(columns)}"
                )
            rows.append([_field(line.get(name)) for name in columns])
        self._columns = columns
        return csv_text(rows).encode("utf-8", "backslashreplace")


def _field(value: Any) -> Any:
    """Return what the csv module writes so that it reads back the same."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if value is None or isinstance(value, str | int | float) else to_json(value).decode()
