"""CSV records that span physical lines: a quoted field may hold line ends.

The lines from an open quote to its end are one record. A quote without an end must not swallow the rest of the file:
the record is only its own line where

- the quote is not closed within `REACH` bytes (times `max_record_bytes` in MiB, if that is more), or by the end, or
- something follows the closing quote.

The next line then begins a record of its own.
"""

from __future__ import annotations

from codecs import BOM_UTF8

from streamkernel.connectors.files.bytes import ByteStream
from streamkernel.connectors.files.lines import NOTHING, Chunk, Lines
from streamkernel.connectors.ports import SourceError

REACH = 2**23
_LINES_AHEAD = 256
_CAREFUL_BYTES = 2**16


class Quotes:
    """The quotes of one CSV record, line by line, by the rules of the csv module when it is strict.

    Attributes
    ----------
    open
        Whether the next line continues a quoted field.
    broken
        Whether the lines are no CSV: something follows a closing quote, or a carriage return is outside of quotes.

    Examples
    --------
    >>> quotes = Quotes(",")
    >>> for line in ('1,"a', '2,3', 'b",4'):
    ...     quotes.feed(line)
    ...     print(quotes.open)
    True
    True
    False

    """

    def __init__(self, delimiter: str) -> None:
        self._delimiter = delimiter
        self.open = self.broken = False

    def feed(self, line: str) -> None:
        """Take the next line, without its end."""
        at = 0
        while not self.broken:
            if self.open:
                end = line.find('"', at) + 1
                if not end:
                    return
                if line.startswith('"', end):  # a doubled quote is a quote in the field
                    at = end + 1
                    continue
                self.open, at = False, end
            elif line.startswith('"', at):
                self.open = True
                at += 1
                continue
            else:
                end = line.find(self._delimiter, at)
            if end < 0 or not line.startswith(self._delimiter, end):
                # To the csv module carriage returns at the end of a line belong to the line end.
                rest = line[at:].rstrip("\r")
                self.broken = bool(rest) if end >= 0 else "\r" in rest
                return
            self.broken = "\r" in line[at:end]
            at = end + 1

    def skip(self, n_quotes: int) -> None:
        """Take the rest of a line, by the number of its quotes."""
        if n_quotes % 2:
            self.open = not self.open


