"""Readers of columns: each turns a column's values, of CSV or JSON, into one or more inputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import repeat
from typing import Any, NamedTuple

from streamkernel.connectors.columns.dates import DateParts
from streamkernel.connectors.columns.numbers import NumberFormat
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

__all__ = ["ColumnReader", "Missing", "column_reader", "inputs_of_columns"]

_MOST_WORDS = 10_000
_PLAIN = frozenset({float, int, bool, type(None)})


class Missing(NamedTuple):
    """The spellings of a missing value.

    Attributes
    ----------
    texts
        Exact texts.
    numbers
        The numbers among them: an equal number is missing, in any notation.

    """

    texts: frozenset[str] = frozenset()
    numbers: frozenset[float] = frozenset()

    @classmethod
    def of(cls, spellings: Sequence[str]) -> Missing:
        """Return the meaning of some spellings."""
        return cls(frozenset(spellings), frozenset(filter(math.isfinite, map(_float_or_nan, spellings))))

    def holds(self, value: Any) -> bool:
        """Whether a value is missing or empty."""
        if type(value) is str:
            return not value or value.isspace() or value in self.texts
        if value is None or type(value) is bool:
            return value is None
        return type(value) in (int, float) and (value != value or value in self.numbers)


class ColumnReader:
    """A reader of one column: values become the type that the source shows.

    Parameters
    ----------
    name
        The column's name.
    missing
        The spellings of a missing value.
    max_string
        The maximum length of a text.
    outputs
        The names of the inputs; None: the column's.
    lenient
        Whether a value of another type is missing instead of a fault.
    kind
        The name of the type in a fault.

    """

    def __init__(
        self,
        name: str,
        missing: Missing,
        max_string: int,
        outputs: Sequence[str] | None = None,
        lenient: bool = False,
        kind: str = "a number or text",
    ) -> None:
        self.name = name
        self.outputs = (name,) if outputs is None else tuple(outputs)
        self.missing = missing
        self.kind = kind
        self.max_string = max_string
        self._lenient = lenient
        self._nothing: tuple[Any, ...] = (None,) * len(self.outputs)
        # Texts often come again: their inputs, and those that are inputs as they are.
        self._known: dict[str, tuple[Any, ...]] = {}
        self._same: set[str] = set()

    def read(self, value: Any) -> tuple[Any, ...]:
        """Return the values of the inputs, None for missing ones; raises UndecodableError for an unusable value."""
        if self.missing.holds(value):
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
                "input_type", f"input {shown(self.name)} is {shown(value)}, not {self.kind}"
            ) from None

    def read_all(self, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """Return a column for each input, with the values of `read`; None of the values may be infinite or NaN."""
        if (numbers := self._read_numbers(values)) is not None:
            return [numbers]
        known = self._known
        if not {str}.issuperset(map(type, values)):
            rows = list(map(self.read, values))
        elif self._same.issuperset(values):
            return [values]
        else:
            new = set(values).difference(known)
            if len(known) < _MOST_WORDS:
                known.update({value: self.read(value) for value in new})
                self._same.update(value for value in new if known[value] == (value,))
            found = map(known.get, values)
            rows = [self.read(value) if row is None else row for value, row in zip(values, found, strict=True)]
        return list(zip(*rows, strict=True)) or [()] * len(self.outputs)

    def _read_numbers(self, values: Sequence[Any]) -> Sequence[float | None] | None:
        """Return a column of numbers that can be read at once; None for any other."""
        absent = self.missing.numbers
        plain = _PLAIN.issuperset(map(type, values)) and (not absent or absent.isdisjoint(values))
        return values if plain else None

    def _convert(self, value: Any) -> Sequence[Any]:
        """Return the values of the inputs; raise ValueError for a value of another type."""
        return [decode_inputs([(self.name, value)], self.max_string).get(self.name)]


class TextReader(ColumnReader):
    """A reader of text in which each number is one, and any other text a category.

    Parameters
    ----------
    name, missing, max_string
        As for `ColumnReader`.
    numbers
        The notation of numbers; None: Python's.

    """

    def __init__(self, name: str, missing: Missing, max_string: int, numbers: NumberFormat | None, **more: Any) -> None:
        super().__init__(name, missing, max_string, **more)
        self._numbers = numbers

    def _read_numbers(self, values: Sequence[Any]) -> Sequence[float | None] | None:
        if {str}.issuperset(map(type, values)):
            if self._numbers is not None or "_" in "".join(values):
                return None
            texts, absent = self.missing
            fields = ["" if field in texts else field for field in values] if texts else values
            numbers = numbers_with_gaps(fields)
            if numbers is None or not absent or absent.isdisjoint(numbers):
                return numbers
            return [None if number in absent else number for number in numbers]
        return super()._read_numbers(values)

    def _number(self, value: Any) -> Any:
        """Return a text's number, or ValueError."""
        if type(value) is not str:
            return value
        if self._numbers is not None:
            return float(self._numbers.plain(value))
        if "_" in value:  # Python reads 1_000 as a number
            raise ValueError(value)
        return float(value)

    def _convert(self, value: Any) -> Sequence[Any]:
        try:
            number = self._number(value)
        except ValueError:
            number = value
        return self._nothing if number in self.missing.numbers else super()._convert(number)


