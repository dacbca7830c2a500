"""Reads the columns of JSON objects by rules: one by one, or a column of many objects at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.decode import UndecodableError, decode_inputs, present
from streamkernel.connectors.names import nfc, with_normal_names

__all__ = ["ObjectColumns"]

_PLAIN = frozenset({float, int, bool, type(None)})
_MOST_WORDS = _MOST_NAMES = 10_000


class ObjectColumns:
    """A reader of the columns of objects that JSON holds.

    Parameters
    ----------
    rules
        Which columns are inputs, and how each is read.

    Examples
    --------
    >>> from streamkernel.connectors.columns.settings import ColumnSettings, InputSettings
    >>> types = {"zip": ColumnSettings("string"), "day": ColumnSettings("date", parts=("year",))}
    >>> columns = ObjectColumns(ColumnRules(InputSettings(exclude=("id",), types=types), 256))
    >>> columns.read({"id": 7, "zip": 2134, "day": "2024-05-31", "price": 1.5})
    {'zip': '2134', 'day.year': 2024.0, 'price': 1.5}

    """

    def __init__(self, rules: ColumnRules) -> None:
        self.rules = rules
        self._words: set[str] = set()
        self._names: set[str] = set()  # in NFC

    def read(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the inputs of one object; raise UndecodableError where it cannot be used."""
        inputs: dict[str, Any] = {}
        flat = self.rules.flat(values)
        if not self._names.issuperset(flat):
            flat = with_normal_names(flat)
            if len(self._names) < _MOST_NAMES:
                self._names.update(flat)
        for name, value in flat.items():
            column = self.rules.column(name)
            if column is None:
                continue
            if column.typed is not None:
                self._check_name(name)
                inputs.update(zip(column.typed.outputs, column.typed.read(value), strict=True))
            elif column.missing is not None and column.missing.holds(value):
                inputs[name] = None
            else:
                inputs[name] = decode_inputs([(name, value)], self.rules.max_string).get(name)
        return present(inputs)

    def read_all(self, objects: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the inputs of many objects as `read` gives them, of what orjson can return.

        Raises UndecodableError where one of them cannot be used.
        """
        flat = list(map(self.rules.flat, objects)) if self.rules.may_unnest else objects
        keys = set(map(tuple, flat))
        if len(keys) != 1 or () in keys:
            return list(map(self.read, flat))
        names = tuple(map(nfc, keys.pop()))
        if len(set(names)) < len(names):
            return list(map(self.read, flat))
        outputs: list[str] = []
        columns: list[Sequence[Any]] = []
        for name, values in zip(names, zip(*map(dict.values, flat), strict=True), strict=True):
            column = self.rules.column(name)
            if column is None:
                continue
            self._check_name(name)
            if column.typed is not None:
                outputs += column.typed.outputs
                columns += column.typed.read_all(values)
            else:
                outputs.append(name)
                columns.append(
                    self._as_they_are(name, values if column.missing is None else column.missing.without(values))
                )
        rows = zip(*columns, strict=True) if columns else repeat((), len(flat))
        inputs: list[dict[str, Any]] = list(map(dict, map(zip, repeat(outputs), rows)))
        return list(map(present, inputs)) if any(None in column for column in columns) else inputs

    def _as_they_are(self, name: str, values: Sequence[Any]) -> Sequence[Any]:
        """Read a column without a type; None is an absent input."""
        words = self._words
        if _PLAIN.issuperset(map(type, values)):
            return values
        if {str}.issuperset(map(type, values)):
            if words.issuperset(values):
                return values
            new = {
                value: decode_inputs([(name, value)], self.rules.max_string).get(name) for value in set(values) - words
            }
            if len(words) < _MOST_WORDS:
                words.update(value for value in new.values() if value is not None)
            return [new.get(value, value) for value in values]
        return [decode_inputs([(name, value)], self.rules.max_string).get(name) for value in values]

    def _check_name(self, name: str) -> None:
        if len(name) > self.rules.max_string:
            raise UndecodableError("string_too_long", f"the name of an input is {len(name)} characters long")
