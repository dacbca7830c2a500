"""How the values of a column are best read: as a category, a date or an id, and which of them mean a missing value."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from connectors.columns.dates import DateParts
from connectors.columns.numbers import NumberFormat

__all__ = ["Reading", "are_numbers", "number_of", "reading_of"]

_SPELLINGS_OF_NOTHING = frozenset({"-", "--", "?", "#n/a", "n/a", "na", "nan", "nil", "none", "null", "unknown"})
_DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d")
_FORMATS = ("iso", *(f"{day}{time}" for day in _DAYS for time in ("", " %H:%M", " %H:%M:%S")))
_SHORTEST_DATE = len("1.1.2024")
# Of fewer values, too many things could be told.
_FEWEST_TO_TELL = 20
# A text of which nearly every record has another one.
_IDENTIFIES = 0.9
_NUMBERS = 0.9
# Decimal and thousands marks, in the order in which they are tried: 1,104 may be either, and is a thousand here.
_FORMS_OF_NUMBERS = ((".", ","), (",", ""), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'"))
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

    """

    type: Literal["string", "number", "date"] | None = None
    format: str = "iso"
    other_format: str | None = None
    na: tuple[str, ...] = ()
    identifies: bool = False
    decimal: str = "."
    thousands: str = ""

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


def reading_of(name: str, values: Sequence[Any], source: Literal["csv", "jsonl"]) -> Reading:
    """Return how a column of plain values that are present is best read.

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
    whole = all(number_of(value) is not None for value in rest)
    if not whole and (form := _form_of(rest)) is not None:
        reading = Reading("number", na=na, decimal=form[0], thousands=form[1])
        return replace(reading, identifies=_is_counted(name, list(map(reading.number, rest))))
    # A text of digits is a number in CSV, and a text in JSON.
    if are_numbers(rest) and (source == "csv" or not any(isinstance(value, str) for value in rest)):
        if any(_is_code(value) for value in rest):
            return Reading("string", na=na)
        # Where all agree, a text that comes later is a mistake, and no category.
        kind: Literal["number"] | None = (
            "number" if whole and not any(isinstance(value, bool) for value in rest) else None
        )
        return Reading(kind, na=na, identifies=_is_counted(name, [number_of(value) for value in rest]))
    fitting = _formats_of(rest) if len(texts) == len(values) else []
    if fitting:
        return Reading("date", fitting[0], fitting[1] if len(fitting) > 1 else None, na)
    # Among texts, NA may be a country, and - a category.
    return Reading(identifies=_is_named(values))


def are_numbers(values: Sequence[Any]) -> bool:
    """Return whether nearly all values are finite numbers, as a source reads them: the others are mistakes."""
    return sum(number_of(value) is not None for value in values) >= _NUMBERS * len(values)


def number_of(value: Any) -> float | None:
    """Return a value as the finite number that a source reads it as; None where it is none."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and "_" not in str(value) else None


def _form_of(values: Sequence[Any]) -> tuple[str, str] | None:
    """Return decimal and thousands marks by which all of some texts are numbers; None where there are none."""
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) < len(values):
        return None
    for form in _FORMS_OF_NUMBERS:
        numbers = NumberFormat(*form)
        try:
            for text in texts:
                numbers.plain(text)
        except ValueError:
            continue
        return form
    return None


def _is_code(value: Any) -> bool:
    """Tell whether a text of digits would lose zeros as a number."""
    return isinstance(value, str) and len(value) > 1 and value[0] == "0" and value.isdigit()


def _is_named(values: Sequence[Any]) -> bool:
    enough = len(values) >= _FEWEST_TO_TELL
    return enough and len(set(values)) >= _IDENTIFIES * len(values)


def _is_counted(name: str, numbers: Sequence[float | None]) -> bool:
    """Tell whether whole numbers count the records, or are called an id and never come twice."""
    whole = [number for number in numbers if number is not None and number.is_integer()]
    if not _FEWEST_TO_TELL <= len(whole) == len(numbers):
        return False
    counts = all(after - before == 1 for before, after in pairwise(whole))
    return counts or (len(set(whole)) == len(whole) and _NAMES_OF_NUMBERS.search(name) is not None)


def _formats_of(texts: Sequence[str]) -> list[str]:
    """Return the formats of a date that all texts have."""
    if min(map(len, texts)) < _SHORTEST_DATE:
        return []
    return [format for format in _FORMATS if _fits(format, texts)]


def _fits(format: str, texts: Sequence[str]) -> bool:
    dates = DateParts(format, ["day"], cyclic=False, timezone=None)
    try:
        for text in texts:
            dates.read(text)
    except ValueError:
        return False
    return True
