"""Decodes the messages of a partition to records: their values, and on wish keys, headers and times."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from streamkernel.compute.record_batches import OFFSET, VALUE_LENGTH
from streamkernel.connectors.bulk import too_long_record
from streamkernel.connectors.columns.uses import type_of
from streamkernel.connectors.decode import UndecodableError, shown
from streamkernel.connectors.kafka.base.messages import Columns, Message
from streamkernel.connectors.kafka.reading.buffers import PartitionBatch
from streamkernel.connectors.objects import JsonObjects
from streamkernel.connectors.pass_through import Passed, SourceMessage
from streamkernel.connectors.pass_through_reader import PassThrough
from streamkernel.connectors.ports import ColumnUse, Fault, Offsets, Position, Raws, Record, with_passed

__all__ = ["Include", "MessageDecoder"]

Include: TypeAlias = Literal["key", "headers", "timestamp"]

# No text has these, and the bytes of a number often do.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class MessageDecoder:
    """Decodes messages whose values are JSON objects, or what a schema registry has the schema of.

    Parameters
    ----------
    decoder
        For the values.
    max_record_bytes
        The longest value, in bytes; a longer one is a fault.
    include
        What becomes inputs in addition to the fields of the value: the key as ``kafka.key``, the headers as
        ``kafka.header.NAME`` (the last of a name), both as `as_text` has them, and the time of the message as
        ``kafka.timestamp`` (seconds since 1970). A field of such a name in the value itself wins.

    Attributes
    ----------
    passing
        Reads what passes of a record, by the same names; all headers together are ``kafka.headers``. None: nothing
        passes.

    """

    def __init__(self, decoder: JsonObjects, max_record_bytes: int, include: Collection[Include] = ()) -> None:
        self._decoder = decoder
        self._max_record_bytes = max_record_bytes
        self._include = frozenset(include)
        self.passing: PassThrough | None = None

    def ready(self, batch: PartitionBatch) -> int:
        """Return how many of the first messages of a batch can be decoded for now.

        Raises
        ------
        ConnectorError
            Where the first one never can.

        """
        return batch.size if batch.messages is None else self._decoder.ready(batch.messages.raws)

    def knows(self, value: bytes) -> bool:
        """Return whether a value alone can be decoded for now; raises as `ready`."""
        return self._decoder.ready([value]) == 1

    def records(self, stream: str, batch: PartitionBatch) -> Sequence[Record]:
        """Return a record for each message of a stream, or for each offset where none could be read."""
        if batch.messages is None:
            fault = Fault("corrupt", f"the message cannot be read: {batch.reason}")
            places = Offsets(stream, batch.partition, np.arange(batch.first, batch.end + 1))
            return [Record({}, None, place, following, b"", fault) for place, following in pairwise(places)]
        messages = batch.messages
        offsets = messages.columns[OFFSET]
        starts = Offsets(stream, batch.partition, offsets)
        ends = Offsets(stream, batch.partition, offsets + 1)
        sizes = messages.columns[VALUE_LENGTH]
        if sizes.min() < 0 or sizes.max() > self._max_record_bytes:
            records: Sequence[Record] = self._unequal(messages.raws, sizes, starts, ends)
        else:
            records = self._decoder.records(messages.raws, starts, ends)
        if self._include:
            records = list(map(self._with_extras, records, messages))
        if (passing := self.passing) is not None:
            sources = list(messages.sources()) if passing.message else [None] * len(messages)
            if passing.columns:
                given = list(messages)
                records = with_passed(records, lambda n: self._passed(passing, given[n], sources[n]))
            else:  # by far the most frequent case: the values need not be read once more
                records = with_passed(records, lambda n: Passed({}, sources[n]))
        return records

    def record(self, value: bytes, position: Position, following: Position) -> Record:
        """Return the record of a value alone, without key, headers or timestamp."""
        if len(value) > self._max_record_bytes:
            return self._odd(value, position, following)
        record = self._decoder.record(value, position, following)
        passing, values = self.passing, self._decoder.values
        return record if passing is None else with_passed([record], lambda _: passing(values(value)))[0]

    def columns(self, record: Record) -> list[ColumnUse]:
        """Return what becomes of each column of a record that can be used, with what came in addition to its value."""
        uses = [use for use in self._decoder.columns(record.raw) if not use.name.startswith("kafka.")]
        beside = [name for name in record.x if name.startswith("kafka.")]
        return uses + [ColumnUse(name, shown(record.x[name]), type_of(record.x[name]), "input") for name in beside]

    def _unequal(self, raws: Raws, sizes: Columns, starts: Offsets, ends: Offsets) -> list[Record]:
        """Decode where some of the messages have no value, or one that is too long."""
        plain = (sizes >= 0) & (sizes <= self._max_record_bytes)
        rest = iter(self._decoder.records(raws[plain], starts[plain], ends[plain]))
        return [
            next(rest) if good else self._odd(None if size < 0 else raw, start, end)
            for good, size, raw, start, end in zip(plain, sizes, raws, starts, ends, strict=True)
        ]

    def _odd(self, value: bytes | None, start: Position, end: Position) -> Record:
        if value is None:
            return Record({}, None, start, end, b"", blank=True)
        return too_long_record(value, len(value), self._max_record_bytes, start, end)

    def _with_extras(self, record: Record, message: Message) -> Record:
        if record.fault is not None or record.blank:
            return record
        try:
            extras = self._decoder.extras(self._extras(message))
        except UndecodableError as error:
            return record._replace(x={}, y=None, fault=error.fault)
        for name in self._decoder.target_names:  # a target is never an input
            extras.pop(name, None)
        return record._replace(x=extras | record.x)

    def _passed(self, passing: PassThrough, message: Message, source: SourceMessage | None) -> Passed:
        about: dict[str, Any] = {
            f"kafka.header.{name}": as_text(value) for name, value in message.headers if value is not None
        }
        about["kafka.headers"] = {name: None if value is None else as_text(value) for name, value in message.headers}
        about["kafka.key"] = None if message.key is None else as_text(message.key)
        about["kafka.timestamp"] = message.timestamp / 1000 if message.timestamp >= 0 else None
        return passing({**about, **self._decoder.values(message.value or b"")}, source)

    def _extras(self, message: Message) -> Iterator[tuple[str, Any]]:
        if "key" in self._include and message.key is not None:
            yield "kafka.key", as_text(message.key)
        if "timestamp" in self._include and message.timestamp >= 0:
            yield "kafka.timestamp", message.timestamp / 1000
        if "headers" in self._include:
            for name, value in message.headers:
                if value is not None:
                    yield f"kafka.header.{name}", as_text(value)


def as_text(data: bytes) -> str:
    """Return the bytes of a key or a header as text, in base64 where they are not text.

    Examples
    --------
    >>> as_text("Zoë".encode()), as_text(bytes.fromhex("ff00")), as_text((7).to_bytes(8, "big"))
    ('Zoë', '/wA=', 'AAAAAAAAAAc=')

    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    return base64.b64encode(data).decode() if _CONTROL.search(text) else text
