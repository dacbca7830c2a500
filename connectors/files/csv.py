"""Records that are lines of a CSV file with a header."""

from __future__ import annotations

import codecs
import logging
import math
import time
from collections.abc import Sequence
from os import PathLike

from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.settings import InputSettings
from streamkernel.connectors.decode import TargetDecoder
from streamkernel.connectors.files.follow import FollowedFile
from streamkernel.connectors.files.header import HEADER_MOVED, UnusableHeaderError, delimiter_hint, header_columns
from streamkernel.connectors.files.lines import Chunk, CsvLines, Lines
from streamkernel.connectors.files.rows import CsvRows
from streamkernel.connectors.files.source import LineSource
from streamkernel.connectors.files.stream import ByteStream, FileStream
from streamkernel.connectors.names import nfc
from streamkernel.connectors.ports import Fault, Position, Record, SourceError
from streamkernel.connectors.target_columns import Target

# The log names an open quote that holds up a followed file for this long.
LOG_SECONDS = 10.0
_log = logging.getLogger(__name__)


class CsvSource(LineSource):
    """Read CSV; the first line of the file names the columns.

    A line that repeats the header is skipped, and the log says so once; case and blanks round a name do not count. With
    the columns in another order it is an error, after all records before it. A file that is followed, copied and
    truncated keeps its columns: its next line need not name them again.

    An empty field is an absent input, and so is ``nan``. A field that reads as a number is a float (spaces round it
    do not matter, underscores in it do); an infinite one is a fault. Every other field is a string.

    Parameters
    ----------
    path
        A file, plain or ending in .gz or .zst, or ``"-"`` for standard input; a list of files, or a pattern such as
        ``data/*.csv``, for several.
    target
        The column of the target, or those of several; None: no target, every record is unlabeled.
    target_type
        ``"str"``, ``"int"``, ``"bool"`` or ``"float"``; see `streamkernel.connectors.decode.TargetDecoder`.
    delimiter
        One character.
    encoding
        Of the text; one in which ASCII characters are single bytes. A byte order mark of UTF-8 is skipped.
    multiline
        Whether a quoted field may have line ends. If not, such a record is a fault. Either way a line within a quoted
        field is no record, and a quote without an end costs its own line; see
        `streamkernel.connectors.files.lines.CsvLines`.
    follow
        Whether to wait for more at the end of a plain file, and to continue in the next one, which has a header of its
        own, when it is rotated.
    max_record_bytes
        The longest record, in bytes; a longer one is a fault.
    max_string
        The most characters of a string value; more is a fault.
    inputs
        Which columns are inputs, and how they are read; None: all but the target, as above.
    target_required
        Whether a file without the column of the target is refused; if not, its records are unlabeled.
    watch
        Whether `path` is a directory or a pattern that is watched for files; see
        `streamkernel.connectors.files.watched.WatchedFiles`.

    Raises
    ------
    ValueError
        For a delimiter, an encoding, a target type, a limit or a column's type that cannot be.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"a,color,y\\n1,red,yes\\n,blue,\\n1,2\\n")
    ...     file.flush()
    ...     with CsvSource(file.name, target="y") as source:
    ...         source.open()
    ...         records = source.poll(10, timeout=0)
    >>> [(record.x, record.y) for record in records[:2]]
    [({'a': 1.0, 'color': 'red'}, 'yes'), ({'color': 'blue'}, None)]
    >>> records[2].fault
    Fault(reason='csv_width', detail='2 fields where the header has 3')

    """

    kind = "csv"

    _decoder: CsvRows | None

    def __init__(
        self,
        path: str | PathLike[str] | Sequence[str],
        target: Target = None,
        target_type: str = "str",
        delimiter: str = ",",
        encoding: str = "utf-8",
        multiline: bool = False,
        follow: bool = False,
        max_record_bytes: int = 2**20,
        max_string: int = 256,
        inputs: InputSettings | None = None,
        target_required: bool = True,
        watch: bool = False,
    ) -> None:
        super().__init__(path, follow, watch, max_record_bytes)
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise ValueError(f"delimiter must be one character, no quote and no line end, got {delimiter!r}")
        self.target = nfc(target) if isinstance(target, str) else target
        self.target_type = target_type
        self.delimiter = delimiter
        self.encoding = _checked_encoding(encoding)
        self.multiline = multiline
        self.max_string = max_string
        self._rules = ColumnRules(inputs or InputSettings(), max_string)
        self.target_required = target_required
        TargetDecoder(target_type, max_string)  # an unknown type is an error now, not with the header
        self._header = b""
        self.column_names: Sequence[str] | None = None  # of the current file; None before its header was read
        self._logged_header = False
        # Where a record begins that waits for the end of its quote, and when to log that.
        self._waits: tuple[int, float] | None = None

    def _begin(self, stream: ByteStream) -> None:
        self._decoder = self.column_names = None
        self._logged_header = False
        given = self.max_record_bytes, self.delimiter, self.encoding, self.files.number
        if stream.header is None and isinstance(stream, FollowedFile) and stream.continued:
            stream.header = self._header.decode("latin-1")
        if stream.header is not None:
            self.use_header(stream.header.encode("latin-1"))
        elif isinstance(stream, FileStream):
            offset = stream.offset
            stream.seek(0)
            lines = CsvLines(stream, *given)
            end = self._read_header(lines)
            # Where there is no header yet, it is read with the first record.
            stream.seek(0 if end is None else max(offset, end))
        self._lines = CsvLines(stream, *given)

    def _records(self, lines: Lines, limit: int) -> Sequence[Record]:
        assert isinstance(lines, CsvLines)
        if self._decoder is None and self._read_header(lines) is None:
            return []
        assert self._decoder is not None
        decoder = self._decoder
        decoder.header_again = decoder.header_moved = False
        chunk = lines.take(limit)
        records = self._decoded(chunk)
        if decoder.header_moved:  # what follows would be wrong numbers and labels
            at = next(index for index, one in enumerate(records) if one.fault and one.fault.detail == HEADER_MOVED)
            lines.give_back(chunk, at)
            if at == 0:
                place = self.place(self.files.number, records[0].position.offset)
                raise self._failed(
                    f"{HEADER_MOVED}, at {place}: split the file there, or give all lines the first order"
                )
            records = records[:at]
        if decoder.header_again:
            self._log_repeated_header(records)
        if self._waits is not None or lines.waits_at is not None:
            self._log_open_quote(lines, bool(records))
        if records and lines.unended and lines.done and self.resumable:
            _log.warning(
                "%s: the last line has no line end and is read as it is, though it may be cut short: add the line "
                "end (with follow: true, the daemon reads a line only with its line end)",
                self.files.name,
            )
        return records

    def _decoded(self, chunk: Chunk) -> Sequence[Record]:
        if chunk.n_lines > 1 and not chunk.too_long and not self.multiline:
            detail = f"a quoted field spans {chunk.n_lines:,} lines"
            start, following = chunk.positions
            return [Record({}, None, start, following, chunk.lines[0], Fault("open_quote", detail))]
        return super()._decoded(chunk)

    def decode(self, raw: bytes, position: Position, following: Position) -> Record:
        """Return the record of raw bytes; see `LineSource.decode`.

        Raises
        ------
        SourceError
            Also where the columns of several files are in different orders.

        """
        order = self.files.order
        if order.reordered:
            raise SourceError(
                f"{self.files.path}: the files have their columns in different orders, so one record alone "
                "cannot be decoded: append it to a file that is not read yet"
            )
        if self._decoder is None and order.columns is not None:
            self._use_columns(order.columns)
        return super().decode(raw, position, following)

    def _log_repeated_header(self, records: Sequence[Record]) -> None:
        """Log, once for a file, that the header came again among these records and was skipped."""
        blank = (record for record in records if record.blank and record.raw and not record.raw.isspace())
        again = None if self._logged_header else next(blank, None)
        if again is not None:
            self._logged_header = True
            _log.info(
                "%s: the header is repeated at %s: the daemon skips each repetition",
                *(self.files.name, self.place(self.files.number, again.position.offset)),
            )

    def _log_open_quote(self, lines: CsvLines, some_records: bool) -> None:
        """Log, once for a record, that nothing comes because its quote is open."""
        at = None if some_records else lines.waits_at
        if at is None:
            self._waits = None
        elif self._waits is None or self._waits[0] != at:
            self._waits = at, time.monotonic() + LOG_SECONDS
        elif time.monotonic() >= self._waits[1]:
            self._waits = at, math.inf
            _log.warning(
                "%s: the record at %s opens a quote that is not closed yet: the lines after it wait for its end, "
                "or for %s bytes. If the quote is a mistake, close it",
                *(self.files.name, self.place(self.files.number, at), f"{lines.reach:,}"),
            )

    def _read_header(self, lines: CsvLines) -> int | None:
        """Read the names of the columns, and return where they end; None where they are not there yet."""
        chunk = lines.take(1)
        if not chunk.lines:
            return None
        if chunk.too_long:
            raise self._failed(f"the header is longer than max_record_bytes ({self.max_record_bytes:,})")
        self.use_header(chunk.lines[0] if self.multiline else chunk.lines[0].partition(b"\n")[0])
        return chunk.positions[1].offset

    def use_header(self, raw: bytes) -> None:
        """Decode records as those of a file that begins with this line; SourceError where it cannot be used."""
        columns = self._columns(raw)
        self._use_columns(columns)
        self._header = raw
        self.files.use_columns(columns)

    def _use_columns(self, columns: Sequence[str]) -> None:
        target = self.target
        if isinstance(target, str) and not (self.target_required or target in columns):
            target = None
        self._decoder = CsvRows(
            columns, target, self.target_type, self.delimiter, self.encoding, self.max_string, self._rules
        )
        self._decoder.passing = self._passing
        self.column_names = columns

    def _columns(self, raw: bytes) -> list[str]:
        """Return the names of the columns; raise SourceError where they cannot be used."""
        passed = [] if self._passing is None else [one.column for one in self._passing.columns]
        advice = delimiter_hint(raw, self.delimiter, self.encoding)
        given = self.delimiter, self.encoding, self.target, self._rules, self.target_required, passed
        try:
            columns = header_columns(raw, *given)
        except UnusableHeaderError as error:
            raise self._failed(advice or str(error)) from None
        if advice:
            _log.warning("%s: %s", self.files.name, advice)
        return columns

    def _failed(self, why: str) -> SourceError:
        return SourceError(f"{self.files.name}: {why}")


def _checked_encoding(encoding: str) -> str:
    sample = "".join(map(chr, range(128)))
    try:
        # The byte order mark is dealt with where the file begins, and nowhere else.
        name = codecs.lookup(encoding).name.replace("utf-8-sig", "utf-8")
        # Nor may ASCII characters mean others: some of them would be half of a surrogate pair.
        transparent = sample.encode(name) == sample.encode("ascii") and rb"\u0041".decode(name) == r"\u0041"
    except (LookupError, UnicodeError):
        raise ValueError(f"there is no encoding {encoding!r}") from None
    if not transparent:
        raise ValueError(
            f"the encoding must write ASCII characters as single bytes, {encoding!r} does not: "
            f"convert the file, for example with iconv -f {encoding} -t utf-8"
        )
    return name
