"""Dates: from text or a time stamp to parts of the calendar."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

from streamkernel.connectors.columns.settings import DatePart
from streamkernel.connectors.moments import read_moment

__all__ = ["PARTS", "DateParts", "check_format", "zone_of"]

_EPOCH_DAY = datetime(1970, 1, 1).toordinal()
_SECONDS_PER_DAY = 86_400
# Directives of strptime that tell a time of day.
_TIME_DIRECTIVES = ("%H", "%I", "%M", "%S", "%f", "%c", "%X", "%p")
# Directives of strptime that tell a year.
_YEAR_DIRECTIVES = ("%Y", "%y", "%G", "%c", "%x")
_LONGEST_DATE = len("2024-01-31")
_LEAP_YEAR = 2000
_SAMPLE = datetime(2001, 2, 3, 14, 5, 6, tzinfo=UTC)

Parsed: TypeAlias = tuple[datetime, bool]
"""A moment, and whether its time of day is known."""


class _DatePart(NamedTuple):
    of: Callable[[datetime], float]
    first: int  # the least value
    period: int | None  # after how much it comes round
    of_day: bool = False  # whether it depends on the time of day


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
        ``"iso"``, ``"unix"``, ``"unix_ms"`` or a format of `strptime`. One without a year is of 2000, a leap year.
    parts
        Names in `PARTS`, in the order of the numbers.
    cyclic
        Whether a part that comes round is two numbers, a sine and a cosine, from -1 to 1.
    timezone
        The zone in which the parts are computed, by its IANA name.

    Raises
    ------
    ValueError
        For a format, a part or a zone that does not exist.

    Examples
    --------
    >>> dates = DateParts("iso", ["year", "month", "weekday", "hour"], cyclic=False, timezone=None)
    >>> dates.names, dates.read("2024-02-29T06:30:00Z"), dates.read("2024-02-29")
    (['year', 'month', 'weekday', 'hour'], [2024.0, 2.0, 3.0, 6.0], [2024.0, 2.0, 3.0, None])

    """

    def __init__(self, format: str, parts: Sequence[DatePart], cyclic: bool, timezone: str | None) -> None:
        check_format(format)
        self._zone = None if timezone is None else zone_of(timezone)
        self._parse = self._parser(format)
        self._parts: list[tuple[_DatePart, bool]] = []
        self.names: list[str] = []
        for name in parts:
            if name not in PARTS:
                raise ValueError(f"there is no part {name!r} of a date, only {', '.join(PARTS)}")
            round_and_round = cyclic and PARTS[name].period is not None
            self._parts.append((PARTS[name], round_and_round))
            self.names += [f"{name}.sin", f"{name}.cos"] if round_and_round else [name]

    def read(self, text: str) -> list[float | None]:
        """Return the parts of a date; None for a time of day where only the day is known.

        Raises
        ------
        ValueError
            The text is no such date.

        """
        moment, has_time = self._parse(text)
        numbers: list[float | None] = []
        for part, round_and_round in self._parts:
            if part.of_day and not has_time:
                numbers += [None, None] if round_and_round else [None]
            elif round_and_round and part.period is not None:
                angle = 2 * math.pi * (part.of(moment) - part.first) / part.period
                numbers += [math.sin(angle), math.cos(angle)]
            else:
                numbers.append(float(part.of(moment)))
        return numbers

    def _parser(self, format: str) -> Callable[[str], Parsed]:
        zone = self._zone
        if format == "iso":
            return lambda text: (_in_zone(read_moment(text), zone), len(text) > _LONGEST_DATE)
        if format in ("unix", "unix_ms"):
            unit = 1000 if format == "unix_ms" else 1
            return lambda text: (_since_1970(text, unit, zone or UTC), True)
        has_time = any(directive in format for directive in _TIME_DIRECTIVES)
        if any(directive in format for directive in _YEAR_DIRECTIVES):
            return lambda text: (_in_zone(read_moment(text, format), zone), has_time)
        # Python would take 1900, in which there is no 29 February.
        return lambda text: (_in_zone(read_moment(f"{_LEAP_YEAR} {text}", f"%Y {format}"), zone), has_time)


def _in_zone(moment: datetime, zone: tzinfo | None) -> datetime:
    try:
        return moment if zone is None or moment.tzinfo is None else moment.astimezone(zone)
    except OverflowError as error:  # the first or last day there is
        raise ValueError(str(error)) from None


def _since_1970(text: str, unit: int, zone: tzinfo) -> datetime:
    try:
        return datetime.fromtimestamp(float(text) / unit, zone)
    except (OverflowError, OSError) as error:
        raise ValueError(str(error)) from None


def check_format(format: str) -> None:
    """Raise ValueError for a format that no date can be written in."""
    if format in ("iso", "unix", "unix_ms"):
        return
    if "%" not in format:
        raise ValueError(f"a date's format is iso, unix, unix_ms or one such as %d.%m.%Y, got {format!r}")
    try:
        datetime.strptime(_SAMPLE.strftime(format), format)
    except ValueError as error:
        raise ValueError(f"{format!r} is not a date format: {error}") from None


def zone_of(name: str) -> ZoneInfo:
    """Return a time zone by its name; raise ValueError where there is none."""
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):  # it may also be a folder, or lead out of the data base
        raise ValueError(
            f"there is no time zone {name!r}: use one such as Europe/Berlin (pip install tzdata if the system has none)"
        ) from None
