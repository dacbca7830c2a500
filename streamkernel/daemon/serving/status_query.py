"""The query of /api/status: since when points of the history are asked for, and of which partition."""

from __future__ import annotations

import math
from collections.abc import Mapping

__all__ = ["status_query"]

_LONGEST = 32
_MOST_PARTITION = 2**31


def status_query(query: Mapping[str, str]) -> tuple[float, int | None]:
    """Read `since`, 0 where it is left out, and `partition`, None where it is.

    Raises
    ------
    ValueError
        Where one of them is no number; the message is a sentence.

    Examples
    --------
    >>> status_query({"since": "1700000000.5"}), status_query({"partition": "3"})
    ((1700000000.5, None), (0.0, 3))

    """
    return _number("since", query.get("since", "0")), _partition(query.get("partition"))


def _number(name: str, text: str) -> float:
    try:
        number = float(text) if len(text) <= _LONGEST else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a time in seconds since 1970")
    return number


def _partition(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > _LONGEST or int(text) >= _MOST_PARTITION:
        raise ValueError("partition must be the number of a partition")
    return int(text)
