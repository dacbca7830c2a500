"""Numbers as text with a decimal comma, or with marks between the thousands."""

from __future__ import annotations

import re

__all__ = ["NumberFormat"]

# Who types a blank or an apostrophe may mean another one.
_ALIKE = {" ": " \u00a0\u202f\u2009", "'": "'\u2019"}


class NumberFormat:
    """How numbers are written.

    Parameters
    ----------
    decimal
        What separates the fraction: a point or a comma.
    thousands
        The separator of groups of three digits, where a number has such groups; empty: none.

    Examples
    --------
    >>> NumberFormat(",", ".").plain("-1.104,27"), NumberFormat(",", ".").plain("17")
    ('-1104.27', '17')

    """

    def __init__(self, decimal: str = ".", thousands: str = "") -> None:
        marks = _ALIKE.get(thousands, thousands)
        grouped = rf"[1-9]\d{{0,2}}(?:[{re.escape(marks)}]\d{{3}})+|" if marks else ""
        point = re.escape(decimal)
        number = rf"(?:(?:{grouped}\d+)(?:{point}\d*)?|{point}\d+)(?:[eE][-+]?\d+)?"
        self._pattern = re.compile(rf"\s*[-+]?{number}\s*", re.ASCII)
        self._table = str.maketrans({**dict.fromkeys(marks), decimal: "."})

    def plain(self, text: str) -> str:
        """Return a number as Python writes it; raise ValueError for a text that is no number, or one written otherwise.

        NaN is one.
        """
        if self._pattern.fullmatch(text):
            return text.strip().translate(self._table)
        if text.strip().lower().lstrip("+-") == "nan":
            return "nan"
        raise ValueError(text)
