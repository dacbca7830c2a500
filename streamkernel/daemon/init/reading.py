"""How the values of a column are best read: as a category, a date or an id, and which of them mean a missing value."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from streamkernel.connectors.columns.dates import DateParts
from streamkernel.connectors.columns.numbers import NumberFormat
from streamkernel.daemon.init.marks import Marks, are_numbers, number_of, unit_of

__all__ = ["Reading", "is_absent", "marks_of", "reading_of"]

_SPELLINGS_OF_NOTHING = frozenset({"-", "--", "?", "#n/a", "n/a", "na", "nan", "nil", "none", "null", "unknown"})
_DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d")
_FORMATS = ("iso", *(f"{day}{time}" for day in _DAYS for time in ("", " %H:%M", " %H:%M:%S")))
_SHORTEST_DATE = len("1.1.2024")
# Fewer values allow too many readings.
_FEWEST_TO_TELL = 20
# A text of which nearly every record has another one.
_IDENTIFIES = 0.9
# The share of texts that must be dates: a few wrong ones make no categories of the others.
_NEARLY_ALL = 0.95
# A float holds all digits of smaller integers.
_EXACT_BELOW = 2**53
_NAMES_OF_NUMBERS = re.compile(r"(^|[ _.-])(id|key|uuid)$|[a-z](Id|ID)$", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    """How a column is best read, where that is not as the source does by itself.

    Attributes
    ----------
    type
        Its type under ``inputs.types``; None: none has to be said.
    format, other_format
        Of a date: the first that fits all values, and another one that does, if any.
    na
        Which of its values mean a missing one.
    identifies
        Whether it seems to name each record rather than to describe it.
    decimal, thousands
        Of numbers that are not written as Python writes them: what separates the fraction and the thousands.
    doubt
        What nothing in the file tells about these marks.
    unit
        The sign in texts that are numbers without it.

    """

    type: Literal["string", "number", "date"] | None = None
    format: str = "iso"
    other_format: str | None = None
    na: tuple[str, ...] = ()
    identifies: bool = False
    decimal: str = "."
    thousands: str = ""
    doubt: str = ""
    unit: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether numbers are written as Python writes them."""
        return self.decimal == "." and not self.thousands

    def number(self, value: Any) -> float | None:
        """Return a value as the finite number that it is read as; None where it is none."""
        if isinstance(value, str) and not self.is_plain:
            try:
                value = NumberFormat(self.decimal, self.thousands).plain(value)
            except ValueError:
                return None
        return number_of(value)


def reading_of(
    name: str, values: Sequence[Any], source: Literal["csv", "jsonl"], marks: Marks | None = None
) -> Reading:
    """Return how a column of plain values that are present is best read, in a file with these marks in its numbers.

    Examples
    --------
    >>> reading_of("zip", ["02134", "10001"], "csv").type, reading_of("price", ["1.5", "n/a"], "csv").na
    ('string', ('n/a',))
    >>> placed = reading_of("placed", ["31.12.2024 10:30", "?"], "csv")
    >>> placed.type, placed.format, placed.na
    ('date', '%d.%m.%Y %H:%M', ('?',))
    >>> reading_of("price", ["17,50", "1.104,27"], "csv").decimal
    ','

    """
    texts = [value for value in values if isinstance(value, str)]
    na = tuple(sorted({text for text in texts if text.strip().lower() in _SPELLINGS_OF_NOTHING}))
    rest = [value for value in values if value not in na] if na else values
    if not rest:
        return Reading()
    form = (marks or Marks()).form_of(rest) if {str}.issuperset(map(type, rest)) else None
    if form is not None and form[:2] != (".", ""):
        reading = Reading("number", na=na, decimal=form.decimal, thousands=form.thousands, doubt=form.doubt)
        return replace(reading, identifies=_is_counted(name, list(map(reading.number, rest))))
    # A text of digits is a number in CSV, and a text in JSON.
    if are_numbers(rest) and (source == "csv" or not any(isinstance(value, str) for value in rest)):
        counted = _is_counted(name, list(map(_exact, rest)))
        long = not counted and any(_is_long(value) for value in rest)
        if long or any(_is_code(value) for value in rest):
            return Reading("string", na=na, identifies=long and _is_named(rest))
        # Where all agree, a text that comes later is a mistake, and no category.
        agree = all(number_of(value) is not None and not isinstance(value, bool) for value in rest)
        return Reading("number" if agree else None, na=na, identifies=counted, doubt="" if form is None else form.doubt)
    fitting, odd = _formats_of(rest) if len(texts) == len(values) else ([], [])
    if fitting:
        other = fitting[1] if len(fitting) > 1 else None
        doubt = f"not such a date, and so a dead letter: {len(odd)}, the first {odd[0]!r:.50}" if odd else ""
        return Reading("date", fitting[0], other, na, doubt=doubt)
    # Among texts, NA may be a country, and - a category.
    unit = unit_of(rest) if len(texts) == len(values) else ""
    return Reading(identifies=_is_named(values), unit=unit)


