"""Readers of columns: each turns a column's values, of CSV or JSON, into one or more inputs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import repeat
from typing import Any

from streamkernel.connectors.columns.dates import DateParts
from streamkernel.connectors.columns.settings import ColumnSettings
from streamkernel.connectors.decode import (
    UndecodableError,
    decode_inputs,
    numbers_with_gaps,
    present,
    shown,
    text_of_float,
    too_long,
)

__all__ = ["ColumnReader", "NumberFormat", "inputs_of_columns"]

_MOST_WORDS = 10_000
_PLAIN = frozenset({float, int, bool, type(None)})
# A blank or an apostrophe may mean another one.
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


class ColumnReader:
    """A reader of one column.

    Parameters
    ----------
    name
        The column's name.
    settings
        Its type. ``"auto"`` keeps values as they are. In a source of texts, each text that reads as a number is one.
    na
        The spellings of a missing value. If one is a number, an equal number is missing, in any notation.
    max_string
        The maximum length of a text.
    numbers
        The notation of numbers in text; None: Python's.
    of_texts
        Whether the source has texts only, as CSV.

    Attributes
    ----------
    outputs
        The names of the inputs.
    keeps_numbers
        Whether each number is the input as it is.

    """

    def __init__(
        self,
        name: str,
        settings: ColumnSettings,
        na: Sequence[str],
        max_string: int,
        numbers: NumberFormat | None,
        of_texts: bool,
    ) -> None:
        self.name = name
        self.outputs: tuple[str, ...] = (name,)
        self._missing = frozenset(na)
        self._missing_numbers = frozenset(filter(math.isfinite, map(_float_or_nan, na)))
        self._max_string = max_string
        self._format = numbers
        self._lenient = settings.invalid == "missing"
        self._type = settings.type
        self._reads_numbers = settings.type == "number" or (of_texts and settings.type == "auto")
        self.keeps_numbers = settings.type in ("auto", "number") and not self._missing_numbers
        self._expected = "a number"
        if settings.type == "date":
            self._dates = DateParts(settings.format, settings.parts, settings.cyclic, settings.timezone)
            self.outputs = tuple(f"{name}.{part}" for part in self._dates.names)
            self._expected = f"a date of the format {settings.format}"
        if settings.buckets < 1:
            raise ValueError(f"a hash has at least 1 bucket, got {settings.buckets}")
        self._buckets = settings.buckets
        self._nothing: tuple[Any, ...] = (None,) * len(self.outputs)
        # Texts often come again: their inputs, and those that are inputs as they are.
        self._known: dict[str, tuple[Any, ...]] = {}
        self._same: set[str] = set()

    def read(self, value: Any) -> tuple[Any, ...]:
        """Return the values of the inputs, None for missing ones; raises UndecodableError for an unusable value."""
        if type(value) is not str:
            return self._read(value)
        known = self._known.get(value)
        if known is None:
            known = self._read(value)
            if len(self._known) < _MOST_WORDS:
                self._known[value] = known
                if known == (value,):
                    self._same.add(value)
        return known

    def _read(self, value: Any) -> tuple[Any, ...]:
        if self._is_missing(value):
            return self._nothing
        if isinstance(value, dict | list):
            raise UndecodableError(
                "nested", f"input {shown(self.name)} is a {type(value).__name__}, not a number or a string"
            )
        try:
            return tuple(self._convert(value))
        except UndecodableError:
            raise
        except (ValueError, OverflowError):
            if self._lenient:
                return self._nothing
            raise UndecodableError(
                "input_type", f"input {shown(self.name)} is {shown(value)}, not {self._expected}"
            ) from None

    def read_all(self, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """Return a column for each input, with the values of `read`; None of the values may be infinite or NaN."""
        if (numbers := self._read_numbers(values)) is not None:
            return [numbers]
        if {str}.issuperset(map(type, values)) and self._same.issuperset(values):
            return [values]
        rows = list(map(self.read, values))
        return list(zip(*rows, strict=True)) or [()] * len(self.outputs)

    def _is_missing(self, value: Any) -> bool:
        if type(value) is str:
            return not value or value.isspace() or value in self._missing
        if value is None or type(value) is bool:
            return value is None
        return type(value) in (int, float) and (value != value or value in self._missing_numbers)

    def _read_numbers(self, values: Sequence[Any]) -> Sequence[float | None] | None:
        """Return a column of numbers that can be read at once; None for any other."""
        if self._type not in ("auto", "number"):
            return None
        absent = self._missing_numbers
        kinds = set(map(type, values))
        if self._reads_numbers and kinds <= {str}:
            if self._format is not None or "_" in "".join(values):
                return None
            fields = ["" if field in self._missing else field for field in values] if self._missing else values
            numbers = numbers_with_gaps(fields)
            if numbers is None or not absent or absent.isdisjoint(numbers):
                return numbers
            return [None if number in absent else number for number in numbers]
        return values if kinds <= _PLAIN and (not absent or absent.isdisjoint(values)) else None

    def _convert(self, value: Any) -> Sequence[Any]:
        """Return the values of the inputs; raise ValueError for a value of another type."""
        match self._type:
            case "number":
                return [self._finite(value)]
            case "string":
                text = _text(value)
                if len(text) > self._max_string:
                    raise too_long(f"input {shown(self.name)}", text, self._max_string)
                return [text]
            case "date":
                return self._dates.read(_text(value).strip())
            case "hash":
                digest = blake2b(_text(value).encode("utf-8", "surrogatepass"), digest_size=8).digest()
                return [str(int.from_bytes(digest, "little") % self._buckets)]
        if self._reads_numbers:
            try:
                value = self._number(value)
            except ValueError:
                pass  # it is a category
            else:
                if value in self._missing_numbers:
                    return self._nothing
        return [decode_inputs([(self.name, value)], self._max_string).get(self.name)]

    def _number(self, value: Any) -> Any:
        """Return a text's number, or ValueError."""
        if type(value) is not str:
            return value
        if self._format is not None:
            return float(self._format.plain(value))
        if "_" in value:  # Python reads 1_000 as a number
            raise ValueError(value)
        return float(value)

    def _finite(self, value: Any) -> Any:
        """Return a number, or None if it is a missing one."""
        number = self._number(value)
        try:
            finite = math.isfinite(number)
        except OverflowError:  # an integer beyond the largest float
            finite = False
        if number != number or (type(number) is not bool and number in self._missing_numbers):
            return None
        if finite:
            return number
        if self._lenient:
            raise ValueError(value)
        raise UndecodableError("infinite", f"input {shown(self.name)} is infinite")


