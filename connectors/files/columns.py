"""Decoding the fields of CSV records to inputs, record by record or a column of many records at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import repeat
from typing import Any

from connectors.decode import decode_inputs, finite_floats

_MOST_WORDS = 10_000


class CsvInputs:
    """The inputs of a CSV file: what reads as a number is a float, every other field a string.

    Parameters
    ----------
    names
        The columns without the target's.
    max_string
        The most characters of a string value.

    Examples
    --------
    >>> inputs = CsvInputs(("a", "b"), 256)
    >>> inputs.record(["1", "red"])
    {'a': 1.0, 'b': 'red'}
    >>> inputs.records([("1", "nan", "3"), ("red", "blue", "")], 3, underscores=False)
    [{'a': 1.0, 'b': 'red'}, {'b': 'blue'}, {'a': 3.0}]

    """

    def __init__(self, names: Sequence[str], max_string: int) -> None:
        self._names = tuple(names)
        self._max_string = max_string
        self._words: set[str] = set()

    def record(self, fields: Sequence[str]) -> dict[str, Any]:
        """Decode the fields of one record; raise UndecodableError for an infinite number or a string too long."""
        values = map(self._value, self._names, fields)
        return {name: value for name, value in zip(self._names, values, strict=True) if value is not None}

    def records(self, columns: Sequence[Sequence[str]], n_records: int, underscores: bool) -> list[dict[str, Any]]:
        """Decode many records to the same inputs as `record` gives.

        Parameters
        ----------
        columns
            The fields of each column, `n_records` each.
        n_records
            How many records there are.
        underscores
            Whether there may be an underscore in one of the fields.

        Raises
        ------
        UndecodableError
            Where one of the records cannot be decoded.

        """
        values: list[Sequence[Any]] = []
        gaps = False
        for name, fields in zip(self._names, columns, strict=True):
            # Python reads 1_000 as a number; in a file it is a word.
            exact = not (underscores and any("_" in field for field in fields))
            column: Sequence[Any] | None = finite_floats(fields) if exact else None
            if column is None:
                column = self._column(name, fields, exact)
                gaps = gaps or None in column
            values.append(column)
        rows = zip(*values, strict=True) if values else repeat((), n_records)
        inputs: list[dict[str, Any]] = list(map(dict, map(zip, repeat(self._names), rows)))
        return list(map(_present, inputs)) if gaps else inputs

    def _column(self, name: str, fields: Sequence[str], exact: bool) -> Sequence[Any]:
        """Decode a column that is not all finite numbers; None is an absent input."""
        if self._words.issuperset(fields):
            return fields
        numbers = _numbers_with_gaps(fields) if exact else None
        if numbers is not None:
            return numbers
        values = {field: self._value(name, field) for field in set(fields)}
        return [values[field] for field in fields]

    def _value(self, name: str, field: str) -> str | float | None:
        """Decode a field; None where it is empty or says nan."""
        words = self._words
        if field in words:
            return field
        value: str | float = field
        if "_" not in field:
            try:
                value = float(field)
            except ValueError:
                pass
            else:
                if math.isfinite(value):
                    return value
        decoded = decode_inputs([(name, value)], self._max_string).get(name)
        # Failing to read a number costs more than all the rest, and words that come once often come again.
        if decoded is field and len(words) < _MOST_WORDS:
            words.add(field)
        return decoded


def _numbers_with_gaps(fields: Sequence[str]) -> list[float | None] | None:
    """Return a column of finite numbers, of which some are absent; None for any other."""
    try:
        numbers = [float(field) if field else math.nan for field in fields]
    except ValueError:
        return None
    if any(map(math.isinf, numbers)):
        return None
    return [None if math.isnan(number) else number for number in numbers]


def _present(inputs: dict[str, Any]) -> dict[str, Any]:
    if None in inputs.values():
        return {name: value for name, value in inputs.items() if value is not None}
    return inputs
