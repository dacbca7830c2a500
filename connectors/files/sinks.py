"""Sinks that write lines to a file, as JSON lines or as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from itertools import repeat
from os import PathLike
from typing import Any

import numpy as np

from streamkernel.connectors.class_columns import PROBABILITIES, ClassColumns
from streamkernel.connectors.encode import ColumnLines, to_json, to_json_lines
from streamkernel.connectors.files.bytes import open_file
from streamkernel.connectors.files.existing import Existing, is_special
from streamkernel.connectors.files.fields import csv_rows, csv_text
from streamkernel.connectors.files.lines import CsvLines
from streamkernel.connectors.files.mark import FileMark
from streamkernel.connectors.files.output import LineSink
from streamkernel.connectors.files.stream import FileStream
from streamkernel.connectors.ports import Mark, SinkError, SourceError
from streamkernel.connectors.target_columns import SpreadTargets

_LONGEST_HEADER = 2**24


class JsonLinesSink(LineSink):
    """Write each line as a JSON object.

    Parameters
    ----------
    path
        A file, compressed where it ends in .gz or .zst, or ``"-"`` for standard output. A missing directory is made.
    existing
        The treatment of a file with content when there is no mark to continue from: ``"refuse"``, ``"append"`` or
        ``"replace"``.

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

    The columns are the keys of the first line; a resumed file keeps its header. A missing key is an empty field. A key
    without a column is an error, and so is appending to a file with other columns; then the sink takes none of the
    lines. Floats read back the same. Nested values become JSON.

    Parameters
    ----------
    path
        A file, compressed where it ends in .gz or .zst, or ``"-"`` for standard output. A missing directory is made.
    existing
        The treatment of a file with content when there is no mark to continue from: ``"refuse"``, ``"append"`` or
        ``"replace"``.
    classes
        Classes with a probability column each, instead of one column for all; see
        `streamkernel.connectors.class_columns`.
    included
        The pass-through columns of each line. A resumed file must have the same ones. None: whatever the lines have.
    models
        The columns that lines have with several models. A resumed file must have the same ones.
    targets
        Several targets with a column each for prediction, target and probability; see
        `streamkernel.connectors.target_columns`.

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
        """Open the file, or cut it to the length in `mark` and continue under its header; see `Sink.open`."""
        super().open(mark)
        file = self._opened()
        self._columns = None
        self._appended = file.appended
        self._unverified = bool(file.length) and self._included is not None
        if file.length:
            try:
                self._columns = self._header()
            except SinkError:
                self.close()
                raise

    def find_problem(self, mark: Mark | None = None) -> None:
        """Raise what `open` would, without opening the file for writing; see `Sink.find_problem`."""
        super().find_problem(mark)
        known = None if is_special(self.path) else FileMark.from_json(self.path, mark)
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
        with closing(FileStream(open_file(self.path))) as stream:
            lines = CsvLines(stream, _LONGEST_HEADER, ",", "utf-8")
            return next(csv_rows([line.decode() for line in lines.take(1).lines]))

    def _encode(self, lines: Sequence[Mapping[str, Any]]) -> bytes:
        if not lines:
            return b""
        rows: list[Iterable[Any]] = []
        columns = self._columns
        lines = list(map(self._spread, lines)) if self._spread.names else lines
        first = lines.columns if isinstance(lines, ColumnLines) else lines[0]
        if self._appended and columns is not None and columns.keys() != first.keys():
            raise SinkError(
                f"{self.path}: lines of the columns {', '.join(first)} cannot be appended to a file of the columns "
                f"{', '.join(columns)}: move the file away"
            )
        self._appended = False
        if self._unverified and columns is not None:
            # A line need not have what a model adds to its prediction, nor what a mended record does not carry.
            free = {PROBABILITIES, "std", *(self._included or ())}
            if columns.keys() - free - first.keys() or first.keys() - columns.keys():
                raise self._other_columns(columns)
            self._unverified = False
        if columns is None:
            columns = dict.fromkeys(first)
            rows.append(columns)
        for line in [first] if isinstance(lines, ColumnLines) else lines:
            if not columns.keys() >= line.keys():
                unknown = next(name for name in line if name not in columns)
                raise SinkError(
                    f"{self.path}: there is no column for {unknown!r}: the columns are those of the first line, "
                    f"{', '.join(columns)}"
                )
        if isinstance(lines, ColumnLines):
            rows += zip(*(_fields(lines, name) for name in columns), strict=True)
        else:
            rows += [[_field(line.get(name)) for name in columns] for line in lines]
        self._columns = columns
        return csv_text(rows).encode("utf-8", "backslashreplace")


def _field(value: Any) -> Any:
    """Return what the csv module writes so that it reads back the same."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if value is None or isinstance(value, str | int | float) else to_json(value).decode()


def _fields(lines: ColumnLines, name: str) -> Iterable[Any]:
    """Return what `_field` makes of one column of each line."""
    column = lines.columns.get(name)
    if isinstance(column, dict):
        return to_json_lines(ColumnLines(len(lines), column)).decode().split("\n")[:-1]
    if isinstance(column, np.ndarray):
        return list(column.tolist())
    return map(_field, column) if isinstance(column, list) else repeat(_field(column), len(lines))
