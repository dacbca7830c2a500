"""Decoding rows of CSV, once the names of their columns are known."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any

from connectors.bulk import BulkDecoder
from connectors.decode import UndecodableError
from connectors.files.columns import CsvInputs
from connectors.ports import Label


class CsvRows(BulkDecoder):
    """Decode rows of CSV; the parameters are those of `connectors.files.csv.CsvSource`, with the header's columns."""

    def __init__(
        self,
        columns: Sequence[str],
        target: str | None,
        target_type: str,
        delimiter: str,
        encoding: str,
        max_string: int,
    ) -> None:
        super().__init__(target, target_type, max_string)
        self.delimiter = delimiter
        self.encoding = encoding
        self._width = len(columns)
        self._target_index = None if target is None else columns.index(target)
        self._inputs = CsvInputs([name for name in columns if name != target], max_string)

    def parse(self, raws: Sequence[bytes]) -> tuple[list[list[str]], list[int]]:
        """Split records into fields; see `BulkDecoder.parse`."""
        rows = self._rows(raws)
        width = self._width
        odd = []
        if not {width}.issuperset(map(len, rows)):
            odd = [index for index, row in enumerate(rows) if len(row) != width]
            rows = [row for row in rows if len(row) == width]
        return rows, odd

    def decode_all(
        self, parsed: list[list[str]], raws: Sequence[bytes]
    ) -> tuple[list[dict[str, Any]], Sequence[Label | None]]:
        """Return inputs and targets; see `BulkDecoder.decode_all`."""
        columns = list(zip(*parsed, strict=True)) or [()] * self._width
        targets: Sequence[Label | None] = [None] * len(parsed)
        if self._target_index is not None:
            targets = self.targets.decode_all(columns.pop(self._target_index))
        return self._inputs.records(columns, len(parsed), b"_" in b"".join(raws)), targets

    def decode_one(self, raw: bytes) -> tuple[dict[str, Any], Label | None] | None:
        """Return inputs and target; see `BulkDecoder.decode_one`."""
        try:
            text = raw.decode(self.encoding)
        except UnicodeDecodeError as error:
            raise UndecodableError(
                "encoding", f"byte {raw[error.start]:#04x} at {error.start} is not {self.encoding}"
            ) from None
        fields = split_fields(text, self.delimiter)
        width = self._width
        if not text or (len(fields) != width and text.isspace() and self.delimiter not in text):
            return None
        if len(fields) != width:
            raise UndecodableError("csv_width", f"{len(fields)} fields where the header has {width}")
        y = None if self._target_index is None else self.targets.decode(fields.pop(self._target_index))
        return self._inputs.record(fields), y

    def _rows(self, lines: Sequence[bytes]) -> list[list[str]]:
        """Split lines into fields; no fields for a line that is blank, not in the encoding or not CSV."""
        together = b"\n".join(lines)
        texts = self._texts(lines, together)
        if b'"' not in together:
            return [text.split(self.delimiter) if text else [] for text in texts]
        # Within a line that has no quotes a carriage return stands for itself, which the csv module does not grant.
        if b"\r" not in together:
            try:
                rows = list(csv.reader(texts, delimiter=self.delimiter, strict=True))
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


def split_fields(text: str, delimiter: str) -> list[str]:
    """Split a record as the rules of quoting say; raise UndecodableError where its quotes are not as CSV has them.

    Examples
    --------
    >>> split_fields('1,"a, b",', ",")
    ['1', 'a, b', '']

    """
    if '"' not in text:
        return text.split(delimiter)
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise UndecodableError("csv_width", f"the quotes are not as CSV has them: {error}") from None
