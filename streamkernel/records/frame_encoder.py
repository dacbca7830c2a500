"""The frame encoder: rows of a frame become the same numbers as their dicts, encoded one after the other."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from streamkernel.records.frames import FrameColumns
from streamkernel.records.inputs import Inputs
from streamkernel.records.rows import Rows
from streamkernel.state import Array

_ALL = slice(None)


def check_columns(inputs: Inputs, columns: FrameColumns) -> None:
    """Validate the contents of a frame: ValueError where a value cannot be an input."""
    if columns.refused:
        inputs.check([columns.refused])
    if inputs.is_outside(columns.numbers):
        assert inputs.domain is not None
        row, column = np.argwhere(inputs.domain.outside(columns.numbers))[0].tolist()
        inputs.check([{columns.names[column]: float(columns.numbers[row, column])}])


def known_values(inputs: Inputs, columns: FrameColumns, part: slice = _ALL) -> Array:
    """Return the values of rows of a frame in the inputs' columns, float64 of shape (n, d); NaN where not observed."""
    source = np.full(len(inputs), len(columns.names))  # the last column of numbers, which is NaN
    for j, name in enumerate(columns.names):
        place = inputs.columns.numbers.get(name)
        if place is not None:
            source[place] = j
    values = columns.numbers[part].take(source, axis=1)
    for text in columns.texts:
        known = inputs.columns.indicators.get(text.name, {})
        places = np.array([*(known.get(value, -1) for value in text.values), -1])[text.codes[part]]
        rows = np.flatnonzero(places >= 0)
        values[rows, places[rows]] = 1.0
    return values


class FrameEncoder:
    """The encoder of a frame: it reads parts of known inputs by columns, and other parts record by record.

    Parameters
    ----------
    inputs
        The encoder of records. Rows that are learned add their new inputs to its columns.
    columns
        The contents of the frame.
    learn
        Bool of shape (n,): the rows that may add columns.

    Raises
    ------
    ValueError
        A value cannot be an input. Nothing is changed then.

    """

    def __init__(self, inputs: Inputs, columns: FrameColumns, learn: Array) -> None:
        check_columns(inputs, columns)
        self._inputs, self._columns, self._learn = inputs, columns, learn

    def parts(self, n_rows: int) -> Iterator[tuple[slice, Rows]]:
        """Yield each part and its encoded rows: `n_rows` at a time, or all that follow if their inputs are known."""
        n, start = len(self._learn), 0
        while start < n or not n:
            part = slice(start, n)
            if len(self._inputs) > n_rows or self._has_unknown(part):
                part = slice(start, min(start + n_rows, n))
            if self._has_unknown(part):
                records = [self._record(row) for row in range(part.start, part.stop)]
                yield part, self._inputs.encode(records, self._learn[part].tolist(), is_checked=True)
            else:
                self._count(part)
                yield part, Rows.known(known_values(self._inputs, self._columns, part))
            if not n:
                return
            start = part.stop

    def _has_unknown(self, part: slice) -> bool:
        """Whether rows hold an input without a column that could get one, or a string without an indicator."""
        known, indicators = self._inputs.columns.numbers, self._inputs.columns.indicators
        unknown = [j for j, name in enumerate(self._columns.names) if name not in known] if self._inputs.room else []
        if any((~np.isnan(self._columns.numbers[part, j])).any() for j in unknown):
            return True
        for text in self._columns.texts:
            own = indicators.get(text.name, {})
            is_unknown = np.array([*(value not in own for value in text.values), False])  # the last for no string
            if is_unknown[text.codes[part]].any():
                return True
        return False

    def _count(self, part: slice) -> None:
        """Count the strings that learned rows repeat, and the numbers past the limit that they hold."""
        learn, inputs = self._learn[part], self._inputs
        for text in self._columns.texts:
            n_repeats = int((text.codes[part][learn] >= 0).sum())
            if n_repeats:
                inputs.repeats.add(text.name, n_repeats)
        for j, name in enumerate(self._columns.names):
            if name not in inputs.columns.numbers:
                inputs.n_ignored += int((~np.isnan(self._columns.numbers[part, j][learn])).sum())

    def _record(self, row: int) -> dict[Any, Any]:
        """A row as `learn_one` would be given it."""
        numbers = zip(self._columns.names, self._columns.numbers[row].tolist(), strict=False)
        record = {name: value for name, value in numbers if not math.isnan(value)}
        texts = self._columns.texts
        record.update({text.name: text.values[text.codes[row]] for text in texts if text.codes[row] >= 0})
        return record
