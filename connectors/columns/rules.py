"""The rules of a source's columns: which are inputs, and what reads each."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from streamkernel.connectors.columns.nested import flattened
from streamkernel.connectors.columns.numbers import NumberFormat
from streamkernel.connectors.columns.settings import ColumnSettings, InputSettings, Nested, ancestry
from streamkernel.connectors.columns.typed import Missing, TypedColumn, typed_column
from streamkernel.connectors.decode import shown
from streamkernel.connectors.names import hint

__all__ = ["Column", "ColumnRules"]

_MOST_NAMES = 10_000
_AS_IT_IS = ColumnSettings()


class Column(NamedTuple):
    """How a column is read.

    Attributes
    ----------
    missing
        What means that a value is missing, besides nothing at all; None: nothing else does.
    typed
        What reads it; None: the source by itself.

    """

    missing: Missing | None = None
    typed: TypedColumn | None = None


class ColumnRules:
    """Which columns are inputs, and how each is read.

    Parameters
    ----------
    settings
        What is known of them.
    max_string
        The most characters of a string value.
    of_texts
        Whether all values are texts, as in CSV, so that numbers are those texts that read as one.

    Attributes
    ----------
    may_unnest
        Whether anything nested may be flattened or left out.
    numbers
        How numbers are written in text; None: as Python writes them.

    Raises
    ------
    ValueError
        For a date's format, part or zone that does not exist, or a number of buckets below 1.

    Examples
    --------
    >>> rules = ColumnRules(InputSettings(exclude=("id",), types={"zip": ColumnSettings("string")}), 256)
    >>> rules.column("id"), rules.column("color"), rules.column("zip").typed.outputs
    (None, Column(missing=None, typed=None), ('zip',))

    """

    def __init__(self, settings: InputSettings, max_string: int, of_texts: bool = False) -> None:
        self.settings = settings
        self.max_string = max_string
        self.numbers = _number_format(settings)
        self._of_texts = of_texts
        self._columns: dict[str, Column | None] = {}
        modes = {settings.nested} | {one.nested for one in settings.types.values()}
        self.may_unnest = not modes <= {"dead_letter", None}
        for name in settings.types:
            self.column(name)  # what cannot be is an error now, not with the first record

    def column(self, name: str) -> Column | None:
        """Return how a column is read; None where it is no input."""
        if len(name) > self.max_string:  # of no use to a model, and neither kept nor taken apart here
            return Column()
        try:
            return self._columns[name]
        except KeyError:
            column = self._column(name)
            if len(self._columns) < _MOST_NAMES:
                self._columns[name] = column
            return column

    def in_texts(self) -> ColumnRules:
        """Return the same rules for a source whose values are all texts."""
        return ColumnRules(self.settings, self.max_string, of_texts=True)

    def without(self, names: Collection[str]) -> ColumnRules:
        """Return the same rules, by which these columns are no inputs."""
        settings = replace(self.settings, exclude=(*self.settings.exclude, *names))
        return ColumnRules(settings, self.max_string, self._of_texts)

    def flat(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return an object without nested values, as far as they are to be flattened or left out."""
        if self.may_unnest and any(isinstance(value, dict | list) for value in values.values()):
            return flattened(values, self._nested)
        return values

    def named(self) -> Iterator[tuple[str, str]]:
        """Yield each name that the settings hold, with the setting it stands in."""
        for key in ("include", "exclude", "types"):
            yield from ((key, name) for name in getattr(self.settings, key) or ())

    def find_unknown(self, columns: Collection[str], all_excluded: bool = True) -> str | None:
        """Say which name of the settings is not among the columns that there are; None if all are.

        Those to leave out need not be there unless `all_excluded` says so.
        """
        for key, name in self.named():
            if name not in columns and (all_excluded or key != "exclude"):
                empty = "" if all_excluded else " (its cells may be empty)"
                return f"there is no column {shown(name)} for inputs.{key}{hint(name, columns)}{empty}"
        return None

    def why_not(self, name: str) -> str:
        """Say why a column is no input."""
        return "excluded" if self.settings.is_excluded(name) else "not in include"

    def _column(self, name: str) -> Column | None:
        if not self.settings.is_input(name):
            return None
        settings = self.settings.types.get(name, _AS_IT_IS)
        spellings = self.settings.na if settings.na is None else settings.na
        missing = Missing.of(spellings)
        numbers = _number_format(settings) or self.numbers
        if settings.type == "auto" and not self._of_texts:
            numbers = None
        return Column(missing if spellings else None, typed_column(name, settings, missing, self.max_string, numbers))

    def _nested(self, name: str) -> Nested:
        """Return what becomes of an object or a list under a name: what is said of it, or of what it is nested in."""
        if len(name) > self.max_string:
            return "dead_letter"
        if self.settings.is_excluded(name):
            return "ignore"
        said = (self.settings.types.get(outer, _AS_IT_IS).nested for outer in reversed(ancestry(name)))
        return next((mode for mode in said if mode is not None), self.settings.nested)


def _number_format(settings: ColumnSettings | InputSettings) -> NumberFormat | None:
    if settings.decimal is None and settings.thousands is None:
        return None
    return NumberFormat(settings.decimal or ".", settings.thousands or "")
