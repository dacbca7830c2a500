"""What the columns of a sample hold and how each is best read: as numbers, dates, codes, ids or categories."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from streamkernel.connectors.columns.dates import DateParts
from streamkernel.connectors.columns.readers import NumberFormat
from streamkernel.connectors.columns.rules import flattened
from streamkernel.connectors.decode import UndecodableError
from streamkernel.connectors.names import find
from streamkernel.daemon.init.sample import Sample

__all__ = ["SampledColumn", "read_columns"]

_NOTHING = frozenset({"-", "--", "?", "#n/a", "n/a", "na", "nan", "nil", "none", "null", "unknown"})
# Decimal and thousands marks, those of Python first.
_FORMS = ((".", ""), (".", ","), (",", ""), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'"))
_UNITS = ("$", "€", "£", "¥", "₹", "%", "EUR", "USD", "GBP", "CHF", "JPY")
_DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d")
_DATES = ("iso", *(f"{day}{time}" for day in _DAYS for time in ("", " %H:%M", " %H:%M:%S")))
_SHORTEST_DATE = len("1.1.2024")
# Shares of the values: a few wrong ones make no categories of the others.
_NUMBERS, _DATED, _IDENTIFIES = 0.9, 0.95, 0.9
# Fewer values tell nothing.
_FEWEST = 20
# A longer text is one to read, not one to find a record by.
_LONGEST_ID = 64
# A float holds all digits of smaller integers.
_EXACT_BELOW = 2**53
_ID = re.compile(r"(^|[ _.-])(id|key|uuid)$|[a-z](Id|ID)$", re.IGNORECASE)

_Form = tuple[str, str]


@dataclass(frozen=True)
class SampledColumn:
    """What a column of a sample holds, and how it is best read.

    Attributes
    ----------
    name, values
        The name, and the values that are present.
    holds
        The kind of its values, in words.
    type, format
        Its type under ``inputs.types``, and the format of a date; None: the source reads it well without one.
    na
        Its values that mean a missing one.
    form
        The decimal and thousands marks of its numbers.
    unit
        The sign in texts that are numbers without it.
    identifies
        Whether it seems to name each record rather than to describe it.
    note
        A doubt, for a comment.
    why
        The reason for its type, for a comment.
    odd
        A text among numbers that is not a number.

    """

    name: str
    values: Sequence[Any]
    holds: Literal["numbers", "texts", "nested values", "nothing"] = "nothing"
    type: str | None = None
    format: str | None = None
    na: tuple[str, ...] = ()
    form: _Form = (".", "")
    unit: str = ""
    identifies: bool = False
    note: str = ""
    why: str = ""
    odd: str = ""

    @property
    def n_different(self) -> int:
        """How many different values there are."""
        return len(set(map(str, self.values)))

    @property
    def longest(self) -> int:
        """The longest text, in characters."""
        return max((len(str(value)) for value in self.values), default=0) if self.holds == "texts" else 0

    @property
    def finds_a_record(self) -> bool:
        """Whether a record can be found by it."""
        unique = self.n_different == len(self.values) and self.longest <= _LONGEST_ID
        return self.identifies and not self.unit and unique

    def number(self, value: Any) -> float | None:
        """Return a value as a number; None if it is none."""
        return _number(value, self.form)


def read_columns(sample: Sample, target: str) -> tuple[list[SampledColumn], SampledColumn]:
    """Return the columns of a sample except the target, in order, and the target.

    Nested values of JSON are flattened, those of the target are not.
    """
    flat = [one for record in sample.records if (one := _flat(record, target)) is not None]
    names = dict.fromkeys(name for record in flat for name in record)
    named = [*((name, _present(flat, name)) for name in names), (target, _present(sample.records, target))]
    decimals = _decimals([values for _, values in named])
    read = [_column(name, values, sample, decimals) for name, values in named]
    return read[:-1], read[-1]


def _flat(record: Mapping[str, Any], target: str) -> dict[str, Any] | None:
    try:
        flat = flattened({name: value for name, value in record.items() if name != target}, lambda _: "flatten")
    except UndecodableError:  # nested too deep
        return None
    flat.pop(target, None)
    return flat


def _present(records: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    values = (find(record, name) for record in records)
    return [value for value in values if value is not None and str(value).strip().lower() not in ("", "nan")]


def _column(name: str, values: list[Any], sample: Sample, decimals: Mapping[str, set[str]]) -> SampledColumn:
    column = SampledColumn(name, values)
    if not values:
        return column
    if any(isinstance(value, dict | list) for value in values):
        return replace(column, holds="nested values")
    na = tuple(sorted({one for one in values if isinstance(one, str) and one.strip().lower() in _NOTHING}))
    rest = [value for value in values if value not in na] if na else values
    texts = all(isinstance(value, str) for value in rest)
    forms = _forms(rest)
    # A text of digits is a number in CSV, and a text in JSON.
    if rest and forms and (texts or not any(isinstance(value, str) for value in rest)):
        form, note = _chosen(rest, forms, sample.delimiter, decimals)
        if form != (".", "") or sample.kind == "csv" or not texts:
            return _numbers(replace(column, na=na, form=form, note=note), rest)
    if rest and texts and (dates := _dates(rest)):
        (found, odd), *others = dates
        note = f"not such a date, and so a dead letter: {len(odd)}, the first {odd[0]!r:.50}" if odd else ""
        why = "parts of the calendar are the inputs" + (f"; {others[0][0]} fits, too" if others else "")
        return replace(column, holds="texts", type="date", format=found, na=na, note=note, why=why)
    # Among texts, NA may be a country, and - a category.
    unit = next((one for one in _UNITS if one in str(values[0])), "")
    unit = unit if unit and texts and not na and _forms(_without(unit, values)) else ""
    return replace(column, holds="texts", unit=unit, identifies=_are_unique(values))


def _numbers(column: SampledColumn, rest: Sequence[Any]) -> SampledColumn:
    """Return a column of numbers, some of which are codes or count the records."""
    exact = [_exact(value, column.form) for value in rest]
    whole = [number for number in exact if number is not None and number == int(number)]
    counted = len(whole) == len(rest) >= _FEWEST and (
        all(after - before == 1 for before, after in pairwise(whole))
        or (len(set(whole)) == len(whole) and _ID.search(column.name) is not None)
    )
    long = not counted and any(isinstance(one, int) and int(float(one)) != one for one in exact)
    zeros = any(isinstance(one, str) and len(one) > 1 and one[0] == "0" and one.isdigit() for one in rest)
    if column.form == (".", "") and (long or zeros):
        code = "a code: as a number it would lose digits"
        return replace(column, holds="texts", type="string", note="", why=code, identifies=long and _are_unique(rest))
    odd = next((str(one) for one, number in zip(rest, exact, strict=True) if number is None), "")
    agree = (not odd or column.form != (".", "")) and not any(isinstance(value, bool) for value in rest)
    why = "another text is a dead letter" if agree else "missing; all others are numbers"
    return replace(column, holds="numbers", type="number" if agree else None, identifies=counted, why=why, odd=odd)


def _number(value: Any, form: _Form) -> float | None:
    """Return a value as the finite number that a source reads, with these marks; None if it is none."""
    try:
        text = NumberFormat(*form).plain(value) if isinstance(value, str) and form != (".", "") else value
        number = float(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and "_" not in str(value) else None


def _exact(value: Any, form: _Form) -> float | None:
    """Return a value as a number, a whole one with all of its digits."""
    number = _number(value, form)
    digits = number is not None and abs(number) >= _EXACT_BELOW and str(value).strip().lstrip("+-").isdecimal()
    return int(value) if digits else number


def _forms(values: Sequence[Any]) -> list[_Form]:
    """Return the forms in which all values are numbers, or nearly all if no form fits all; empty: no form fits."""
    if not values:
        return []
    allowed = len(values) - math.ceil(_NUMBERS * len(values))
    odd = {form: sum(_number(value, form) is None for value in values) for form in _FORMS}
    fewest = min(odd.values())
    return [form for form, count in odd.items() if count == fewest] if fewest <= allowed else []


def _without(unit: str, texts: Sequence[str]) -> list[str]:
    return [text.replace(unit, "", 1).strip() for text in texts]


def _decimals(columns: Sequence[Sequence[Any]]) -> dict[str, set[str]]:
    """Return, for the comma and the point, which decimal marks the columns with one show beyond doubt."""
    shown: dict[str, set[str]] = {",": set(), ".": set()}
    for values in columns:
        texts = [one for one in values if not (isinstance(one, str) and one.strip().lower() in _NOTHING)]
        if not texts or not all(isinstance(one, str) for one in texts):
            continue
        unit = next((one for one in _UNITS if one in texts[0]), "")
        bare = _without(unit, texts) if unit else texts
        decimals = {decimal for decimal, _ in _forms(bare)}
        for mark, found in shown.items():
            if len(decimals) == 1 and any(mark in text for text in bare):
                found |= decimals
    return shown


def _chosen(
    values: Sequence[Any], forms: Sequence[_Form], delimiter: str, decimals: Mapping[str, set[str]]
) -> tuple[_Form, str]:
    """Return the form of a column's numbers, and a doubt if neither it nor another column shows what a mark means."""
    first = forms[0]
    for other in (form for form in forms if form[0] != first[0]):
        for text in values:
            if _number(text, first) == _number(text, other):
                continue
            mark = "," if "," in text else "."
            shown = next((one for one in (decimals[mark], decimals[","] | decimals["."]) if len(one) == 1), None)
            semicolons = delimiter == ";"
            # A point is one to Python, and to nearly everybody who separates fields by commas.
            decimal = next(iter(shown)) if shown else "," if semicolons and mark == "," else "."
            form, otherwise = (first, other) if first[0] == decimal else (other, first)
            sure = shown is not None or (mark == "." and not semicolons)
            return form, "" if sure else _doubt(text, form, otherwise)
    return first, ""