def is_absent(value: Any) -> bool:
    """Return whether a value means that there is none, as a source reads it by itself."""
    if isinstance(value, str):
        return not value.strip() or value.strip().lower() == "nan"
    return value is None or (isinstance(value, float) and math.isnan(value))


def marks_of(columns: Iterable[Sequence[Any]], delimiter: str) -> Marks:
    """Return the marks in the numbers of a file, of its columns of plain values."""
    without = ([one for one in values if not _means_nothing(one)] for values in columns)
    return Marks([texts for texts in without if {str}.issuperset(map(type, texts))], delimiter)


def _means_nothing(value: Any) -> bool:
    return is_absent(value) or (isinstance(value, str) and value.strip().lower() in _SPELLINGS_OF_NOTHING)


def _is_code(value: Any) -> bool:
    """Tell whether a text of digits would lose zeros as a number."""
    return isinstance(value, str) and len(value) > 1 and value[0] == "0" and value.isdigit()


def _exact(value: Any) -> float | None:
    """Return a value as a number, a whole one with all of its digits; None where it is none."""
    number = number_of(value)
    digits = number is not None and abs(number) >= _EXACT_BELOW and str(value).strip().lstrip("+-").isdecimal()
    return int(value) if digits else number


def _is_long(value: Any) -> bool:
    """Tell whether an integer would lose digits as a number."""
    number = _exact(value)
    return isinstance(number, int) and int(float(number)) != number


def _is_named(values: Sequence[Any]) -> bool:
    enough = len(values) >= _FEWEST_TO_TELL
    return enough and len(set(values)) >= _IDENTIFIES * len(values)


def _is_counted(name: str, numbers: Sequence[float | None]) -> bool:
    """Tell whether whole numbers count the records, or are called an id and never come twice."""
    whole = [number for number in numbers if number is not None and number == int(number)]
    if not _FEWEST_TO_TELL <= len(whole) == len(numbers):
        return False
    counts = all(after - before == 1 for before, after in pairwise(whole))
    return counts or (len(set(whole)) == len(whole) and _NAMES_OF_NUMBERS.search(name) is not None)


def _formats_of(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the formats of a date that the most texts have, nearly all at least, and the texts without that date."""
    if sum(len(text) >= _SHORTEST_DATE for text in texts) < _NEARLY_ALL * len(texts):
        return [], []
    odd = {format: found for format in _FORMATS if (found := _not_dates(format, texts)) is not None}
    if not odd:
        return [], []
    fewest = min(odd.values(), key=len)
    return [format for format, found in odd.items() if len(found) == len(fewest)], fewest


def _not_dates(format: str, texts: Sequence[str]) -> list[str] | None:
    """Return the texts that are no date of a format; None where they are more than a few."""
    dates, odd = DateParts(format, ["day"], cyclic=False, timezone=None), []
    for text in texts:
        try:
            dates.read(text)
        except ValueError:
            odd.append(text)
            if len(odd) > (1 - _NEARLY_ALL) * len(texts):
                return None
    return odd
