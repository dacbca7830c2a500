"""Readers of columns of a declared type: text, numbers, dates as parts of the calendar, hashes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from streamkernel.connectors.columns.dates import DateParts
from streamkernel.connectors.columns.numbers import NumberFormat
from streamkernel.connectors.columns.settings import ColumnSettings
from streamkernel.connectors.decode import (
    UndecodableError,
    decode_inputs,
    finite_floats,
    numbers_with_gaps,
    shown,
    text_of_float,
    too_long,
)

__all__ = ["Missing", "TypedColumn", "typed_column"]

_MOST_WORDS = 10_000
_NUMBERS = frozenset({float, int, bool})


class Missing(NamedTuple):
    """The spellings of a missing value.

    Attributes
    ----------
    texts
        Texts, compared as they stand.
    numbers
        The numbers among them: a number that is equal to one is missing, however it is written.

    """

    texts: frozenset[str]
    numbers: frozenset[float]

    @classmethod
    def of(cls, spellings: Sequence[str]) -> Missing:
        """Return what these spellings mean."""
        return cls(frozenset(spellings), frozenset(filter(math.isfinite, map(_float_or_nan, spellings))))

    def holds(self, value: Any) -> bool:
        """Tell whether a plain value is missing, or is empty."""
        if type(value) is str:
            return not value or value.isspace() or value in self.texts
        if value is None or type(value) is bool:
            return value is None
        return type(value) in (int, float) and (value != value or value in self.numbers)

    def without_texts(self, fields: Sequence[str]) -> Sequence[str]:
        """Return fields with nothing in place of a spelling of a missing value."""
        texts = self.texts
        return fields if texts.isdisjoint(fields) else ["" if field in texts else field for field in fields]

    def without(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return plain values with None in place of those that are missing."""
        try:
            if self.texts.isdisjoint(values) and self.numbers.isdisjoint(values):
                return values
        except TypeError:  # lists cannot be hashed
            pass
        return [None if self.holds(value) else value for value in values]

    def without_numbers(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return texts, finite numbers and None, with None in place of a number that means a missing value."""
        numbers = self.numbers
        if not numbers or numbers.isdisjoint(values):
            return values
        return [None if type(value) in (int, float) and value in numbers else value for value in values]


class TypedColumn(ABC):
    """A reader of one column.

    Parameters
    ----------
    name
        Of the column.
    outputs
        The names of the inputs that it becomes.
    missing
        What means that a value is missing.
    lenient
        Whether a value that is not of the type is missing, and not a fault.
    kind
        What the type is called in a fault.

    """

    def __init__(self, name: str, outputs: Sequence[str], missing: Missing, lenient: bool, kind: str) -> None:
        self.name = name
        self.outputs = tuple(outputs)
        self.missing = missing
        self.kind = kind
        self._lenient = lenient
        self._nothing: tuple[Any, ...] = (None,) * len(self.outputs)
        # What comes once often comes again.
        self._known: dict[str, tuple[Any, ...]] = {}

    def read(self, value: Any) -> tuple[Any, ...]:
        """Return the values of the inputs, None where they are missing.

        Raises UndecodableError where the value cannot be used.
        """
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
        """Return a column for each input; raise where one of the values cannot be used."""
        known = self._known
        if {str}.issuperset(map(type, values)):
            if len(known) < _MOST_WORDS:
                known.update({value: self.read(value) for value in set(values).difference(known)})
            try:
                rows = list(map(known.__getitem__, values))
            except KeyError:
                rows = [known[value] if value in known else self.read(value) for value in values]
        else:
            rows = list(map(self.read, values))
        return list(zip(*rows, strict=True)) or [()] * len(self.outputs)

    @abstractmethod
    def _convert(self, value: Any) -> Sequence[Any]:
        """Return the values of the inputs; raise ValueError for a value that is not of the type."""


class StringColumn(TypedColumn):
    """A column of text, whatever it looks like: each text is a category."""

    def __init__(self, name: str, missing: Missing, max_string: int) -> None:
        super().__init__(name, [name], missing, lenient=False, kind="text")
        self._max_string = max_string

    def _convert(self, value: Any) -> Sequence[Any]:
        text = _text(value)
        if len(text) > self._max_string:
            raise too_long(f"input {shown(self.name)}", text, self._max_string)
        return [text]


class NumberColumn(TypedColumn):
    """A column of numbers, written as such or as text."""

    def __init__(self, name: str, missing: Missing, lenient: bool, numbers: NumberFormat | None = None) -> None:
        super().__init__(name, [name], missing, lenient, "a number")
        self._numbers = numbers

    def read_all(self, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        kinds = set(map(type, values))
        if self._numbers is not None and str in kinds:
            return super().read_all(values)
        if kinds == {str} and "_" not in "".join(values):
            fields = self.missing.without_texts(values)
            numbers = finite_floats(fields) or numbers_with_gaps(fields)
            if numbers is not None:
                return [self.missing.without_numbers(numbers)]
        elif kinds <= _NUMBERS and _is_finite(values):
            return [self.missing.without_numbers(values)]
        return [[self.read(value)[0] for value in values]]

    def _convert(self, value: Any) -> Sequence[Any]:
        number = value
        if type(value) is str and self._numbers is not None:
            number = float(self._numbers.plain(value))
        elif type(value) is str:
            if "_" in value:  # Python reads 1_000 as a number
                raise ValueError(value)
            number = float(value)
        if not _is_finite([number]):
            if number != number:
                return self._nothing
            if not self._lenient:
                raise UndecodableError("infinite", f"input {shown(self.name)} is infinite")
            raise ValueError(value)
        return self._nothing if type(number) is not bool and number in self.missing.numbers else [number]


class NumberOrTextColumn(TypedColumn):
    """A column of text in which what is written as a number is one, and any other text a category."""

    def __init__(self, name: str, missing: Missing, max_string: int, numbers: NumberFormat) -> None:
        super().__init__(name, [name], missing, lenient=False, kind="a number or text")
        self._max_string = max_string
        self._numbers = numbers

    def _convert(self, value: Any) -> Sequence[Any]:
        try:
            read = float(self._numbers.plain(value))
        except ValueError:
            read = value
        if read in self.missing.numbers:
            return self._nothing
        return [decode_inputs([(self.name, read)], self._max_string).get(self.name)]


class DateColumn(TypedColumn):
    """A column of dates, which become parts of the calendar."""

    def __init__(self, name: str, missing: Missing, settings: ColumnSettings) -> None:
        self._dates = DateParts(settings.format, settings.parts, settings.cyclic, settings.timezone)
        outputs = [f"{name}.{part}" for part in self._dates.names]
        super().__init__(
            name,
            outputs,
            missing,
            settings.invalid == "missing",
            f"a date of the format {settings.format}",
        )

    def _convert(self, value: Any) -> Sequence[Any]:
        return self._dates.read(_text(value).strip())


class HashColumn(TypedColumn):
    """A column of text of which only a bucket is kept: the same text is always in the same one."""

    def __init__(self, name: str, missing: Missing, buckets: int) -> None:
        super().__init__(name, [name], missing, lenient=False, kind="text")
        if buckets < 1:
            raise ValueError(f"a hash has at least 1 bucket, got {buckets}")
        self._buckets = buckets

    def _convert(self, value: Any) -> Sequence[Any]:
        digest = blake2b(_text(value).encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return [str(int.from_bytes(digest, "little") % self._buckets)]


def typed_column(
    name: str, settings: ColumnSettings, missing: Missing, max_string: int, numbers: NumberFormat | None = None
) -> TypedColumn | None:
    """Return the reader of a column by its settings; None for one that is read as the source does by itself.

    Numbers are read as they are written in text, by default as Python writes them.
    """
    match settings.type:
        case "auto" if numbers is not None:
            return NumberOrTextColumn(name, missing, max_string, numbers)
        case "string":
            return StringColumn(name, missing, max_string)
        case "number":
            return NumberColumn(name, missing, settings.invalid == "missing", numbers)
        case "date":
            return DateColumn(name, missing, settings)
        case "hash":
            return HashColumn(name, missing, settings.buckets)
    return None


def _text(value: Any) -> str:
    """Return a plain value as text, as JSON writes it."""
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is float and math.isfinite(value):
        return text_of_float(value)
    # Python refuses to write very long integers.
    return repr(float(value)) if type(value) is int and value.bit_length() > 2000 else str(value)


def _is_finite(values: Sequence[Any]) -> bool:
    try:
        return math.isfinite(math.fsum(values))
    except (OverflowError, ValueError):  # an integer past the largest float; infinities that cancel
        return False


def _float_or_nan(text: str) -> float:
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan
