"""The first records of a file, and how it is written: format, encoding, delimiter, line ends in quotes."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from streamkernel.connectors.files.bytes import open_file
from streamkernel.connectors.files.fields import counted, csv_rows, n_named
from streamkernel.connectors.names import nfc, with_normal_names
from streamkernel.connectors.ports import SourceError
from streamkernel.daemon.base.errors import DaemonError

__all__ = ["Sample", "SampleError", "read_sample"]

_MOST_BYTES = 2**20
_MOST_RECORDS = 1000
_NUMBER = r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*"
_DELIMITERS = ",;\t|"
_PARQUET_TO_CSV = (
    "import sys, pyarrow.csv as c, pyarrow.parquet as p; c.write_csv(p.read_table(sys.argv[1]), sys.argv[2])"
)
# By how a file begins, what it is and what to do.
_OTHERS = {
    b"\xff\xfe": "is UTF-16: convert it, for example with iconv -f utf-16 -t utf-8",
    b"\xfe\xff": "is UTF-16: convert it, for example with iconv -f utf-16 -t utf-8",
    b"PAR1": "is Parquet, which no source reads: pip install 'streamkernel[parquet]', convert it to CSV, "
    "and init that: {parquet}",
}


class SampleError(DaemonError):
    """A file that no configuration can be made for; the message says why and what to do."""


@dataclass(frozen=True)
class Sample:
    """The first records of a file.

    Attributes
    ----------
    path
        The file.
    kind
        The format of the file: CSV or JSON lines.
    records
        Its first records as they are there, at most 1,000: the fields of CSV are texts.
    columns
        The names of its columns or keys, in order.
    encoding, delimiter, multiline
        How CSV is written.
    doubled
        The names that several columns of CSV have, which are in neither `records` nor `columns`.

    """

    path: Path
    kind: Literal["csv", "jsonl"]
    records: Sequence[Mapping[str, Any]]
    columns: Sequence[str]
    encoding: str = "utf-8"
    delimiter: str = ","
    multiline: bool = False
    doubled: Sequence[str] = ()


def read_sample(path: Path) -> Sample:
    """Read the first records of a file, compressed where it ends in .gz or .zst.

    Raises
    ------
    SampleError
        Where it cannot be read, or holds neither CSV with a header nor JSON lines.

    """
    data = _first_bytes(path)
    for start, why in _OTHERS.items():
        if data.startswith(start):
            command = shlex.join(["python", "-c", _PARQUET_TO_CSV, str(path), f"{path}.csv"])
            raise SampleError(f"{path}: {why.format(parquet=command)}")
    if b"\0" in data:
        raise SampleError(f"{path}: is not text: init reads CSV and JSON lines")
    # Where files were put together, marks are inside, too.
    text, encoding = _decoded(data.removeprefix(BOM_UTF8).replace(b"\n" + BOM_UTF8, b"\n"))
    if not text.strip():
        raise SampleError(f"{path}: is empty: init needs its first lines")
    first = text.lstrip()[0]
    if first == "[":
        raise SampleError(f"{path}: holds a JSON array: write one object a line, for example with jq -c '.[]'")
    if first == "{":
        return _json_lines(path, text, encoding)
    try:
        return _csv(path, text, encoding)
    except csv.Error as error:
        raise SampleError(f"{path}: cannot be read as CSV: {error}") from None


def _first_bytes(path: Path) -> bytes:
    """Return the first bytes of a file, up to the end of a line where there is more."""
    try:
        with closing(open_file(path)) as file:
            data = file.read_at(0, _MOST_BYTES + 1)
    except SourceError as error:
        raise SampleError(str(error)) from None
    if len(data) > _MOST_BYTES:
        return data[: data.rfind(b"\n", 0, _MOST_BYTES) + 1 or _MOST_BYTES]
    return data


def _decoded(data: bytes) -> tuple[str, str]:
    """Return the text of bytes, and its encoding."""
    for encoding in ("utf-8", "cp1252"):
        with suppress(UnicodeDecodeError):
            return data.decode(encoding), encoding
    return data.decode("latin-1"), "latin-1"


def _json_lines(path: Path, text: str, encoding: str) -> Sample:
    if encoding != "utf-8":
        raise SampleError(
            f"{path}: is not UTF-8, as JSON lines must be: convert it, for example with iconv -f latin1 -t utf-8"
        )
    records: list[dict[str, Any]] = []
    for line in text.split("\n"):  # a text in JSON may hold what else Python takes for a line end
        try:
            record = json.loads(line)
            json.dumps(record, ensure_ascii=False).encode()  # half of a character makes a dead letter
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict) and len(records) < _MOST_RECORDS:
            records.append(with_normal_names(record))
    if not records:
        raise SampleError(
            f"{path}: no line of its beginning is a JSON object: write one a line, for example with jq -c ."
        )
    columns = list(dict.fromkeys(name for record in records for name in record))
    return Sample(path, "jsonl", records, columns)


def _csv(path: Path, text: str, encoding: str) -> Sample:
    if "\r" in text and "\n" not in text:
        raise SampleError(
            f"{path}: ends its lines in carriage returns alone: convert it, for example with tr '\\r' '\\n'"
        )
    delimiter = _delimiter(text)
    rows = [row for row in _rows(text, delimiter) if row]
    multiline = any("\n" in field for row in rows for field in row)
    header = list(map(nfc, rows[0]))
    doubled = _check_header(path, header)
    columns = {name: index for index, name in enumerate(header[: n_named(header)]) if name not in doubled}
    # Where files were put together, the header comes again.
    whole = [row for row in rows[1 : _MOST_RECORDS + 1] if len(row) == len(header) and row != rows[0]]
    records = [{name: row[index] for name, index in columns.items()} for row in whole]
    if not records:
        raise SampleError(f"{path}: {_why_no_record(rows)}")
    return Sample(path, "csv", records, list(columns), encoding, delimiter, multiline, doubled)


def _why_no_record(rows: Sequence[Sequence[str]]) -> str:
    """Say why no row has the fields of the first one."""
    widths = Counter(map(len, rows[1:]))
    if not widths:
        return f"no line after the header has its {len(rows[0])} fields: init needs some records"
    return (
        f"its first line has {counted(rows[0])} and most others have {widths.most_common(1)[0][0]}: "
        "remove the lines above the column names, or write all column names there"
    )


def _delimiter(text: str) -> str:
    """Return the character that cuts the most rows into as many fields as the header, two at least."""
    scores = {}
    for delimiter in _DELIMITERS:
        widths = Counter(len(row) for row in _rows(text, delimiter) if row)
        width = len(next(iter(_rows(text, delimiter)), []))
        scores[delimiter] = (widths[width] / widths.total(), width) if width > 1 else (0.0, 0)
    return max(scores, key=lambda one: scores[one])  # the first of those that are as good


def _rows(text: str, delimiter: str) -> Iterable[list[str]]:
    return csv_rows(io.StringIO(text, newline=""), delimiter, strict=False)


def _check_header(path: Path, header: Sequence[str]) -> list[str]:
    """Return the names that several columns have."""
    named = header[: n_named(header)]
    if all(re.fullmatch(_NUMBER, one) for one in named):
        raise SampleError(f"{path}: its first line has numbers instead of column names: add the names")
    doubled = [name for name, times in Counter(named).items() if times > 1]
    if len(doubled) == len(set(named)):
        raise SampleError(f"{path}: column names must differ, the header repeats {doubled[0]!r}: rename one")
    return doubled
