"""Reader of pass-through columns: values of a record as the types in the configuration."""

from __future__ import annotations

import logging
import math
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from streamkernel.connectors.decode import TargetDecoder, shown
from streamkernel.connectors.encode import to_json
from streamkernel.connectors.moments import read_moment
from streamkernel.connectors.names import find, nfc
from streamkernel.connectors.pass_through import Passed, PassedColumn, SourceMessage
from streamkernel.connectors.ports import SourceError

_log = logging.getLogger(__name__)

_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?\Z", re.ASCII)
_BASIC_DATE = re.compile(r"\d{8}\Z", re.ASCII)  # 20261122, which ISO 8601 reads as a date
# Seconds since 1970 this large would be in the year 5138: they are milliseconds.
_MILLISECONDS_FROM = 1e11
# After this many records the log names the columns that none of them has.
_WARN_AFTER = 100
_LONGEST_INTEGER = 2**63


class PassThrough:
    """A reader of the pass-through columns of records.

    Parameters
    ----------
    columns
        The columns.
    message
        Whether the record's message passes, too.

    Examples
    --------
    >>> read = PassThrough([PassedColumn("id", "id"), PassedColumn("user.born", "born", "timestamp")])
    >>> read({"id": 7, "user": {"born": "1990-05-01"}, "a": 1.5}).columns
    {'id': 7, 'born': '1990-05-01T00:00:00Z'}

    """

    def __init__(self, columns: Sequence[PassedColumn], message: bool = False) -> None:
        self.columns = tuple(one._replace(column=nfc(one.column)) for one in columns)
        self.message = message
        self._decoders = {
            one.type: TargetDecoder(one.type, sys.maxsize) for one in columns if one.type not in (None, "timestamp")
        }
        self._unfit: set[str] = set()  # logged already
        self._absent = {one.column for one in self.columns}
        self._n_records = 0

    def __call__(self, values: Mapping[str, Any], message: SourceMessage | None = None) -> Passed:
        """Return the pass-through columns of a record; a value of another type is None, and the log says so once."""
        passed: dict[str, Any] = {}
        for one in self.columns:
            value = values[one.column] if one.column in values else find(values, one.column)
            if value is None or value == "":
                passed[one.name] = None
                continue
            self._absent.discard(one.column)
            passed[one.name] = self._read(one, value)
        if self._absent:
            self._n_records += 1
            if self._n_records == _WARN_AFTER:
                _log.warning(
                    "none of the first %d records has %s, a column to pass through: it is null in the lines",
                    *(_WARN_AFTER, ", ".join(map(shown, sorted(self._absent)))),
                )
                self._absent.clear()
        return Passed(passed, message)

    def _read(self, column: PassedColumn, value: Any) -> Any:
        if column.type is None:
            return value
        try:
            if column.type == "timestamp":
                return to_timestamp(value)
            if column.type == "str" and isinstance(value, dict | list):
                return to_json(value).decode()
            if column.type == "str" and type(value) is float and math.isfinite(value):
                return str(value)  # a label would be 1 for 1.0
            read = self._decoders[column.type].decode(value)
            if type(read) is int and abs(read) >= _LONGEST_INTEGER:
                raise ValueError(value)
            return read
        except (ValueError, OverflowError, OSError, TypeError):
            if column.column not in self._unfit:
                self._unfit.add(column.column)
                _log.warning(
                    "column %s passes through as %s, and %s is not one: such values are null in the lines",
                    *(shown(column.column), column.type, shown(value)),
                )
            return None


def without_message(place: str, columns: Sequence[PassedColumn], message: bool) -> PassThrough:
    """Return the reader of a source without messages; raise SourceError if a message is to pass through."""
    if message:
        raise SourceError(f"{place}: its records are not Kafka messages: there is no message column to pass through")
    return PassThrough(columns)


def to_timestamp(value: Any) -> str:
    """Return a time in ISO 8601 or in seconds or milliseconds since 1970 as ISO 8601 in UTC.

    A time without a zone is in UTC. Raises ValueError, OverflowError or OSError for any other value.

    Examples
    --------
    >>> to_timestamp("2026-11-22T10:00+01:00"), to_timestamp(1.5), to_timestamp("1763802000123")
    ('2026-11-22T09:00:00Z', '1970-01-01T00:00:01.500000Z', '2025-11-22T09:00:00.123000Z')

    """
    if isinstance(value, str):
        text = value.strip()
        if _NUMBER.match(text) and not _BASIC_DATE.match(text):
            value = float(text)
        else:
            moment = read_moment(text)
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
            return _iso(moment)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(value)
    return _iso(datetime.fromtimestamp(value / 1000 if abs(value) >= _MILLISECONDS_FROM else value, UTC))


def _iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
