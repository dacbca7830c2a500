"""What a comma and a point mean in the numbers of a file: one thing in all its columns, where one of them shows it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from streamkernel.connectors.columns.numbers import NumberFormat

__all__ = ["Form", "Marks", "are_numbers", "number_of", "unit_of"]

# Decimal and thousands marks, as far as they are not those of Python.
_FORMS = ((".", ","), (",", ""), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'"))
_NUMBERS = 0.9
_UNITS = ("$", "€", "£", "¥", "₹", "%", "EUR", "USD", "GBP", "CHF", "JPY")


class Form(NamedTuple):
    """How the numbers of a column are written.

    Attributes
    ----------
    decimal, thousands
        The marks.
    doubt
        What nothing in the file tells, and what to set if it is not so; empty: there is no doubt.

    """

    decimal: str
    thousands: str
    doubt: str = ""


class Marks:
    """The marks in the numbers of a file.

    A column such as ``17,50`` shows what its comma means, a column such as ``24,361`` does not: it follows the others.

    Parameters
    ----------
    columns
        The texts of each column of the file, without those that mean a missing value.
    delimiter
        What separates the fields of CSV: where it is a semicolon, the comma is likely to be a decimal one.

    Examples
    --------
    >>> either = ["24,361", "11,020"]
    >>> Marks([either, ["3,5"]]).form_of(either)
    Form(decimal=',', thousands='', doubt='')
    >>> Marks([either, ["3.5"]]).form_of(either)
    Form(decimal='.', thousands=',', doubt='')
    >>> Marks([either]).form_of(either).doubt
    '24,361 is read as 24361, which nothing in the file shows; {decimal: ","} makes it 24.361'

    """

    def __init__(self, columns: Iterable[Sequence[str]] = (), delimiter: str = ",") -> None:
        self._delimiter = delimiter
        # The decimal marks of the columns that have a comma, or a point, and show what it means.
        self._shown: dict[str, set[str]] = {",": set(), ".": set()}
        for texts in columns:
            unit = unit_of(texts)
            bare = _without(unit, texts) if unit else texts
            decimals = {decimal for decimal, _ in _fitting(bare)}
            for mark, shown in self._shown.items():
                if len(decimals) == 1 and any(mark in text for text in bare):
                    shown |= decimals

    def form_of(self, texts: Sequence[str]) -> Form | None:
        """Return how the numbers of a column are written; None where not nearly all of its texts are numbers."""
        fitting = _fitting(texts)
        if not fitting:
            return None
        # A column without a fraction and without groups reads the same by all of them.
        others = [form for form in fitting if form[0] != fitting[0][0]]
        marked = next(
            (
                (text, mark)
                for mark in ",."
                for text in texts
                if mark in text and others and _fits(fitting[0], [text]) and _fits(others[0], [text])
            ),
            None,
        )
        if marked is None:
            return Form(*fitting[0])
        text, mark = marked
        decimal, sure = self._decimal(mark)
        form, other = (fitting[0], others[0]) if fitting[0][0] == decimal else (others[0], fitting[0])
        return Form(*form) if sure else Form(*form, _doubt(text, form, other))

    def _decimal(self, mark: str) -> tuple[str, bool]:
        """Return the decimal mark of a column whose commas, or points, may be it; and whether there is no doubt."""
        for shown in (self._shown[mark], self._shown[","] | self._shown["."]):
            if len(shown) == 1:
                return next(iter(shown)), True
        semicolons = self._delimiter == ";"
        # A point is one to Python, and to nearly everybody who separates fields by commas.
        return ("," if semicolons and mark == "," else "."), mark == "." and not semicolons


def number_of(value: Any) -> float | None:
    """Return a value as the finite number that a source reads it as; None where it is none."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and "_" not in str(value) else None


def unit_of(texts: Sequence[str]) -> str:
    """Return the currency or percent sign in texts that are numbers without it; empty: there is none.

    Examples
    --------
    >>> unit_of(["-2.059,45 €", "17,50 €"]), unit_of(["17,50"]), unit_of(["€ and $"])
    ('€', '', '')

    """
    unit = next((unit for unit in _UNITS if texts and unit in texts[0]), "")
    return unit if unit and _fitting(_without(unit, texts)) else ""


def _without(unit: str, texts: Sequence[str]) -> list[str]:
    return [text.replace(unit, "", 1).strip() for text in texts]


def are_numbers(values: Sequence[Any]) -> bool:
    """Return whether nearly all values are finite numbers, as a source reads them: the others are mistakes."""
    return sum(number_of(value) is not None for value in values) >= _NUMBERS * len(values)


def _fitting(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return the forms in which all texts are numbers, that of Python first; else those in which nearly all are."""
    if not texts:
        return []
    if all(number_of(text) is not None for text in texts):
        # The others with a decimal point read them alike, and without a point all do.
        others = [form for form in _FORMS if form[0] == ","] if any("." in text for text in texts) else []
        return [(".", ""), *(form for form in others if _fits(form, texts))]
    if found := [form for form in _FORMS if _fits(form, texts)]:
        return found
    most_odd = len(texts) - math.ceil(_NUMBERS * len(texts))
    return [] if are_numbers(texts) else [form for form in _FORMS if _fits(form, texts, most_odd)]


def _fits(form: tuple[str, str], texts: Sequence[str], most_odd: int = 0) -> bool:
    numbers, n_odd = NumberFormat(*form), 0
    for text in texts:
        try:
            numbers.plain(text)
        except ValueError:
            n_odd += 1
            if n_odd > most_odd:
                return False
    return True


def _doubt(text: str, form: tuple[str, str], other: tuple[str, str]) -> str:
    decimal, thousands = other
    read, otherwise = (NumberFormat(*one).plain(text) for one in (form, other))
    said = f'decimal: "{decimal}"' + (f', thousands: "{thousands}"' if thousands else "")
    return f"{text.strip()} is read as {read}, which nothing in the file shows; {{{said}}} makes it {otherwise}"