def inputs_of_columns(
    readers: Iterable[tuple[ColumnReader | None, Sequence[Any]]],
    n_records: int,
    objects: Sequence[dict[str, Any]] = (),
) -> Sequence[dict[str, Any]]:
    """Return the inputs of some records, from the values of each column; a column without a reader is no input.

    If the values of all columns are inputs as they are, the inputs are the `objects`.
    """
    names: list[str] = []
    columns: list[Sequence[Any]] = []
    changed = not objects
    for reader, values in readers:
        if reader is None:
            changed = True
        else:
            names += reader.outputs
            columns += reader.read_all(values)
            changed = changed or columns[-1] is not values
    if not changed and names == list(objects[0]) and not any(None in column for column in columns):
        return objects
    rows = zip(*columns, strict=True) if columns else repeat((), n_records)
    inputs: list[dict[str, Any]] = list(map(dict, map(zip, repeat(names), rows)))
    return list(map(present, inputs)) if any(None in column for column in columns) else inputs


def _text(value: Any) -> str:
    """Return a plain value as text, as JSON writes it."""
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is float and math.isfinite(value):
        return text_of_float(value)
    # Python refuses to write very long integers.
    return repr(float(value)) if type(value) is int and value.bit_length() > 2000 else str(value)


def _float_or_nan(text: str) -> float:
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan
