"""The records that a run would take first, with what only their source can say of them while it reads their file."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from streamkernel.connectors.columns.uses import empty_inputs
from streamkernel.connectors.ports import ColumnUse, Record, Source
from streamkernel.daemon.monitoring.visible import visible
from streamkernel.daemon.stream.known_inputs import ENOUGH

__all__ = ["FirstRecords", "column_lines", "take_first"]

POLL_SECONDS = 1.0
_PATIENCE_SECONDS = 10.0
_MOST_COLUMNS = 100
_WIDEST = 40


@dataclass
class FirstRecords:
    """The records of a source that a run would take first.

    Attributes
    ----------
    records
        The records, blank ones too.
    places
        Where each of the records is, in words.
    empty
        The columns that are inputs and have no value in one of them.
    columns
        What becomes of the columns of the first one that can be used, in lines; empty where none can.
    names
        The names of these columns.
    whole
        Whether the source ends after them.

    """

    records: list[Record] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    empty: set[str] = field(default_factory=set)
    columns: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    whole: bool = False

    def take(self, source: Source, key: str, polled: Sequence[Record]) -> None:
        """Add what a poll returned, before the source reads on: the next file may have other columns."""
        for record in polled:
            if record.fault is None and not record.blank:
                self.empty.update(empty_inputs(source, record))
                if not self.columns:
                    usable = "" if all(one.blank for one in self.records) else " that can be used"
                    uses = source.columns(record)
                    self.names = [use.name for use in uses]
                    self.columns = [f"columns of {key}, by its first record{usable}:", *column_lines(uses)]
            self.records.append(record)
            self.places.append(source.place(record.position.partition, record.position.offset))


def take_first(source: Source, key: str, *, is_topic: bool) -> FirstRecords:
    """Poll until records come or, of a topic, its end is known: a slow broker's topic only seems to be empty.

    Parameters
    ----------
    source
        The source, open.
    key
        Its section of the configuration.
    is_topic
        Whether it is a topic of Kafka.

    """
    first = FirstRecords()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    first.take(source, key, source.poll(1, POLL_SECONDS))
    while is_topic and not first.records and source.health_problem is None and time.monotonic() < deadline:
        if source.lag and not any(source.lag.values()):
            break
        first.take(source, key, source.poll(1, POLL_SECONDS))
    while 0 < len(first.records) < ENOUGH and (more := source.poll(1, 0)):  # one: of two, the source knows one's file
        first.take(source, key, more)
    first.whole = source.exhausted
    return first


def column_lines(uses: Sequence[ColumnUse]) -> list[str]:
    """Return a line for each column of a record: name, value, type and use, one below the other.

    Examples
    --------
    >>> column_lines([ColumnUse("id", "'A-7'", "string", "excluded"), ColumnUse("amount", "7.5", "number", "input")])
    ["  id      'A-7'  string  excluded", '  amount  7.5    number  input']

    """
    shown = [_visible(use) for use in uses[:_MOST_COLUMNS]]
    name, value, kind = (
        min(max(map(len, cells), default=0), _WIDEST)
        for cells in ([use.name for use in shown], [use.value for use in shown], [use.type for use in shown])
    )
    lines = [f"  {use.name:{name}}  {use.value:{value}}  {use.type:{kind}}  {use.use}" for use in shown]
    return lines + ([f"  and {len(uses) - _MOST_COLUMNS} more"] if len(uses) > _MOST_COLUMNS else [])


def _visible(use: ColumnUse) -> ColumnUse:
    """Return what a terminal shows, with which columns are aligned; a name that is empty is quoted."""
    return use._replace(name=visible(use.name) or "''", value=visible(use.value), use=visible(use.use))