def _doubt(text: str, form: _Form, other: _Form) -> str:
    read, otherwise = (NumberFormat(*one).plain(text) for one in (form, other))
    said = f'decimal: "{other[0]}"' + (f', thousands: "{other[1]}"' if other[1] else "")
    return f"{text.strip()} is read as {read}, which nothing in the file shows; {{{said}}} makes it {otherwise}"


def _are_unique(values: Sequence[Any]) -> bool:
    return len(values) >= _FEWEST and len(set(values)) >= _IDENTIFIES * len(values)


def _dates(texts: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the formats of a date that the most texts have, nearly all at least, each with the other texts."""
    most_odd = (1 - _DATED) * len(texts)
    if sum(len(text) < _SHORTEST_DATE for text in texts) > most_odd:
        return []
    found = [(format, odd) for format in _DATES if len(odd := _not_dates(format, texts, most_odd)) <= most_odd]
    fewest = min((len(odd) for _, odd in found), default=0)
    return [(format, odd) for format, odd in found if len(odd) == fewest]


def _not_dates(format: str, texts: Sequence[str], most: float) -> list[str]:
    dates, odd = DateParts(format, ["day"], cyclic=False, timezone=None), []
    for text in texts:
        try:
            dates.read(text)
        except ValueError:
            odd.append(text)
            if len(odd) > most:
                break
    return odd