class QuotedLines(Lines):
    """The records of a CSV file; lines within one quoted field are joined up to `max_record_bytes`.

    To look for quotes in every line costs as much as to split it. So `take` returns physical lines. The caller splits
    them, and gives them back to `reconsider` from the first one with an open quote.

    Unless `multiline`, a record of several lines is alone in its chunk.
    """

    def __init__(
        self,
        stream: ByteStream,
        max_record_bytes: int,
        delimiter: str,
        encoding: str,
        partition: int = 0,
        *,
        multiline: bool = True,
    ) -> None:
        super().__init__(stream, max_record_bytes, partition)
        self._delimiter = delimiter
        self._encoding = encoding
        self._multiline = multiline
        self.reach = REACH * max(1, max_record_bytes // 2**20)
        # Up to this offset the quotes of each line are looked at.
        self._careful = 0
        # Physical lines of the last block that were taken ahead, and how many of them are used.
        self._ahead = NOTHING
        self._used = 0
        # A settled chunk that was given back.
        self._again: Chunk | None = None
        # The first line of a record with an open quote, the index of the line after it, and the blocks read since.
        self._first: Chunk | None = None
        self._second = 0
        self._blocks: list[bytes] = []
        # Where the second line begins in the first of these blocks; the quotes and the number of the lines so far.
        self._begin = 0
        self._quotes = Quotes(delimiter)
        self._n_lines = 1

    @property
    def done(self) -> bool:
        """Whether nothing will ever follow."""
        return self._first is None and self._again is None and super().done

    @property
    def waits_at(self) -> int | None:
        """The offset of the record with a quote that is not closed yet; None where there is none."""
        return None if self._first is None else self._first.positions[0].offset

    def opens(self, line: bytes) -> bool:
        """Return whether a quoted field is open at the end of a line."""
        return self._quotes_of(line.removeprefix(BOM_UTF8)).open

    def _quotes_of(self, line: bytes) -> Quotes:
        quotes = Quotes(self._delimiter)
        quotes.feed(self._text(line))
        return quotes

    def _text(self, line: bytes) -> str:
        return line.decode(self._encoding, "surrogateescape")

    def reconsider(self, chunk: Chunk, index: int) -> None:
        """Take back the lines of the last chunk from an index on, to look at the quotes of each."""
        if chunk.settled:
            self._again = chunk._replace(lines=chunk.lines[index:], positions=chunk.positions[index:])
            return
        self._careful = max(self._careful, chunk.positions[-1].offset)
        self._next -= len(chunk.lines) - index
        self._start = chunk.positions[index].offset

    def take(self, limit: int, deadline: float) -> Chunk:
        """Return the next records; see `Lines.take`."""
        if self._again is not None:
            chunk, self._again = self._again, None
            return chunk
        if self._first is None and self._start >= self._careful:
            chunk = super().take(limit, deadline)
            if not chunk.too_long or not (chunk.n_quotes_cut or b'"' in chunk.lines[0]):
                return chunk
            self.reconsider(chunk, 0)
        try:
            return self._careful_chunk(limit, deadline)
        finally:
            if unused := len(self._ahead.lines) - self._used:
                self._next -= unused
                self._start = self._ahead.positions[self._used].offset
            self._ahead, self._used = NOTHING, 0

    def _careful_chunk(self, limit: int, deadline: float) -> Chunk:
        """Return the next records, after a look at the quotes of each line."""
        records: list[Chunk] = []
        while len(records) < limit and (not records or records[-1].positions[1].offset < self._careful):
            try:
                # Once there is something to hand out, nothing is worth waiting for.
                record = self._record(0.0 if records else deadline)
            except SourceError:
                if records:
                    # The stream fails again at the next call, once these are handed out.
                    break
                raise
            if record is not None and (record.too_long or (record.n_lines > 1 and not self._multiline)):
                alone = record._replace(settled=True)
                if not records:
                    return alone
                self._again, record = alone, None
            if record is None:
                break
            records.append(record)
        if not records:
            return NOTHING
        positions = [*(record.positions[0] for record in records), records[-1].positions[1]]
        return Chunk([record.lines[0] for record in records], positions, settled=True)

    def _fill(self, deadline: float) -> bool:
        """Read one block, and keep it while a quote is open."""
        found = super()._fill(deadline)
        if found and self._first is not None:
            self._blocks.append(self._block)
        return found

    def _line(self, deadline: float) -> Chunk:
        """Return the next physical line, or none."""
        if self._used == len(self._ahead.lines):
            self._ahead, self._used = super().take(_LINES_AHEAD, deadline), 0
            if not self._ahead.lines:
                return NOTHING
        at, (lines, positions, too_long, n_quotes_cut, *_) = self._used, self._ahead
        self._used += 1
        return Chunk([lines[at]], positions[at : at + 2], too_long, n_quotes_cut)

    def _record(self, deadline: float) -> Chunk | None:
        """Return the next record, one line or several joined; None where it is not there yet."""
        if self._first is None:
            first = self._line(deadline)
            if not first.lines:
                return None
            if b'"' not in first.lines[0] and not first.n_quotes_cut:
                return first
            self._quotes = self._quotes_of(first.lines[0].removeprefix(BOM_UTF8))
            self._quotes.skip(first.n_quotes_cut)
            if self._quotes.broken or not self._quotes.open:
                return first
            self._first, self._n_lines = first, 1
            self._second = self._next - (len(self._ahead.lines) - self._used)
            self._blocks = [self._block]
            self._begin = len(self._block) - (self._block_end - first.positions[1].offset)
        first = self._first
        while True:
            line = self._line(deadline)
            if not line.lines:
                return self._first_alone(first) if super().done else None
            self._n_lines += 1
            self._quotes.feed(self._text(line.lines[0]))
            self._quotes.skip(line.n_quotes_cut)
            length = line.positions[0].offset - first.positions[0].offset + (line.too_long or len(line.lines[0]))
            if self._quotes.broken or length > self.reach:
                return self._first_alone(first)
            if not self._quotes.open:
                return self._joined(first, line, length)

    def _first_alone(self, first: Chunk) -> Chunk:
        """Return the line of a quote without an end; the next line begins a record."""
        self._first, (*_, start) = None, first.positions
        self._ahead, self._used = NOTHING, 0
        if len(self._blocks) == 1:
            self._next, self._start = self._second, start.offset
        else:
            self._restart(start.offset, b"".join([self._blocks[0][self._begin :], *self._blocks[1:], self._unread]))
        return first

    def _joined(self, first: Chunk, last: Chunk, length: int) -> Chunk:
        """Return the lines from the first to the last as one record, cut to the limit."""
        self._first, (start, second) = None, first.positions
        # Such a record is seldom alone in its file.
        self._careful = max(self._careful, second.offset + _CAREFUL_BYTES)
        wanted, (raw,) = min(length, self._limit), first.lines
        line_end = second.offset - start.offset - (first.too_long or len(raw))
        pieces, missing = [raw, b"\r\n"[-line_end:]], wanted - len(raw) - line_end
        begin = self._begin
        for block in self._blocks:
            pieces.append(block[begin : begin + max(0, missing)])
            begin, missing = 0, missing - len(pieces[-1])
        too_long = length if length > self._limit else 0
        return Chunk([b"".join(pieces)[:wanted]], [start, last.positions[1]], too_long, n_lines=self._n_lines)