class NumberReader(TextReader):
    """A reader of numbers, also as text."""

    def _convert(self, value: Any) -> Sequence[Any]:
        number = self._number(value)
        try:
            finite = math.isfinite(number)
        except OverflowError:  # an integer beyond the largest float
            finite = False
        if not finite:
            if number != number:
                return self._nothing
            if not self._lenient:
                raise UndecodableError("infinite", f"input {shown(self.name)} is infinite")
            raise ValueError(value)
        return self._nothing if type(number) is not bool and number in self.missing.numbers else [number]


class StringReader(ColumnReader):
    """A reader of text: each text is a category, also one that looks like a number."""

    def _read_numbers(self, values: Sequence[Any]) -> None:  # noqa: ARG002
        return None

    def _convert(self, value: Any) -> Sequence[Any]:
        text = _text(value)
        if len(text) > self.max_string:
            raise too_long(f"input {shown(self.name)}", text, self.max_string)
        return [text]


class DateReader(StringReader):
    """A reader of dates, which become parts of the calendar."""

    def __init__(self, name: str, missing: Missing, max_string: int, settings: ColumnSettings) -> None:
        self._dates = DateParts(settings.format, settings.parts, settings.cyclic, settings.timezone)
        outputs = [f"{name}.{part}" for part in self._dates.names]
        lenient, kind = settings.invalid == "missing", f"a date of the format {settings.format}"
        super().__init__(name, missing, max_string, outputs, lenient, kind)

    def _convert(self, value: Any) -> Sequence[Any]:
        return self._dates.read(_text(value).strip())


class HashReader(StringReader):
    """A reader of text that keeps only its bucket: the same text is always in the same one."""

    def __init__(self, name: str, missing: Missing, max_string: int, buckets: int) -> None:
        super().__init__(name, missing, max_string)
        if buckets < 1:
            raise ValueError(f"a hash has at least 1 bucket, got {buckets}")
        self._buckets = buckets

    def _convert(self, value: Any) -> Sequence[Any]:
        digest = blake2b(_text(value).encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return [str(int.from_bytes(digest, "little") % self._buckets)]


def column_reader(
    name: str, settings: ColumnSettings, missing: Missing, max_string: int, numbers: NumberFormat | None, texts: bool
) -> ColumnReader:
    """Return the reader of a column by its settings; `texts` says whether the source has texts only, as CSV."""
    match settings.type:
        case "string":
            return StringReader(name, missing, max_string)
        case "number":
            lenient = settings.invalid == "missing"
            return NumberReader(name, missing, max_string, numbers, lenient=lenient, kind="a number")
        case "date":
            return DateReader(name, missing, max_string, settings)
        case "hash":
            return HashReader(name, missing, max_string, settings.buckets)
    return TextReader(name, missing, max_string, numbers) if texts else ColumnReader(name, missing, max_string)


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
