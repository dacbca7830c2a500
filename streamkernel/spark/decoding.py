"""Rows of Kafka and of files as a daemon's source decodes them, in the place where they are."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from streamkernel.batch.chunk import BatchChunk
from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.settings import InputSettings
from streamkernel.connectors.files.fields import n_lines_of_record
from streamkernel.connectors.files.header import HEADER_MOVED
from streamkernel.connectors.files.rows import CsvRows
from streamkernel.connectors.kafka.base.messages import Message, Messages
from streamkernel.connectors.kafka.reading.buffers import PartitionBatch
from streamkernel.connectors.kafka.reading.message_decoder import Include, MessageDecoder
from streamkernel.connectors.objects import JsonObjects
from streamkernel.connectors.ports import Fault, Position, Record
from streamkernel.records.frames import RecordFrame
from streamkernel.spark.partials import SourceChunk, ends_of

__all__ = ["CsvChunks", "JsonlChunks", "KafkaChunks", "RecordSettings"]


@dataclass(frozen=True)
class RecordSettings:
    """How records are decoded, from the sections `source` and `limits` of a configuration.

    Attributes
    ----------
    target, target_type
        The name of the target, or None, and its type.
    inputs
        Which columns are inputs, and how they are read; None: all, unchanged.
    max_string, max_record_bytes
        The longest string, in characters, and the longest record, in bytes.
    unsupervised
        Whether a model learns records without a target.

    """

    target: str | None
    target_type: str
    inputs: InputSettings | None
    max_string: int
    max_record_bytes: int
    unsupervised: bool

    @property
    def rules(self) -> ColumnRules | None:
        """How columns are read; None: unchanged."""
        return None if self.inputs is None else ColumnRules(self.inputs, self.max_string)

    def objects(self) -> JsonObjects:
        """Return the decoder of JSON objects."""
        return JsonObjects(self.target, self.target_type, self.max_string, self.rules)

    def chunk(self, records: Sequence[Record]) -> SourceChunk:
        """Return the chunk of decoded records."""
        usable = [record for record in records if record.fault is None and not record.blank]
        dead = tuple(record._replace(x={}, y=None) for record in records if record.fault is not None)
        ys = [True] * len(usable) if self.unsupervised else [record.y for record in usable]
        chunk = BatchChunk(RecordFrame([record.x for record in usable]), ys, None)
        n_skipped = len(records) - len(usable) - len(dead)
        return SourceChunk(chunk, usable, dead, n_skipped, ends_of(record.next for record in records))

    def lines(self, decoder: Any, path: str, raws: Sequence[bytes]) -> SourceChunk:
        """Return the chunk of lines of a file, all at one place: Spark knows no other."""
        place, most = Position(path, 0, 0), self.max_record_bytes
        fits = [raw for raw in raws if len(raw) <= most]
        records = list(decoder.records(fits, [place] * len(fits), [place] * len(fits)))
        for raw in raws:
            if len(raw) > most:
                fault = Fault("too_long", f"{len(raw):,} bytes, more than max_record_bytes ({most:,})")
                records.append(Record({}, None, place, place, raw[:most], fault))
        return replace(self.chunk(records), ends={})


class KafkaChunks:
    """Makes chunks of the messages of a topic.

    Parameters
    ----------
    settings
        How they are decoded.
    stream
        The identity of the topic, which their positions name.
    positions
        By partition, the offset before which all was learned.
    include
        What of a message becomes inputs in addition to its value.

    """

    def __init__(
        self, settings: RecordSettings, stream: str, positions: Mapping[int, int], include: Sequence[Include]
    ) -> None:
        self._settings = settings
        self._stream = stream
        self._positions = dict(positions)
        self._include = tuple(include)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[SourceChunk]:
        decoder = MessageDecoder(self._settings.objects(), self._settings.max_record_bytes, self._include)
        for batch in batches:
            found: dict[int, list[Message]] = {}
            for row in batch.to_pylist():
                if row["offset"] >= self._positions.get(row["partition"], 0):
                    found.setdefault(row["partition"], []).append(_message(row))
            for partition, messages in found.items():
                messages.sort(key=lambda message: message.offset)
                records = list(decoder.records(self._stream, PartitionBatch.of(partition, Messages.of(messages))))
                yield self._settings.chunk(records)


def _message(row: Mapping[str, Any]) -> Message:
    headers = [(one["key"], one["value"]) for one in row.get("headers") or ()]
    return Message(row["offset"], row.get("millis", -1), row.get("key"), row["value"], headers)


class JsonlChunks:
    """Makes chunks of lines that are JSON objects; positions name their file, and no place in it."""

    def __init__(self, settings: RecordSettings) -> None:
        self._settings = settings

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[SourceChunk]:
        decoder = self._settings.objects()
        for batch in batches:
            for (path, _), lines in _by_file(batch).items():
                yield self._settings.lines(decoder, path, lines)


class CsvChunks:
    """Makes chunks of lines of CSV files whose first line names the columns.

    Parameters
    ----------
    settings
        How they are decoded.
    header
        The first line, which each file has: with another one, the columns of its later parts would not be known.
    columns, delimiter
        The names of the columns, and what separates fields.

    """

    def __init__(self, settings: RecordSettings, header: bytes, columns: Sequence[str], delimiter: str) -> None:
        self._settings = settings
        self._header = header
        self._columns = list(columns)
        self._delimiter = delimiter

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[SourceChunk]:
        settings = self._settings
        target = settings.target if settings.target in self._columns else None
        decoder = CsvRows(
            self._columns, target, settings.target_type, self._delimiter, "utf-8", settings.max_string, settings.rules
        )
        seen: set[str] = set()
        for batch in batches:
            for (path, start), lines in _by_file(batch).items():
                # Of a file that Spark parts, only the first part has the header.
                if path not in seen and start == 0:
                    first = lines[0].removeprefix(BOM_UTF8)
                    if first != self._header:
                        raise ValueError(
                            f"{path}: its first line is {_shown(first)}, and the first file has "
                            f"{_shown(self._header)}: all files of a Spark job need the same header. Fix the file, or "
                            "remove it"
                        )
                    lines = lines[1:]
                    seen.add(path)
                if (broken := _line_break(lines, self._delimiter, settings.max_record_bytes)) is not None:
                    raise ValueError(
                        f"{path}: a quoted field continues after the line {_shown(broken)}, and Spark splits files at "
                        "line ends: write each record in one line, fix the quote, or learn the file with streamkernel "
                        "run and source.multiline: true"
                    )
                chunk = settings.lines(decoder, path, lines)
                if decoder.header_moved:
                    raise ValueError(f"{path}: {HEADER_MOVED}: split the file there, fix it, or remove it")
                yield chunk


def _line_break(lines: Sequence[bytes], delimiter: str, most: int) -> bytes | None:
    """Return a line that ends inside a quoted field; None where there is none.

    A quote that is never closed costs only its line. A later line shows this: with it, the field would not be CSV, or
    the record longer than `most` bytes.
    """
    for number, line in enumerate(lines):
        if line.count(b'"') % 2 == 0:
            continue
        n_lines = n_lines_of_record((one.decode("utf-8", "replace") for one in lines[number:]), delimiter)
        size = sum(len(one) + 1 for one in lines[number : number + n_lines if n_lines else None])
        if n_lines != 1 and size <= most:
            return line
    return None


def _shown(line: bytes) -> str:
    return line[:80].decode("utf-8", "replace")


def _by_file(batch: pa.RecordBatch) -> dict[tuple[str, int], list[bytes]]:
    """The lines of each part of a file, by its path and where it begins."""
    found: dict[tuple[str, int], list[bytes]] = {}
    for row in batch.to_pylist():
        found.setdefault((row["path"], row["start"]), []).append(row["value"].removesuffix(b"\r"))
    return found
