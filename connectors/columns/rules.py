"""The rules of a source's columns: which are inputs, the reader of each, and a column for each nested value."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

from streamkernel.connectors.columns.readers import ColumnReader, NumberFormat
from streamkernel.connectors.columns.settings import ColumnSettings, InputSettings, Nested, ancestry
from streamkernel.connectors.decode import UndecodableError, present, shown
from streamkernel.connectors.names import hint, nfc, with_normal_names

__all__ = ["ColumnRules", "flattened"]

_MOST_NAMES = 2000
_DEEPEST = 32
_AS_IT_IS = ColumnSettings()
_NUMBERS = frozenset({float, int, bool})


class ColumnRules:
    """A choice of the columns that are inputs, with a reader for each.

    Parameters
    ----------
    settings
        The settings of the columns.
    max_string
        The maximum length of a text.
    of_texts
        Whether all values are texts, as in CSV: a text that reads as a number is one.

    Attributes
    ----------
    may_unnest
        Whether the settings flatten or ignore nested values.
    numbers
        The notation of numbers in text; None: Python's.

    Raises
    ------
    ValueError
        For an unknown date format, part or time zone, or a number of buckets below 1.

    Examples
    --------
    >>> rules = ColumnRules(InputSettings(exclude=("id",), types={"zip": ColumnSettings("string")}), 256)
    >>> rules.read({"id": 7, "zip": 2134, "price": 1.5})
    {'zip': '2134', 'price': 1.5}

    """

    def __init__(self, settings: InputSettings, max_string: int, of_texts: bool = False) -> None:
        self.settings = settings
        self.max_string = max_string
        self.numbers = _number_format(settings)
        self._of_texts = of_texts
        self._columns: dict[str, ColumnReader | None] = {}
        # Columns by their names in objects, and those of them whose numbers are inputs as they are.
        self._known: set[str] = set()
        self._same_numbers: set[str] = set()
        modes = {settings.nested} | {one.nested for one in settings.types.values()}
        self.may_unnest = not modes <= {"dead_letter", None}
        for name in settings.types:
            self.column(name)  # raise errors of the settings now

    def column(self, name: str) -> ColumnReader | None:
        """Return the reader of a column; None if it is not an input."""
        try:
            return self._columns[name]
        except KeyError:
            column = None
            if self.settings.is_input(name):
                one = self.settings.types.get(name, _AS_IT_IS)
                na, numbers = self.settings.na if one.na is None else one.na, _number_format(one) or self.numbers
                column = ColumnReader(name, one, na, self.max_string, numbers, self._of_texts)
            if len(self._columns) < _MOST_NAMES:
                self._columns[name] = column
            return column

    def read(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the inputs of one object of JSON; raise UndecodableError if it is unusable."""
        values = self.flat(values)
        if self._same_numbers.issuperset(values) and _are_finite(values.values()):
            return values
        inputs: dict[str, Any] = {}
        known = self._known.issuperset(values)
        for name, value in (values if known else with_normal_names(values)).items():
            reader = self._columns[name] if known else self._reader(name)
            if reader is not None:
                reader.put(value, inputs)
        if not known:
            self._known.update(name for name in values if name in self._columns and nfc(name) == name)
            self._same_numbers = {name for name in self._known if (one := self._columns[name]) and one.keeps_numbers}
        return present(inputs)

    def _reader(self, name: str) -> ColumnReader | None:
        if len(name) > self.max_string:
            raise UndecodableError("string_too_long", f"the name of an input is {len(name)} characters long")
        return self.column(name)

    def in_texts(self) -> ColumnRules:
        """Return the same rules for a source whose values are all texts."""
        return ColumnRules(self.settings, self.max_string, of_texts=True)

    def without(self, names: Collection[str]) -> ColumnRules:
        """Return the same rules with more excluded columns."""
        settings = replace(self.settings, exclude=(*self.settings.exclude, *names))
        return ColumnRules(settings, self.max_string, self._of_texts)

    def flat(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return an object with its nested values flattened or left out, as the settings say."""
        if self.may_unnest and any(isinstance(value, dict | list) for value in values.values()):
            return flattened(values, self._nested)
        return values

    def named(self) -> Iterator[tuple[str, str]]:
        """Yield each name in the settings, after the key of its setting."""
        for key in ("include", "exclude", "types"):
            yield from ((key, name) for name in getattr(self.settings, key) or ())

    def find_unknown(self, columns: Collection[str], all_excluded: bool = True) -> str | None:
        """Return an error about a name in the settings that is not among the columns; None if all are.

        Excluded columns must exist only if `all_excluded`.
        """
        for key, name in self.named():
            if name not in columns and (all_excluded or key != "exclude"):
                empty = "" if all_excluded else " (its cells may be empty)"
                return f"there is no column {shown(name)} for inputs.{key}{hint(name, columns)}{empty}"
        return None

    def why_not(self, name: str) -> str:
        """Return why a column is not an input."""
        return "excluded" if self.settings.is_excluded(name) else "not in include"

    def _nested(self, name: str) -> Nested:
        """Return the treatment of an object or list under a name, by its setting or the nearest outer one."""
        if len(name) > self.max_string:
            return "dead_letter"
        if self.settings.is_excluded(name):
            return "ignore"
        said = (self.settings.types.get(outer, _AS_IT_IS).nested for outer in reversed(ancestry(name)))
        return next((mode for mode in said if mode is not None), self.settings.nested)


def _are_finite(values: Collection[Any]) -> bool:
    """Whether values are numbers, true or false, and none is infinite or NaN."""
    try:
        return _NUMBERS.issuperset(map(type, values)) and math.isfinite(math.fsum(values))
    except (OverflowError, ValueError):
        return False


def _number_format(settings: ColumnSettings | InputSettings) -> NumberFormat | None:
    if settings.decimal is None and settings.thousands is None:
        return None
    return NumberFormat(settings.decimal or ".", settings.thousands or "")


def flattened(values: dict[str, Any], mode_of: Callable[[str], Nested]) -> dict[str, Any]:
    """Return the columns of an object.

    Parameters
    ----------
    values
        What JSON holds, by name.
    mode_of
        What becomes of a nested value under a name: ``"dead_letter"`` leaves it as it is, for its reader to refuse.

    Raises
    ------
    UndecodableError
        Where values are nested more than 32 deep, or two of them would have the same name.

    Examples
    --------
    >>> flattened({"a": 1, "b": {"c": 2, "d": [3, 4]}}, lambda name: "flatten")
    {'a': 1, 'b.c': 2, 'b.d.0': 3, 'b.d.1': 4}

    """
    columns: dict[str, Any] = {}
    _flatten(values.items(), "", mode_of, columns, 0)
    return columns


def _flatten(
    pairs: Iterable[tuple[Any, Any]], prefix: str, mode_of: Callable[[str], Nested], columns: dict[str, Any], depth: int
) -> None:
    if depth > _DEEPEST:
        raise UndecodableError("nested", f"input {shown(prefix.partition('.')[0])} is nested more than {_DEEPEST} deep")
    for key, value in pairs:
        name = nfc(f"{prefix}{key}")
        mode = mode_of(name) if isinstance(value, dict | list) else "dead_letter"
        if mode == "dead_letter":
            if name in columns:
                detail = f"two values have the same name {shown(name)} once they are flattened"
                raise UndecodableError("nested", detail, "same_name")
            columns[name] = value
        elif mode == "flatten":
            inner = value.items() if isinstance(value, dict) else enumerate(value)
            _flatten(inner, f"{name}.", mode_of, columns, depth + 1)
