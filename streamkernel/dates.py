"""Advice on dates and times, which are neither inputs nor targets: what to give instead of them."""

import datetime
from typing import Any

import numpy as np

_DURATIONS = (datetime.timedelta, np.timedelta64)
_DATES = (datetime.date, datetime.time, np.datetime64)  # a datetime, and pandas' Timestamp, is a date


def instead_of_input(value: Any) -> str:
    """What to give for an input instead of a date, a time or a duration; empty for any other value.

    Examples
    --------
    >>> instead_of_input(datetime.date(2026, 3, 1))
    'its calendar parts as separate inputs, such as month, weekday and hour'
    >>> instead_of_input(datetime.timedelta(1)), instead_of_input(1.5)
    ('its seconds, from total_seconds()', '')

    """
    if isinstance(value, _DURATIONS):
        return "its seconds, from total_seconds()"
    if isinstance(value, _DATES):
        return "its calendar parts as separate inputs, such as month, weekday and hour"
    return ""


def instead_of_number(value: Any) -> str:
    """What to give for a target instead of a date, a time or a duration; empty for any other value."""
    if isinstance(value, _DURATIONS):
        return "its seconds, from total_seconds()"
    return "the seconds from the record until then" if isinstance(value, _DATES) else ""


def instead_of_label(value: Any) -> str:
    """What to give for a label instead of a date, a time or a duration; empty for any other value."""
    return "a calendar part of it, such as its weekday, or its text" if isinstance(value, _DATES + _DURATIONS) else ""
