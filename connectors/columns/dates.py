"""Dates, from text or a time stamp to parts of the calendar."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from streamkernel.connectors.columns.settings import DatePart
from streamkernel.connectors.moments import read_moment

__all__ = ["PARTS", "DateParts", "check_format", "zone_of"]

_EPOCH_DAY = datetime(1970, 1, 1).toordinal()
_SECONDS_PER_DAY = 86_400
# Directives of strptime with a time of day, and with a year.
_TIME_DIRECTIVES = ("%H", "%I", "%M", "%S", "%f", "%c", "%X", "%p")
_YEAR_DIRECTIVES = ("%Y", "%y", "%G", "%c", "%x")
_LONGEST_DATE = len("2024-01-31")
_LEAP_YEAR = 2000
_SAMPLE = datetime(2001, 2, 3, 14, 5, 6, tzinfo=UTC)


class _DatePart(NamedTuple):
    of: Callable[[datetime], float]
    first: int
    period: int | None  # of a cyclic part
    of_day: bool = False  # whether it needs the time of day


def _time_of_day(moment: datetime) -> float:
    seconds = 3600 * moment.hour + 60 * moment.minute + moment.second + moment.microsecond / 1e6
    return seconds / _SECONDS_PER_DAY


PARTS: dict[DatePart, _DatePart] = {
    "year": _DatePart(lambda moment: moment.year, 0, None),
    "quarter": _DatePart(lambda moment: (moment.month + 2) // 3, 1, 4),
    "month": _DatePart(lambda moment: moment.month, 1, 12),
    "week": _DatePart(lambda moment: moment.isocalendar().week, 1, 53),
    "day": _DatePart(lambda moment: moment.day, 1, 31),
    "day_of_year": _DatePart(lambda moment: moment.timetuple().tm_yday, 1, 366),
    "weekday": _DatePart(datetime.weekday, 0, 7),
    "hour": _DatePart(lambda moment: moment.hour, 0, 24, of_day=True),
    "minute": _DatePart(lambda moment: moment.minute, 0, 60, of_day=True),
    "second": _DatePart(lambda moment: moment.second, 0, 60, of_day=True),
    "time_of_day": _DatePart(_time_of_day, 0, 1, of_day=True),
    "days": _DatePart(lambda moment: moment.toordinal() - _EPOCH_DAY + _time_of_day(moment), 0, None),
}
"""The parts by name: weekdays from 0, a Monday; `time_of_day` from 0 to 1; `days` since 1970, with a fraction."""


class DateParts:
    """A reader of dates.

    Parameters
    ----------
    format
        ``"iso"``, ``"unix"``, ``"unix_ms"`` or a format of `strptime`. Without a year, it is 2000, a leap year.
    parts
        Names in `PARTS`, in the order of the numbers.
    cyclic
        Whether a cyclic part is two numbers, a sine and a cosine.
    timezone
        The IANA name of the zone of the parts.

    Raises
    ------
    ValueError
        For an unknown format, part or zone.

    Examples
    --------
    >>> dates = DateParts("iso", ["year", "month", "weekday", "hour"], cyclic=False, timezone=None)
    >>> dates.names, dates.read("2024-02-29T06:30:00Z"), dates.read("2024-02-29")
    (['year', 'month', 'weekday', 'hour'], [2024.0, 2.0, 3.0, 6.0], [2024.0, 2.0, 3.0, None])

    """

    def __init__(self, format: str, parts: Sequence[DatePart], cyclic: bool, timezone: str | None) -> None:
        check_format(format)
        self._format = format
        self._zone = None if timezone is None else zone_of(timezone)
        self._has_year = any(directive in format for directive in _YEAR_DIRECTIVES)
        self._has_time = any(directive in format for directive in _TIME_DIRECTIVES)
        self._parts: list[tuple[_DatePart, int | None]] = []
        self.names: list[str] = []
        for name in parts:
            if name not in PARTS:
                raise ValueError(f"there is no part {name!r} of a date, only {', '.join(PARTS)}")
            period = PARTS[name].period if cyclic else None
            self._parts.append((PARTS[name], period))
            self.names += [name] if period is None else [f"{name}.sin", f"{name}.cos"]

    def read(self, text: str) -> list[float | None]:
        """Return the parts of a date; None for a time of day if the text has a day only.

        Raises
        ------
        ValueError
            For any other text.

        """
        try:
            moment, has_time = self._moment(text)
        except (OverflowError, OSError) as error:
            raise ValueError(str(error)) from None
        numbers: list[float | None] = []
        for part, period in self._parts:
            if part.of_day and not has_time:
                numbers += [None] if period is None else [None, None]
            elif period is None:
                numbers.append(float(part.of(moment)))
            else:
                angle = 2 * math.pi * (part.of(moment) - part.first) / period
                numbers += [math.sin(angle), math.cos(angle)]
        return numbers

    def _moment(self, text: str) -> tuple[datetime, bool]:
        """Return the moment of a text, and whether its time of day is known."""
        if self._format in ("unix", "unix_ms"):
            seconds = float(text) / (1000 if self._format == "unix_ms" else 1)
            return datetime.fromtimestamp(seconds, self._zone or UTC), True
        if self._format == "iso":
            moment, has_time = read_moment(text), len(text) > _LONGEST_DATE
        elif self._has_year:
            moment, has_time = read_moment(text, self._format), self._has_time
        else:
            # Python's default year, 1900, has no 29 February.
            moment, has_time = read_moment(f"{_LEAP_YEAR} {text}", f"%Y {self._format}"), self._has_time
        return (moment if self._zone is None or moment.tzinfo is None else moment.astimezone(self._zone)), has_time


def check_format(format: str) -> None:
    """Raise ValueError for an invalid date format."""
    if format in ("iso", "unix", "unix_ms"):
        return
    if "%" not in format:
        raise ValueError(f"a date's format is iso, unix, unix_ms or one such as %d.%m.%Y, got {format!r}")
    try:
        datetime.strptime(_SAMPLE.strftime(format), format)
    except ValueError as error:
        raise ValueError(f"{format!r} is not a date format: {error}") from None


def zone_of(name: str) -> ZoneInfo:
    """Return a time zone by its name; raise ValueError for an unknown one."""
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):  # the name may be a folder of the data base
        raise ValueError(
            f"there is no time zone {name!r}: use one such as Europe/Berlin (pip install tzdata if the system has none)"
        ) from None
