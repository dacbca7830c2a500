"""Records that are lines of a CSV file with a header."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from os import PathLike

from connectors.columns.rules import ColumnRules
from connectors.columns.settings import InputSettings
from connectors.decode import TargetDecoder
from connectors.files.bytes import ByteStream, StandardInput
from connectors.files.header import UnusableHeaderError, header_columns, listed
from connectors.files.lines import Chunk, Lines
from connectors.files.multiline import JoinedLines
from connectors.files.rows import CsvRows
from connectors.files.source import LineSource
from connectors.names import nfc
from connectors.ports import Record, SourceError


class CsvSource(LineSource):
    """Read CSV; the first line of the file names the columns.

    An empty field is an absent input, and so is ``nan``. A field that reads as a number is a float (spaces round it
    do not matter, underscores in it do); an infinite one is a fault. Every other field is a string.

    Parameters
    ----------
    path
        A file, plain or ending in .gz or .zst, or ``"-"`` for standard input.
    target
        The column of the target; None: no target, every record is unlabelled.
    target_type
        ``"str"``, ``"int"``, ``"bool"`` or ``"float"``; see `connectors.decode.TargetDecoder`.
    delimiter
        One character.
    encoding
        Of the text; one in which ASCII characters are single bytes. A byte order mark of UTF-8 is skipped.
    multiline
        Whether a quoted field may hold line ends. If not, every physical line is a record, so that a stray quote
        costs one record.
    follow
        Whether to wait for more at the end of a plain file, and to go on in the next one, which has a header of its
        own, when it is rotated.
    max_record_bytes
        The longest record, in bytes; a longer one is a fault.
    max_string
        The most characters of a string value; more is a fault.
    inputs
        Which columns are inputs, and how they are read; None: all but the target, as above.
    target_required
        Whether a file without the column of the target is refused; if not, its records are unlabelled.

    Raises
    ------
    ValueError
        For a delimiter, an encoding, a target type, a limit or a column's type that cannot be.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"a,colour,y\\n1,red,yes\\n,blue,\\n1,2\\n")
    ...     file.flush()
    ...     with CsvSource(file.name, target="y") as source:
    ...         source.open()
    ...         records = source.poll(10, timeout=0)
    >>> [(record.x, record.y) for record in records[:2]]
    [({'a': 1.0, 'colour': 'red'}, 'yes'), ({'colour': 'blue'}, None)]
    >>> records[2].fault
    Fault(reason='csv_width', detail='2 fields where the header has 3')

    """

    kind = "csv"

    def __init__(
        self,
        path: str | PathLike[str],
        target: str | None = None,
        target_type: str = "str",
        delimiter: str = ",",
        encoding: str = "utf-8",
        multiline: bool = False,
        follow: bool = False,
        max_record_bytes: int = 2**20,
        max_string: int = 256,
        inputs: InputSettings | None = None,
        target_required: bool = True,
    ) -> None:
        super().__init__(path, follow, max_record_bytes)
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise ValueError(f"delimiter must be one character, no quote and no line end, got {delimiter!r}")
        self.target = None if target is None else nfc(target)
        self.target_type = target_type
        self.delimiter = delimiter
        self.encoding = _checked_encoding(encoding)
        self.multiline = multiline
        self.max_string = max_string
        self._rules = ColumnRules(inputs or InputSettings(), max_string)
        self.target_required = target_required
        TargetDecoder(target_type, max_string)  # an unknown type is an error now, not with the header
        self._header_end = 0

    def _begin(self, stream: ByteStream, offset: int) -> None:
        self._decoder = self.column_names = None
        super()._begin(stream, 0)
        if isinstance(stream, StandardInput):
            # Its writer may not have begun: the header is read when there is something to hand out.
            return
        header_read = self._lines is not None and self._read_header(self._lines, deadline=0.0)
        super()._begin(stream, max(offset, self._header_end) if header_read else 0)

    def _split(self, stream: ByteStream) -> Lines:
        if self.multiline:
            return JoinedLines(stream, self.max_record_bytes, self.delimiter, self.encoding, self.partition)
        return super()._split(stream)

    def _records(self, lines: Lines, limit: int, deadline: float) -> list[Record]:
        if self._decoder is None and not self._read_header(lines, deadline):
            return []
        return super()._records(lines, limit, deadline)

    def _read_header(self, lines: Lines, deadline: float) -> bool:
        """Read the names of the columns; False where the first line is not there yet, or the file is empty."""
        chunk = lines.take(1, deadline)
        if not chunk.lines:
            return False
        self.use_columns(self._columns(chunk))
        self._header_end = chunk.positions[1].offset
        return True

    def use_columns(self, columns: Sequence[str]) -> None:
        """Decode records as those of a file with these columns."""
        target = self.target if self.target_required or self.target in columns else None
        self._decoder = CsvRows(
            columns, target, self.target_type, self.delimiter, self.encoding, self.max_string, self._rules
        )
        self._decoder.passing = self._passing
        self.column_names = columns

    def _columns(self, header: Chunk) -> list[str]:
        """Return the names of the columns; raise SourceError where they cannot be used."""
        if header.too_long:
            raise self._failed(f"the header is longer than max_record_bytes ({self.max_record_bytes:,})")
        raw, target, required = header.lines[0], self.target, self.target_required
        try:
            columns = header_columns(raw, self.delimiter, self.encoding, target, self._rules, required)
        except UnusableHeaderError as error:
            raise self._failed(str(error)) from None
        missing = (
            [] if self._passing is None else [one.column for one in self._passing.columns if one.column not in columns]
        )
        if missing:
            raise self._failed(
                f"there is no column {listed(missing)} to pass through, the header has {listed(columns)}"
            )
        return columns

    def _failed(self, why: str) -> SourceError:
        return SourceError(f"{self._place}: {why}")


def _checked_encoding(encoding: str) -> str:
    sample = "".join(map(chr, range(128)))
    try:
        # The byte order mark is dealt with where the file begins, and nowhere else.
        name = codecs.lookup(encoding).name.replace("utf-8-sig", "utf-8")
        # Nor may ASCII characters stand for others, of which some would be half of a surrogate pair.
        transparent = sample.encode(name) == sample.encode("ascii") and rb"\u0041".decode(name) == r"\u0041"
    except (LookupError, UnicodeError):
        raise ValueError(f"there is no encoding {encoding!r}") from None
    if not transparent:
        raise ValueError(
            f"the encoding must write ASCII characters as single bytes, {encoding!r} does not: "
            f"convert the file, such as by iconv -f {encoding} -t utf-8"
        )
    return name
