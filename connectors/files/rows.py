"""Decoding rows of CSV, once the names of their columns are known: one by one, or a column of many rows at once."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from streamkernel.connectors.bulk import BulkDecoder
from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.scanner import ColumnScanner
from streamkernel.connectors.columns.settings import InputSettings
from streamkernel.connectors.decode import UndecodableError, present
from streamkernel.connectors.files.fields import counted, n_named, split_fields
from streamkernel.connectors.files.header import HEADER_MOVED, HeaderAgain
from streamkernel.connectors.files.row_scanner import CsvScanner
from streamkernel.connectors.ports import Label
from streamkernel.connectors.target_columns import Target


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
        super().__init__(
            target, target_type, max_string, (rules or ColumnRules(InputSettings(), max_string)).in_texts()
        )
        self.delimiter = delimiter
        self.encoding = encoding
        self._header = list(columns)
        self._again = HeaderAgain(columns)
        # Looked for before rows are compared with the header, which costs more.
        self._word = self._again.word.encode()
        # Whether a record was the header, or the header in another order, since somebody set this to False.
        self.header_again = False
        self.header_moved = False
        self._width = len(columns)
        self._target_index = None if self.target is None else columns.index(self.target)
        self._readers = [
            self.rules.column(name) if index < n_named(columns) else None
            for index, name in enumerate(columns)
            if name != self.target
        ]

    @cached_property
    def scanner(self) -> ColumnScanner | None:
        given = self.target, self.target_type, self.delimiter, self.encoding, self.max_string
        return CsvScanner(self._header, *given, self.rules)

    def decode_one(self, raw: bytes) -> tuple[dict[str, Any], Label | None] | None:
        """Return inputs and target; see `BulkDecoder.decode_one`."""
        raw = _unmarked(raw)
        try:
            text = raw.decode(self.encoding)
            fields = split_fields(text, self.delimiter)
        except UnicodeDecodeError as error:
            raise UndecodableError(
                "encoding", f"byte {raw[error.start]:#04x} at {error.start} is not {self.encoding}"
            ) from None
        width = self._width
        if not text or (len(fields) != width and text.isspace() and self.delimiter not in text):
            return None
        if len(fields) != width:
            raise UndecodableError("csv_width", f"{counted(fields)} where the header has {width}")
        if self._word in raw.lower() and self._again.has_names(fields):
            if not self._again.in_order(fields):
                self.header_moved = True
                raise UndecodableError("csv_width", HEADER_MOVED)
            self.header_again = True
            return None
        y = None if self._target_index is None else self.targets.decode(fields.pop(self._target_index))
        inputs: dict[str, Any] = {}
        for reader, field in zip(self._readers, fields, strict=True):
            if reader is not None:
                reader.put(field, inputs)
        return present(inputs), y

    def fields(self, raw: bytes) -> dict[str, Any]:
        """Return the fields of a row; see `BulkDecoder.fields`."""
        return dict(zip(self._header[: n_named(self._header)], self._split(raw), strict=False))

    def read(self, name: str, value: Any) -> dict[str, Any]:
        """Return the inputs that a field becomes; see `BulkDecoder.read`."""
        reader = self.rules.column(name)
        return {} if reader is None else present(dict(zip(reader.outputs, reader.read(value), strict=True)))

    def values(self, raw: bytes) -> Mapping[str, str]:
        """Return the fields as texts, by column; see `BulkDecoder.values`."""
        return dict(zip(self._header, self._split(raw), strict=True))

    def _split(self, raw: bytes) -> list[str]:
        return split_fields(_unmarked(raw).decode(self.encoding), self.delimiter)


def _unmarked(raw: bytes) -> bytes:
    """Return a record without the byte order mark before it where files were put together."""
    return raw.removeprefix(BOM_UTF8)
