"""Decoding rows of CSV, once the names of their columns are known: one by one, or a column of many rows at once."""

from __future__ import annotations

import csv
import math
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

from streamkernel.connectors.bulk import BulkDecoder
from streamkernel.connectors.columns.rules import Column, ColumnRules
from streamkernel.connectors.columns.typed import Missing
from streamkernel.connectors.decode import UndecodableError, decode_inputs, finite_floats, numbers_with_gaps, present
from streamkernel.connectors.files.fields import counted, csv_rows, n_named, split_fields
from streamkernel.connectors.files.header import HEADER_MOVED, HeaderAgain
from streamkernel.connectors.ports import Label
from streamkernel.connectors.target_columns import Target

_MOST_WORDS = 10_000


class CsvRows(BulkDecoder):
    """Decode rows of CSV: what reads as a number is a float, every other field a string.

    The parameters are those of `CsvSource`, with the columns of the header, and those of
    `BulkDecoder`.

    Examples
    --------
    >>> CsvRows(["a", "b", "y"], "y", "bool", ",", "utf-8", 256).decode_one(b"1,red,yes")
    ({'a': 1.0, 'b': 'red'}, True)

    """

    def __init__(
        self,
        columns: Sequence[str],
        target: Target,
        target_type: str,
        delimiter: str,
        encoding: str,
        max_string: int,
        rules: ColumnRules | None = None,
    ) -> None:
        super().__init__(target, target_type, max_string, None if rules is None else rules.in_texts())
        self.delimiter = delimiter
        self.encoding = encoding
        self._header = list(columns)
        self._again = HeaderAgain(columns)
        # Looked for before rows are compared with the header, which costs more.
        self._word = self._again.word.encode()
        # Whether a record was the header, or the header in another order, and whether the quotes of one are not as CSV
        # has them, since somebody set this to False.
        self.header_again = False
        self.header_moved = False
        self.odd_quotes = False
        self._width = len(columns)
        self._target_index = None if self.target is None else columns.index(self.target)
        self._names = [name for name in columns if name != self.target]
        self._columns = [
            self.rules.column(name) if index < n_named(columns) else None
            for index, name in enumerate(columns)
            if name != self.target
        ]
        self._words: set[str] = set()

    def decode_all(self, raws: Sequence[bytes]) -> tuple[list[dict[str, Any]], Sequence[Label | None], Sequence[int]]:
        """Return inputs, targets and the indices left out; see `BulkDecoder.decode_all`."""
        together = b"\n".join(raws)
        if BOM_UTF8 in together:
            raws = list(map(_unmarked, raws))
            together = b"\n".join(raws)
        rows = self._rows(raws, together)
        width = self._width
        odd = []
        again = self._again.has_names if self._word in together.lower() else None
        if again is not None or not {width}.issuperset(map(len, rows)):
            odd = [index for index, row in enumerate(rows) if len(row) != width or (again is not None and again(row))]
            left_out = set(odd)
            rows = [row for index, row in enumerate(rows) if index not in left_out] if odd else rows
        columns = list(zip(*rows, strict=True)) or [()] * width
        targets: Sequence[Label | None] = [None] * len(rows)
        if self._target_index is not None:
            targets = self.targets.decode_all(columns.pop(self._target_index))
        return self._inputs(columns, len(rows), b"_" in together), targets, odd

    def decode_one(self, raw: bytes) -> tuple[dict[str, Any], Label | None] | None:
        """Return inputs and target; see `BulkDecoder.decode_one`."""
        raw = _unmarked(raw)
        try:
            text = raw.decode(self.encoding)
            fields = split_fields(text, self.delimiter)
        except UnicodeDecodeError as error:
            self.odd_quotes = True  # or may be
            raise UndecodableError(
                "encoding", f"byte {raw[error.start]:#04x} at {error.start} is not {self.encoding}"
            ) from None
        except UndecodableError:
            self.odd_quotes = True
            raise
        width = self._width
        if not text or (len(fields) != width and text.isspace() and self.delimiter not in text):
            return None
        if len(fields) != width:
            raise UndecodableError("csv_width", f"{counted(fields)} where the header has {width}")
        if self._again.has_names(fields):
            if not self._again.in_order(fields):
                self.header_moved = True
                raise UndecodableError("csv_width", HEADER_MOVED)
            self.header_again = True
            return None
        y = None if self._target_index is None else self.targets.decode(fields.pop(self._target_index))
        inputs: dict[str, Any] = {}
        for name, column, field in zip(self._names, self._columns, fields, strict=True):
            if column is not None:
                inputs.update(self._read(name, column, field))
        return present(inputs), y

    def fields(self, raw: bytes) -> dict[str, Any]:
        """Return the fields of a row; see `BulkDecoder.fields`."""
        return dict(zip(self._header[: n_named(self._header)], self._split(raw), strict=False))

    def read(self, name: str, value: Any) -> dict[str, Any]:
        """Return the inputs that a field becomes; see `BulkDecoder.read`."""
        column = self.rules.column(name)
        return {} if column is None else present(dict(self._read(name, column, value)))

    def values(self, raw: bytes) -> Mapping[str, str]:
        """Return the fields as texts, by column; see `BulkDecoder.values`."""
        return dict(zip(self._header, self._split(raw), strict=True))

    def _split(self, raw: bytes) -> list[str]:
        return split_fields(_unmarked(raw).decode(self.encoding), self.delimiter)

    def _rows(self, lines: Sequence[bytes], together: bytes) -> list[list[str]]:
        """Split lines into fields; no fields for a line that is blank, not in the encoding or not CSV."""
        texts = self._texts(lines, together)
        if b'"' not in together:
            return [text.split(self.delimiter) if text else [] for text in texts]
        # Within a line that has no quotes a carriage return stands for itself, which the csv module does not grant.
        if b"\r" not in together:
            try:
                rows = list(csv_rows(texts, self.delimiter))
            except csv.Error:
                rows = []
            # An open quote reaches into the next line.
            if len(rows) == len(lines):
                return rows
        return list(map(self._fields_or_none, texts))

    def _fields_or_none(self, text: str) -> list[str]:
        try:
            return split_fields(text, self.delimiter) if text else []
        except UndecodableError:
            return []

    def _texts(self, lines: Sequence[bytes], together: bytes) -> list[str]:
        """Decode lines, which are also given joined by line feeds; nothing for one that cannot be decoded."""
        if self.encoding == "utf-8":
            try:
                texts = together.decode().split("\n")
            except UnicodeDecodeError:
                texts = []
            # A record of several lines comes apart.
            if len(texts) == len(lines):
                return texts
        return [self._text(line) for line in lines]

    def _text(self, line: bytes) -> str:
        try:
            return line.decode(self.encoding)
        except UnicodeDecodeError:
            return ""

    def _inputs(self, columns: Sequence[Sequence[str]], n_rows: int, underscores: bool) -> list[dict[str, Any]]:
        """Decode columns of `n_rows` fields each, in some of which there may be underscores."""
        names: list[str] = []
        values: list[Sequence[Any]] = []
        gaps = False
        for name, column, fields in zip(self._names, self._columns, columns, strict=True):
            if column is None:
                continue
            if column.typed is not None:
                read = column.typed.read_all(fields)
                names += column.typed.outputs
                values += read
                gaps = gaps or any(None in one for one in read)
            else:
                found, may_have_gaps = self._untyped(name, column.missing, fields, underscores)
                names.append(name)
                values.append(found)
                gaps = gaps or (may_have_gaps and None in found)
        rows = zip(*values, strict=True) if values else repeat((), n_rows)
        inputs: list[dict[str, Any]] = list(map(dict, map(zip, repeat(names), rows)))
        return list(map(present, inputs)) if gaps else inputs

    def _untyped(
        self, name: str, missing: Missing | None, fields: Sequence[str], underscores: bool
    ) -> tuple[Sequence[Any], bool]:
        """Decode a column without a type; return it, and whether some of its inputs may be absent, which are None."""
        if missing is not None:
            fields = missing.without_texts(fields)
        # Python reads 1_000 as a number; in a file it is a word.
        exact = not (underscores and any("_" in field for field in fields))
        numbers = finite_floats(fields) if exact else None
        found = self._column(name, fields, exact) if numbers is None else numbers
        if missing is not None:
            return missing.without_numbers(found), True
        return found, numbers is None

    def _read(self, name: str, column: Column, field: str) -> Iterator[tuple[str, Any]]:
        """Yield the inputs that a field becomes, None where they are missing."""
        if column.typed is not None:
            yield from zip(column.typed.outputs, column.typed.read(field), strict=True)
        elif column.missing is None:
            yield name, self._value(name, field)
        else:
            (value,) = column.missing.without_texts([field])
            yield name, column.missing.without_numbers([self._value(name, value)])[0]

    def _column(self, name: str, fields: Sequence[str], exact: bool) -> Sequence[Any]:
        """Decode a column that is not all finite numbers; None is an absent input."""
        if self._words.issuperset(fields):
            return fields
        numbers = numbers_with_gaps(fields) if exact else None
        if numbers is not None:
            return numbers
        values = {field: self._value(name, field) for field in set(fields)}
        return [values[field] for field in fields]

    def _value(self, name: str, field: str) -> str | float | None:
        """Decode a field; None where it is empty or says nan."""
        words = self._words
        if field in words:
            return field
        value: str | float = field
        if "_" not in field:
            try:
                value = float(field)
            except ValueError:
                pass
            else:
                if math.isfinite(value):
                    return value
        decoded = decode_inputs([(name, value)], self.max_string).get(name)
        # Failing to read a number costs more than all the rest, and words that come once often come again.
        if decoded is field and len(words) < _MOST_WORDS:
            words.add(field)
        return decoded


def _unmarked(raw: bytes) -> bytes:
    """Return a record without the byte order mark that stands before it where files were put together."""
    return raw.removeprefix(BOM_UTF8)
