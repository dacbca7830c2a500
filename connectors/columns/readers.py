"""Readers of columns: each turns a column's values, of CSV or JSON, into one or more inputs."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any

from streamkernel.connectors.columns.dates import DateParts
from streamkernel.connectors.columns.settings import ColumnSettings
from streamkernel.connectors.decode import (
    UndecodableError,
    decode_inputs,
    shown,
    text_of_float,
    too_long,
)

__all__ = ["ColumnReader", "NumberFormat"]

_MOST_WORDS = 10_000
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
        # Texts often come again.
        self._known: dict[str, tuple[Any, ...]] = {}
        self._is_plain = self._reads_numbers and self.keeps_numbers and numbers is None and len(name) <= max_string

    def read(self, value: Any) -> tuple[Any, ...]:
        """Return the values of the inputs, None for missing ones; raises UndecodableError for an unusable value."""
        if type(value) is not str:
            return self._read(value)
        known = self._known.get(value)
        if known is None:
            known = self._read(value)
            if len(self._known) < _MOST_WORDS:
                self._known[value] = known
        return known

    def put(self, value: Any, inputs: dict[str, Any]) -> None:
        """Add the inputs of a value, as `read` returns them."""
        if self.keeps_numbers and type(value) is float and math.isfinite(value):
            inputs[self.name] = value
        elif len(read := self.read(value)) == 1:
            inputs[self.outputs[0]] = read[0]
        else:
            inputs.update(zip(self.outputs, read, strict=True))

    def _read(self, value: Any) -> tuple[Any, ...]:
        if self._is_plain and type(value) is str and "_" not in value:
            with suppress(ValueError):
                if math.isfinite(number := float(value)):
                    return (number,)
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

    def _is_missing(self, value: Any) -> bool:
        if type(value) is str:
            return not value or value.isspace() or value in self._missing
        if value is None or type(value) is bool:
            return value is None
        return type(value) in (int, float) and (value != value or value in self._missing_numbers)

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
