"""Sources of lines in a file: opening, resuming, following and polling it; and JSON lines, one object a line."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

from streamkernel.connectors.bulk import BulkDecoder
from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.settings import InputSettings
from streamkernel.connectors.files.bytes import STANDARD_INPUT, ByteStream, StandardInput, open_file
from streamkernel.connectors.files.follow import FollowedFile
from streamkernel.connectors.files.lines import Chunk, Lines
from streamkernel.connectors.files.stream import FileStream
from streamkernel.connectors.objects import JsonObjects
from streamkernel.connectors.pass_through import PassedColumn
from streamkernel.connectors.pass_through_reader import PassThrough
from streamkernel.connectors.ports import ColumnUse, Fault, Position, Record, Source, SourceError
from streamkernel.connectors.target_columns import Target

# With long records, the few hundred that the daemon asks for would fill the memory.
MOST_BYTES = 2**24


class LineSource(Source):
    """Records that are lines of a file; the parameters are those of `JsonLinesSource`."""

    kind = "lines"

    column_names: Sequence[str] | None = None
    """The names of the columns, where the file begins with them and they were read."""

    def __init__(self, path: str | PathLike[str], follow: bool, max_record_bytes: int) -> None:
        if max_record_bytes < 1:
            raise ValueError(f"max_record_bytes must be at least 1, got {max_record_bytes}")
        self.path = path
        self.follow = follow
        self.max_record_bytes = max_record_bytes
        self.partition = 0
        self._decoder: BulkDecoder | None = None
        self._passing: PassThrough | None = None
        self._reset()

    def _reset(self) -> None:
        self._stream: ByteStream | None = None
        self._lines: Lines | None = None
        self._starting_offsets: dict[int, Position] = {}
        # The end of the last record; and that of the last record of the file before, with its lasting position.
        self._end: Position | None = None
        self._end_before: tuple[Position, Position] | None = None

    def open(self, positions: Mapping[int, Position] | None = None) -> None:
        """Open the file; see `Source.open`.

        To resume in a compressed file, everything before the position is decompressed. A file has partition 0 only.

        Raises
        ------
        SourceError
            When the file cannot be read; when it was replaced, or is shorter than the position; when its last line was
            learned and has grown since; when standard input is to be resumed or followed.

        """
        self.close()
        if positions and set(positions) != {0}:
            raise SourceError(f"{self._place}: a file has only partition 0, not {sorted(positions)}")
        position = positions[0] if positions else None
        if not self.resumable:
            if self.follow:
                raise SourceError("standard input cannot be followed: it is read until its writer ends; drop follow")
            self._stream = StandardInput()
            if position:
                self._stream.seek(position.offset)
        elif self.follow:
            self._stream = FollowedFile(Path(self.path), position)
            if position is None:
                self._starting_offsets = {0: self._stream.starting_position()}
        else:
            self._stream = FileStream(open_file(Path(self.path)), position)
        try:
            self._begin(self._stream, self._stream.offset)
        except SourceError:
            self.close()
            raise

    @property
    def _place(self) -> str:
        """The name of the source in an error."""
        return str(self.path) if self.resumable else "standard input"

    def _begin(self, stream: ByteStream, offset: int) -> None:
        """Read the beginning of the stream, and continue at `offset`."""
        if offset != stream.offset:
            stream.seek(offset)
        self._lines = self._split(stream)

    def _split(self, stream: ByteStream) -> Lines:
        return Lines(stream, self.max_record_bytes, self.partition)

    def pass_through(self, columns: Sequence[PassedColumn], *, message: bool = False) -> None:
        """Let each record hold these columns; see `Source.pass_through`."""
        if message:
            raise SourceError(
                f"{self.describe()}: its records are not Kafka messages: there is no message column to pass through"
            )
        self._passing = PassThrough(columns)
        if self._decoder is not None:
            self._decoder.passing = self._passing

    def poll(self, max_records: int, timeout: float) -> list[Record]:
        """Hand out the next records; see `Source.poll`."""
        if self._lines is None:
            raise SourceError(f"{self._place}: the source is not open")
        if self._end is not None and isinstance(self._stream, FileStream):
            # A caller that asks for more needs no earlier place, except the end of the last records for a checkpoint.
            self._stream.forget(self._end.offset)
        deadline = time.monotonic() + timeout
        records: list[Record] = []
        size = 0
        while len(records) < max_records and size < MOST_BYTES:
            try:
                # Once there is something to hand out, nothing is worth waiting for.
                more = self._records(self._lines, max_records - len(records), 0.0 if records else deadline)
            except SourceError:
                if records:
                    # The stream fails again at the next poll, once these are handed out.
                    break
                raise
            if more:
                size += more[-1].next.offset - more[0].position.offset
                records += more
            elif records or not self._next_file():
                # The records of one poll come from one file.
                break
        if records:
            self._end = records[-1].next
        return records

    def _records(self, lines: Lines, limit: int, deadline: float) -> list[Record]:
        return self._decoded(lines.take(limit, deadline))

    def _decoded(self, chunk: Chunk) -> list[Record]:
        assert self._decoder is not None
        if not chunk.too_long:
            return self._decoder.records(chunk.lines, chunk.positions[:-1], chunk.positions[1:])
        start, following = chunk.positions
        return [self._too_long(chunk.lines[0], chunk.too_long, start, following)]

    def _too_long(self, raw: bytes, length: int, start: Position, following: Position) -> Record:
        detail = f"{length:,} bytes, more than max_record_bytes ({self.max_record_bytes:,})"
        return Record({}, None, start, following, raw, Fault("too_long", detail))

    def decode(self, raw: bytes, position: Position, following: Position) -> Record:
        """Return the record of raw bytes; see `Source.decode`. The file has the names of the columns of CSV.

        Raises
        ------
        SourceError
            Where CSV is not open, or has no header that could be read before its records.

        """
        if self._decoder is None:
            raise SourceError(f"{self._place}: there is no header with the column names")
        if len(raw) > self.max_record_bytes:
            return self._too_long(raw[: self.max_record_bytes], len(raw), position, following)
        return self._decoder.records([raw], [position], [following])[0]

    def place(self, partition: int, offset: int) -> str:  # noqa: ARG002 - a file has only one
        """Return where a record of the open file begins, such as ``"line 7 (offset 120)"``; see `Source.place`."""
        line = self._stream.line_at(offset) if isinstance(self._stream, FileStream) else None
        return f"offset {offset}" if line is None else f"line {line} (offset {offset})"

    def _next_file(self) -> bool:
        """Begin the next file of a log that is followed; return False where there is none."""
        stream = self._stream
        if not isinstance(stream, FollowedFile) or self._lines is None or not self._lines.done:
            return False
        following = stream.following()
        if following is None:
            return False
        if self._end is not None:
            self._end_before = self._end, self.lasting(self._end)
            self._end = None
        stream.close()
        self._stream = following
        self._begin(following, 0)
        return True

    def lasting(self, position: Position) -> Position:
        """Add to a position the hashes by which it is known in a file; see `Source.lasting`."""
        if self._end_before is not None and position == self._end_before[0]:
            return self._end_before[1]
        return self._stream.lasting(position) if isinstance(self._stream, FileStream) else position

    @property
    def starting_offsets(self) -> Mapping[int, Position]:
        """Where a followed file begins: at the next start it may have another name."""
        return self._starting_offsets

    @property
    def exhausted(self) -> bool:
        """Whether the file was read to its end; never while it is followed."""
        return not self.follow and self._lines is not None and self._lines.done

    def at_end(self) -> bool:
        """Return whether every record was handed out, and read on where that is not known yet."""
        if self._lines is None or self._decoder is None:
            return self.exhausted
        try:
            return self._lines.at_end()
        except SourceError:
            # It fails again at the next poll.
            return False

    @property
    def resumable(self) -> bool:
        """Whether the source is a file, and not standard input."""
        return str(self.path) != STANDARD_INPUT

    @property
    def total(self) -> tuple[int, str] | None:
        """The size of an open, plain file that is not followed; else None."""
        size = self._stream.size if isinstance(self._stream, FileStream) and not self.follow else None
        return None if size is None else (size, "bytes")

    def columns(self, record: Record) -> Sequence[ColumnUse]:
        """Return the use of each column of a line; see `Source.columns`."""
        return [] if self._decoder is None else self._decoder.columns(record.raw)

    def describe(self) -> str:
        """Return a phrase such as ``"csv file data.csv, followed"``."""
        if not self.resumable:
            return f"{self.kind} from standard input"
        return f"{self.kind} file {self.path}" + (", followed" if self.follow else "")

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        if self._stream is not None:
            self._stream.close()
        self._reset()


class JsonLinesSource(LineSource):
    """Read JSON lines in UTF-8; see `streamkernel.connectors.objects.JsonObjects` for what becomes of their values.

    Parameters
    ----------
    path
        A file, plain or ending in .gz or .zst, or ``"-"`` for standard input.
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
        path: str | PathLike[str],
        target: Target = None,
        target_type: str = "str",
        follow: bool = False,
        max_record_bytes: int = 2**20,
        max_string: int = 256,
        inputs: InputSettings | None = None,
    ) -> None:
        super().__init__(path, follow, max_record_bytes)
        rules = None if inputs is None else ColumnRules(inputs, max_string)
        self._decoder = JsonObjects(target, target_type, max_string, rules)
