"""Decoding of raw records: many at once, which is several times faster, and odd ones one at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.scanner import ColumnScanner, ScannedRows
from streamkernel.connectors.columns.settings import InputSettings
from streamkernel.connectors.columns.uses import input_uses, target_use
from streamkernel.connectors.decode import TargetDecoder, UndecodableError
from streamkernel.connectors.names import take
from streamkernel.connectors.pass_through_reader import PassThrough
from streamkernel.connectors.ports import (
    CodedColumn,
    ColumnUse,
    Fault,
    Label,
    Position,
    Raws,
    Record,
    RecordColumns,
    at_places,
    with_passed,
)
from streamkernel.connectors.target_columns import Target, TargetColumns, names_of

# Fewer records are decoded one by one.
FEWEST = 4


class BulkDecoder(ABC):
    """A decoder of the bytes of records to their inputs and targets.

    `target` is the name of the target, the names of several, or None for unlabeled records; `target_type` and
    `max_string` are those of `TargetDecoder`. `rules` read the columns; None: all are inputs, each as it is. The record
    has the columns of `passing` in `passed`.
    """

    def __init__(self, target: Target, target_type: str, max_string: int, rules: ColumnRules | None = None) -> None:
        self.target_names = names_of(target)
        self.target_type = target_type
        several = not (target is None or isinstance(target, str))
        self.target = None if several or target is None else self.target_names[0]
        self.rules = rules or ColumnRules(InputSettings(), max_string)
        if several:
            self.rules = self.rules.without(self.target_names)
        self.max_string = max_string
        numbers = self.rules.numbers
        self.targets = TargetDecoder(target_type, max_string, None if numbers is None else numbers.plain)
        self.several = TargetColumns(self.target_names, self.targets) if several else None
        self.passing: PassThrough | None = None

    @cached_property
    def scanner(self) -> ColumnScanner | None:
        """What reads many records in columns; None: nothing does."""
        return None

    def ready(self, raws: Sequence[bytes | None]) -> int:
        """Return how many leading records can be decoded now (default: all)."""
        return len(raws)

    def records(self, raws: Sequence[bytes], starts: Sequence[Position], ends: Sequence[Position]) -> Sequence[Record]:
        """Return a record for each of `raws`, with its start and the start of the next one."""
        found: Sequence[Record] | None = self._in_columns(raws, starts, ends) if len(raws) >= FEWEST else None
        records = self._decoded(raws, starts, ends) if found is None else found
        passing = self.passing
        return records if passing is None else with_passed(records, lambda n: passing(self.values(raws[n])))

    def _in_columns(
        self, raws: Sequence[bytes], starts: Sequence[Position], ends: Sequence[Position]
    ) -> RecordColumns | None:
        """Return the records in columns; None where they do not fit into any."""
        if self.several is not None or self.scanner is None:
            return None
        raws = Raws.of(raws)
        found = self.scanner.scan(raws.buffer, raws.begins, raws.ends)
        if found is None or 2 * (n_plain := int(found.plain.sum())) < len(raws):
            return None
        odd: dict[int, Record] = {}
        targets = _labels(found)
        if n_plain < len(raws):
            places = np.flatnonzero(~found.plain)
            records = self._decoded(raws[places], at_places(starts, places), at_places(ends, places))
            odd = dict(zip(places.tolist(), records, strict=True))
            for place, record in odd.items():
                targets[place] = record.y
        return RecordColumns(raws, starts, ends, found.names, found.numbers, found.texts, targets, odd, self._decoded)

    def _decoded(self, raws: Sequence[bytes], starts: Sequence[Position], ends: Sequence[Position]) -> list[Record]:
        return list(map(self.record, raws, starts, ends))

    def record(self, raw: bytes, start: Position, following: Position) -> Record:
        """Return the record of one `raw`."""
        try:
            decoded = self.decode_one(raw)
            if decoded is not None and self.several is not None:
                decoded = decoded[0], self.several.read(self.values(raw))
        except UndecodableError as error:
            return Record({}, None, start, following, raw, error.fault)
        if decoded is None:
            return Record({}, None, start, following, raw, blank=True)
        x, y = decoded
        return Record(x, y, start, following, raw)

    def columns(self, raw: bytes) -> list[ColumnUse]:
        """Return the use of each column of a usable record."""
        values = self.fields(raw)
        if self.several is not None:
            uses = input_uses(values, self.rules, self.read)
            return [*self.several.uses(values), *(use for use in uses if use.name not in self.target_names)]
        if self.target is None:
            return input_uses(values, self.rules, self.read)
        target = target_use(self.target, take(values, self.target), self.targets)
        # A list keeps the empty place of a target: that is not a column.
        above = f"{self.target}."
        uses = input_uses(values, self.rules, self.read)
        return [target, *(use for use in uses if use.type != "missing" or not above.startswith(f"{use.name}."))]

    @abstractmethod
    def fields(self, raw: bytes) -> dict[str, Any]:
        """Return the values in the columns of a usable record, by name."""

    @abstractmethod
    def read(self, name: str, value: Any) -> Mapping[str, Any]:
        """Return the inputs of a column's value; raise UndecodableError if it is unusable."""

    @abstractmethod
    def decode_one(self, raw: bytes) -> tuple[dict[str, Any], Any] | None:
        """Return the inputs and the target of a record, None for a blank one; raises UndecodableError."""

    @abstractmethod
    def values(self, raw: bytes) -> Mapping[str, Any]:
        """Return the values of a decodable record by name, as they are in the source."""


def _labels(found: ScannedRows) -> list[Label | None]:
    """Return the label of each scanned record."""
    targets = found.targets
    if targets is None:
        return [None] * len(found.plain)
    if isinstance(targets, CodedColumn):
        return list(map([*targets.values, None].__getitem__, targets.codes.tolist()))
    labels: list[Label | None] = targets.tolist()
    return [None if label != label else label for label in labels] if np.isnan(targets).any() else labels


def too_long_record(raw: bytes, length: int, max_record_bytes: int, start: Position, following: Position) -> Record:
    """Return the record of raw bytes that are longer than the limit, cut to it."""
    detail = f"{length:,} bytes, more than max_record_bytes ({max_record_bytes:,})"
    return Record({}, None, start, following, raw[:max_record_bytes], Fault("too_long", detail))
