"""Reads dead letters from a file, as the daemon wrote them and as somebody mended them."""

from __future__ import annotations

import base64
import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from streamkernel.connectors.files.bytes import File, open_file
from streamkernel.connectors.files.fields import csv_rows
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.run_state.replayed import LetterPlace

__all__ = ["DeadLetter", "LetterError", "read_letters"]

# A record may be written with six characters a byte, and has some words about it.
_CHARACTERS, _ABOUT_BYTES = 6, 2**16

_Whole = Annotated[int, Field(ge=0, lt=2**63)]


class LetterError(DaemonError):
    """A line that is no dead letter; the message says which, why and what to do."""


class DeadLetter(NamedTuple):
    """A dead letter as it is in a file.

    Attributes
    ----------
    line
        Its line there, the first being 1.
    place
        Where its record is.
    reason, detail
        Why the record could not be used when the letter was written.
    raw
        The record, mended or not.
    cut_at
        How many bytes of the record were kept, if it was cut.

    """

    line: int
    place: LetterPlace
    reason: str
    detail: str
    raw: bytes
    cut_at: int | None


class _PositionLine(BaseModel):
    model_config = ConfigDict(strict=True)
    partition: _Whole
    offset: _Whole
    source: Literal["labels", "warm_start"] | None = None


class _LetterLine(BaseModel):
    model_config = ConfigDict(strict=True)
    position: _PositionLine
    raw: str
    encoding: str = "utf-8"
    reason: str = ""
    detail: str = ""
    cut_at: _Whole | None = None


def read_letters(
    path: Path, max_record_bytes: int, offsets_repeat: Callable[[str], bool] = lambda _: False
) -> Iterator[DeadLetter]:
    """Yield the dead letters of a file of JSON lines or CSV, compressed where its name ends in .gz or .zst.

    Parameters
    ----------
    path
        The file.
    max_record_bytes
        The longest record.
    offsets_repeat
        Whether letters of a source that have the same offset are of different records, as of a followed file that is
        rotated: their order distinguishes them. Called with ``"records"`` or ``"labels"``; by default, none are.

    Raises
    ------
    SourceError
        Where the file cannot be read.
    LetterError
        At the first line that is no dead letter.

    """
    seen: Counter[tuple[str, int, int]] = Counter()
    for line, values in _objects(path, _CHARACTERS * max_record_bytes + _ABOUT_BYTES):
        try:
            written = _LetterLine.model_validate(values)
            raw = _raw(written)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise _no_letter(path, line, f"{where}: {first['msg']}") from None
        except (LookupError, ValueError) as error:
            raise _no_letter(path, line, f"raw: {error!s:.200}") from None
        position = written.position
        if position.source == "warm_start":
            raise DaemonError(
                f"{path}, line {line}: a letter of the warm start cannot be replayed: remove such lines, and append "
                "the fixed records to the main source"
            )
        where_from: Literal["records", "labels"] = position.source or "records"
        repeat = 0
        if offsets_repeat(where_from):
            repeat = seen[where_from, position.partition, position.offset]
            seen[where_from, position.partition, position.offset] += 1
        place = LetterPlace(where_from, position.partition, repeat, position.offset)
        # A source keeps only the beginning of a record that is too long.
        cut_at = max_record_bytes if written.reason == "too_long" and written.cut_at is None else written.cut_at
        yield DeadLetter(line, place, written.reason, written.detail, raw, cut_at)


def _raw(written: _LetterLine) -> bytes:
    if written.encoding == "base64":
        return base64.b64decode(written.raw, validate=True)
    return written.raw.encode(written.encoding)


def _no_letter(path: Path, line: int, why: str) -> LetterError:
    return LetterError(
        f"{path}, line {line}: is not a dead letter: {why}: fix the line or remove it. Nothing was replayed"
    )


def _objects(path: Path, longest: int) -> Iterator[tuple[int, Any]]:
    """Yield the number and the values of each line that is not blank."""
    texts = _texts(path, longest)
    first = next(texts, None)
    if first is None:
        return
    if not first.lstrip().startswith("{"):
        yield from _csv_objects(path, chain([first], texts))
        return
    for line, text in enumerate(chain([first], texts), start=1):
        if not text.strip():
            continue
        try:
            yield line, json.loads(text.removeprefix("\ufeff"))
        except (ValueError, RecursionError) as error:
            raise _no_letter(path, line, f"not JSON: {error!s:.100}") from None


def _csv_objects(path: Path, texts: Iterator[str]) -> Iterator[tuple[int, Any]]:
    rows = csv_rows(texts)
    try:
        names = next(rows)
        if not {"position", "raw"} <= set(names):
            raise _no_letter(path, 1, "neither a JSON object nor a header of CSV with the columns position and raw")
        for row in filter(None, rows):
            values: dict[str, Any] = dict(zip(names, row, strict=False))
            values["position"] = json.loads(values.get("position", ""))
            yield rows.line_num, values
    except (csv.Error, ValueError, RecursionError) as error:
        raise _no_letter(path, rows.line_num, f"{error!s:.100}") from None


def _texts(path: Path, longest: int) -> Iterator[str]:
    """Yield the lines of a file with their ends."""
    file = open_file(path)
    try:
        for line, data in enumerate(_lines(file, longest), start=1):
            if len(data) > longest:
                raise _no_letter(path, line, f"longer than {longest:,} bytes: raise limits.max_record_bytes")
            try:
                yield data.decode("utf-8-sig" if line == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise _no_letter(path, line, f"byte {error.start} is not UTF-8") from None
    finally:
        file.close()


def _lines(file: File, longest: int) -> Iterator[bytes]:
    """Yield lines with their ends; the last one is as much as was read where it is longer than that."""
    rest, offset = bytearray(), 0
    while len(rest) <= longest and (block := file.read(offset)):
        offset += len(block)
        *lines, last = block.split(b"\n")
        for line in lines:
            yield bytes(rest) + line + b"\n"
            rest.clear()
        rest += last
    if rest:
        yield bytes(rest)
