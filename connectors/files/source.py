"""Sources of lines in files: they walk a list of files, and hand out records; and JSON lines, one object a line."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Collection, Mapping, Sequence
from os import PathLike

from streamkernel.connectors.bulk import BulkDecoder, too_long_record
from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.settings import InputSettings
from streamkernel.connectors.files.follow import FollowedLog
from streamkernel.connectors.files.lines import MOST_BYTES, Chunk, Lines
from streamkernel.connectors.files.listing import FileList
from streamkernel.connectors.files.names import is_pattern
from streamkernel.connectors.files.places import FilePlace
from streamkernel.connectors.files.stream import STANDARD_INPUT, ByteStream, FileStream
from streamkernel.connectors.files.watched import WatchedFiles
from streamkernel.connectors.objects import JsonObjects
from streamkernel.connectors.pass_through import PassedColumn
from streamkernel.connectors.pass_through_reader import PassThrough, without_message
from streamkernel.connectors.ports import (
    ColumnUse,
    Fault,
    Position,
    Record,
    RecordColumns,
    Source,
    SourceError,
    at_offset,
)
from streamkernel.connectors.target_columns import Target

_log = logging.getLogger(__name__)


class LineSource(Source):
    """Records that are lines of files; the parameters are those of `JsonLinesSource`."""

    kind = "lines"

    def __init__(
        self, path: str | PathLike[str] | Sequence[str], follow: bool, watch: bool, max_record_bytes: int
    ) -> None:
        if max_record_bytes < 1:
            raise ValueError(f"max_record_bytes must be at least 1, got {max_record_bytes}")
        self.max_record_bytes = max_record_bytes
        self.files = _files(path, follow, watch)
        self._decoder: BulkDecoder | None = None
        self._passing: PassThrough | None = None
        self._reset()

    def _reset(self) -> None:
        self._stream: ByteStream | None = None
        self._lines: Lines | None = None
        self._open = False
        # The end of the last record; and that of the last record of the file before, with its lasting position.
        self._end: Position | None = None
        self._end_before: tuple[Position, Position] | None = None

    def open(self, positions: Mapping[int, Position] | None = None) -> None:
        """Open the first file, or the one that an earlier run was at; see `Source.open`.

        Raises
        ------
        SourceError
            When a file cannot be read; when it was replaced, is shorter than the position, or its last line has grown;
            when several files differ in their columns; when standard input is to be resumed or followed.

        """
        self.close()
        position = self.files.start(positions or {})
        self._open = True
        try:
            first = self.files.number
            for number in self.files.unverified:
                self.files.number = number
                self._open_due(None)
                self._leave_stream()
            self.files.number = first
            self.files.note_start(first)
            if position is not None or self.files.alone:
                self._open_due(position)
        except SourceError:
            self.close()
            raise

    def _open_due(self, position: Position | None) -> None:
        """Open the file that is due, at its beginning or at a position in it."""
        self._stream = self.files.open(position)
        self._begin(self._stream)

    def _begin(self, stream: ByteStream) -> None:
        """Prepare to split and decode the open file."""
        self._lines = Lines(stream, self.max_record_bytes, self.files.number)

    def _leave_stream(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream = self._lines = None

    def pass_through(self, columns: Sequence[PassedColumn], *, message: bool = False) -> None:
        """Let each record hold these columns; see `Source.pass_through`."""
        self._passing = without_message(self.describe(), columns, message)
        if self._decoder is not None:
            self._decoder.passing = self._passing

    def poll(self, max_records: int, timeout: float) -> Sequence[Record]:
        """Hand out the next records; see `Source.poll`."""
        if not self._open:
            raise SourceError(f"{self.files.name}: the source is not open")
        if self._end is not None and isinstance(self._stream, FileStream):
            # A caller that asks for more needs no earlier place, except the end of the last records for a checkpoint.
            self._stream.forget(self._end.offset)
        deadline = time.monotonic() + timeout
        while not (records := self._next_records(max_records)):
            left = deadline - time.monotonic()
            if left <= 0 or self.exhausted:
                return []
            (self._stream or self.files).wait(min(self.files.pause, left))
        self._end = records.ends[-1] if isinstance(records, RecordColumns) else records[-1].next
        self.files.handed_out(self._end)
        return records

    def _next_records(self, max_records: int) -> Sequence[Record]:
        """Return the next records of one file; none where there are none now."""
        while self._lines is not None or self.files.due():
            try:
                if self._lines is None:
                    self._open_due(None)
                    if not self.files.alone:
                        _log.info("reading %s, file %d of %s", self.files.name, self.files.number + 1, self.files.path)
                assert self._lines is not None
                records = self._records_of_file(self._lines, max_records)
            except SourceError as error:
                if (fault := self.files.fault(error)) is None:
                    raise
                return [self._unreadable(fault)]
            if records:
                return records
            if not self._lines.done:
                break
            self._finish()
        return []

    def _records_of_file(self, lines: Lines, max_records: int) -> Sequence[Record]:
        records: list[Record] = []
        size = 0
        while len(records) < max_records and size < MOST_BYTES:
            try:
                more = self._records(lines, max_records - len(records))
            except SourceError:
                if not records:
                    raise
                more = []  # the stream fails again at the next poll, once these are handed out
            if isinstance(more, RecordColumns) and not records:
                return more
            if not more:
                break
            size += more[-1].next.offset - more[0].position.offset
            records += more
        return records

    def _records(self, lines: Lines, limit: int) -> Sequence[Record]:
        return self._decoded(lines.take(limit))

    def _decoded(self, chunk: Chunk) -> Sequence[Record]:
        assert self._decoder is not None
        if not chunk.too_long:
            return self._decoder.records(chunk.lines, chunk.positions[:-1], chunk.positions[1:])
        return [too_long_record(chunk.lines[0], chunk.too_long, self.max_record_bytes, *chunk.positions)]

    def _finish(self) -> None:
        """Leave the file that was read to its end."""
        if self._end is not None:
            self._end_before = self._end, self.lasting(self._end)
            self._end = None
        self.files.finish(self._stream)
        self._stream = self._lines = None

    def _unreadable(self, fault: Fault) -> Record:
        """Return the record of the rest of a file that cannot be read, and leave that."""
        path = os.fsencode(self.files.name)
        start = self._end or Position("", self.files.number, 0)
        self.files.handed_out(start)
        self._finish()
        end = start._replace(known=FilePlace(order=self.files.order, at_end=True).known)
        return Record({}, None, start, end, path, fault)

    def decode(self, raw: bytes, position: Position, following: Position) -> Record:
        """Return the record of raw bytes; see `Source.decode`. The file has the names of the columns of CSV.

        Raises
        ------
        SourceError
            Where CSV is not open, or has no header that could be read before its records.

        """
        if self._decoder is None:
            raise SourceError(f"{self.files.name}: there is no header with the column names")
        if len(raw) > self.max_record_bytes:
            return too_long_record(raw, len(raw), self.max_record_bytes, position, following)
        return self._decoder.records([raw], [position], [following])[0]

    def place(self, partition: int, offset: int) -> str:
        """Return where a record begins, such as ``"line 7 (offset 120) of b.csv"``; see `Source.place`."""
        stream = self._stream if partition == self.files.number else None
        line = stream.line_at(offset) if isinstance(stream, FileStream) else None
        place = f"offset {offset}" if line is None else f"line {line} (offset {offset})"
        if self.files.alone:
            return place
        path = self.files.file_of(partition)
        return at_offset(partition, offset) if path is None else f"{place} of {path}"

    def lasting(self, position: Position) -> Position:
        """Add to a position the hashes by which its file is known, and the order of several; see `Source.lasting`."""
        if self._end_before is not None and position == self._end_before[0]:
            return self._end_before[1]
        if not isinstance(self._stream, FileStream) or position.partition != self.files.number:
            return position
        at_end = not self.files.alone and position == self._end and self._at_end()
        return self.files.lasting(self._stream.lasting(position), at_end=at_end)

    def _at_end(self) -> bool:
        """Return whether every record of the open file was handed out, and read on where that is not known yet."""
        try:
            return self._lines is not None and self._decoder is not None and self._lines.at_end()
        except SourceError:
            return False  # it fails again at the next poll

    @property
    def starting_offsets(self) -> Mapping[int, Position]:
        """Where a followed file or several files begin: at the next start they may have other names."""
        return self.files.starts

    @property
    def chooses_order(self) -> bool:
        """Whether a later run might find other files first."""
        return self.files.chooses_order

    def settled(self, positions: Mapping[int, Position]) -> Collection[int]:
        """Return the numbers of all files but the last: those before it are finished."""
        return sorted(positions)[:-1]

    def saved(self, positions: Mapping[int, Position]) -> None:
        """Let a watched directory log which files may be removed; see `Source.saved`."""
        self.files.saved(positions)

    @property
    def exhausted(self) -> bool:
        """Whether all files were read to their end; never while more may come."""
        if self._lines is None:
            return self._open and self.files.finite and not self.files.due()
        return self.files.finite and self.files.last and self._lines.done

    @property
    def resumable(self) -> bool:
        """Whether the source is a file, and not standard input."""
        return self.files.path != STANDARD_INPUT

    @property
    def total(self) -> tuple[int, str] | None:
        """The size of an open, plain file that is alone and not followed; else None."""
        file = self._stream.file if isinstance(self._stream, FileStream) else None
        return (file.size, "bytes") if file and file.plain and self.files.alone and self.files.finite else None

    def columns(self, record: Record) -> Sequence[ColumnUse]:
        """Return the use of each column of a line; see `Source.columns`."""
        return [] if self._decoder is None else self._decoder.columns(record.raw)

    def describe(self) -> str:
        """Return a phrase such as ``"csv file data.csv, followed"``."""
        return self.files.describe(self.kind)

    def close(self) -> None:
        """Close the open file; closing twice does nothing."""
        self._leave_stream()
        self.files.close()
        self._reset()


def _files(path: str | PathLike[str] | Sequence[str], follow: bool, watch: bool) -> FileList:
    """Return the list of the files that a source reads."""
    if not isinstance(path, str | PathLike):
        return FileList(path)
    one = os.fspath(path)
    if watch:
        return WatchedFiles(one)
    return FollowedLog(one) if follow else FileList([one], alone=not is_pattern(one))


class JsonLinesSource(LineSource):
    """Read JSON lines in UTF-8; see `streamkernel.connectors.objects.JsonObjects` for what becomes of their values.

    Parameters
    ----------
    path
        A file, plain or ending in .gz or .zst, or ``"-"`` for standard input; a list of files, or a pattern such as
        ``data/*.jsonl``, for several.
    target
        The key of the target, or those of several; None: no target, every record is unlabeled.
    target_type
        ``"str"``, ``"int"``, ``"bool"`` or ``"float"``; see `streamkernel.connectors.decode.TargetDecoder`.
    follow
        Whether to wait for more at the end of a plain file, and to continue in the next one when it is rotated.
    max_record_bytes
        The longest line, in bytes; a longer one is a fault.
    max_string
        The most characters of a name or a string value; more is a fault.
    inputs
        Which keys are inputs, and how they are read; None: all but the target, each as it is.
    watch
        Whether `path` is a directory or a pattern that is watched for files; see
        `streamkernel.connectors.files.watched.WatchedFiles`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b'{"a": 1, "b": null, "y": true}\\n[1, 2]\\n')
    ...     file.flush()
    ...     with JsonLinesSource(file.name, target="y", target_type="bool") as source:
    ...         source.open()
    ...         records = source.poll(10, timeout=0)
    >>> records[0].x, records[0].y
    ({'a': 1}, True)
    >>> records[1].fault
    Fault(reason='not_an_object', detail='a list, not an object')

    """

    kind = "jsonl"

    def __init__(
        self,
        path: str | PathLike[str] | Sequence[str],
        target: Target = None,
        target_type: str = "str",
        follow: bool = False,
        max_record_bytes: int = 2**20,
        max_string: int = 256,
        inputs: InputSettings | None = None,
        watch: bool = False,
    ) -> None:
        super().__init__(path, follow, watch, max_record_bytes)
        rules = None if inputs is None else ColumnRules(inputs, max_string)
        self._decoder = JsonObjects(target, target_type, max_string, rules)
