"""Dates and times of ISO 8601 or a format, with 24:00 and leap seconds, which Python refuses."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import partial

__all__ = ["read_moment"]

_END_OF_DAY = re.compile(
    r"(?<!\d)(?P<minute>\d\d:\d\d):(?P<leap>60)(?!\d)|(?<!\d)24:00(:00(\.0+)?)?(?![\d:.])", re.ASCII
)


def read_moment(text: str, format: str | None = None) -> datetime:
    """Return the moment of a date, with or without a time, in ISO 8601 or in a format of `strptime`.

    24:00 and a leap second are 0:00 of the next day. Raises ValueError for any other text.

    Examples
    --------
    >>> str(read_moment("2016-12-31T23:59:60Z")), str(read_moment("30.06.2024 24:00", "%d.%m.%Y %H:%M"))
    ('2017-01-01 00:00:00+00:00', '2024-07-01 00:00:00')

    """
    read = datetime.fromisoformat if format is None else partial(_strptime, format)
    try:
        return read(text)
    except ValueError:
        found = _END_OF_DAY.search(text)
        if found is None:
            raise
        leap = found["leap"] is not None
        before = f"{found['minute']}:59" if leap else found[0].replace("24", "00", 1)
        moment = read(text[: found.start()] + before + text[found.end() :])
        utc = moment if moment.tzinfo is None else moment.astimezone(UTC)
        if leap and (utc.hour, utc.minute) != (23, 59):
            raise
        try:
            return moment + (timedelta(seconds=1) if leap else timedelta(days=1))
        except OverflowError as error:  # the last day there is
            raise ValueError(str(error)) from None


def _strptime(format: str, text: str) -> datetime:
    return datetime.strptime(text, format)
