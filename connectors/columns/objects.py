"""Inputs of JSON objects: one object, or a column of many objects at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamkernel.connectors.columns.readers import ColumnReader, inputs_of_columns
from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.decode import UndecodableError, present
from streamkernel.connectors.names import nfc, with_normal_names

__all__ = ["ObjectColumns"]


class ObjectColumns:
    """A reader of the columns of JSON objects.

    Parameters
    ----------
    rules
        The inputs, and the reader of each.

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

    def read(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the inputs of one object; raise UndecodableError if it is unusable."""
        inputs: dict[str, Any] = {}
        for name, value in with_normal_names(self.rules.flat(values)).items():
            reader = self._reader(name)
            if reader is not None:
                inputs.update(zip(reader.outputs, reader.read(value), strict=True))
        return present(inputs)

    def read_all(self, objects: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
        """Return the inputs of many objects, the same as `read`, if orjson can return these objects.

        Raises UndecodableError if one of them is unusable.
        """
        flat = list(map(self.rules.flat, objects)) if self.rules.may_unnest else objects
        names = [nfc(name) for name in flat[0]] if flat else []
        if len(set(map(tuple, flat))) != 1 or len(set(names)) < len(names):
            return list(map(self.read, flat))
        columns = zip(*map(dict.values, flat), strict=True)
        return inputs_of_columns(zip(map(self._reader, names), columns, strict=True), len(flat), flat)

    def _reader(self, name: str) -> ColumnReader | None:
        if len(name) > self.rules.max_string:
            raise UndecodableError("string_too_long", f"the name of an input is {len(name)} characters long")
        return self.rules.column(name)
