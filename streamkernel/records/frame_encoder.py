"""The frame encoder: rows of a frame become the same numbers as their dicts, encoded one after the other.

A *thing* is a column of numbers, or one value of a column of strings: what has, or may be given, a column among the
inputs.
"""

import bisect
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from streamkernel.input_keys import key_of
from streamkernel.records.frames import FrameColumns
from streamkernel.records.input_scaler import RAW_LIMIT
from streamkernel.records.inputs import Inputs
from streamkernel.records.rows import Rows
from streamkernel.state import Array, tag


def check_columns(inputs: Inputs, columns: FrameColumns) -> None:
    """Validate the contents of a frame: ValueError where a value cannot be an input."""
    if columns.refused:
        inputs.check([columns.refused])
    if inputs.is_outside(columns.numbers):
        assert inputs.domain is not None
        row, column = np.argwhere(inputs.domain.outside(columns.numbers))[0].tolist()
        inputs.check([{columns.names[column]: float(columns.numbers[row, column])}])


class FrameEncoder:
    """The encoder of a frame: it finds the inputs' columns, and the rows at which new ones are added.

    Parameters
    ----------
    inputs
        The encoder of records, to which new columns are added as the parts are taken.
    columns
        The contents of the frame; overwritten.
    learn
        Bool of shape (n,): the rows that may add columns.

    Raises
    ------
    ValueError
        A value cannot be an input. Nothing is changed then.

    """

    def __init__(self, inputs: Inputs, columns: FrameColumns, learn: Array) -> None:
        check_columns(inputs, columns)
        self._inputs = inputs
        self._names, self._numbers, self._texts = columns.names, columns.numbers, columns.texts
        place = [inputs.columns.numbers.get(name, -1) for name in columns.names]
        # The first thing of each column of strings.
        self._starts = []
        # Which values have an indicator may depend on the rows before: then they are read as records.
        self._in_turn = False
        for text in columns.texts:
            self._starts.append(len(place))
            known = inputs.columns.indicators.get(text.name, {})
            places = [known.get(value, -1) for value in text.values]
            place += places
            self._in_turn |= inputs.may_refuse(text.name, places.count(-1))
        self._place = np.array(place, np.int64)
        self._n_known = len(inputs)
        # FrameColumns to be added, and the rows that bring them, ascending.
        self._added: list[list[Any]] = []
        self._brought = np.zeros(0, np.int64)
        # What enters the features without a column: rows, ascending, with keys and values.
        self._extra_rows, self._extra_keys, self._extras = self._brought, np.zeros(0, np.uint64), np.zeros(0)
        self._learn = learn
        if not self._in_turn and (self._place < 0).any():
            self._admit(learn)
        if not self._in_turn:
            self._count_repeats(learn)

    def parts(self, n_rows: int) -> Iterator[tuple[slice, Rows]]:
        """Encode the rows, at once or `n_rows` at a time if there are more columns; yields each part and its rows."""
        n = len(self._numbers)
        if self._in_turn:
            for start in range(0, n, n_rows):
                part = slice(start, min(start + n_rows, n))
                records = [self._record(row) for row in range(part.start, part.stop)]
                yield part, self._inputs.encode(records, self._learn[part].tolist())
            return
        width = self._n_known + len(self._added) + len(np.unique(self._extra_keys))
        step = n_rows if width > n_rows else max(n, 1)
        for start in range(0, n, step):
            part = slice(start, min(start + step, n))
            n_columns = self._n_known + int(np.searchsorted(self._brought, part.stop))
            self._inputs.add(self._added[len(self._inputs) - self._n_known : n_columns - self._n_known])
            n_known = self._n_known + np.searchsorted(self._brought, np.arange(part.start, part.stop), side="right")
            yield part, Rows(self._values(part, n_columns), *self._extras_of(part), n_known)

    def _values(self, part: slice, n_columns: int) -> Array:
        n_numbers = len(self._names)
        source = np.full(n_columns, n_numbers)  # the column of NaN
        place = self._place[:n_numbers]
        has_column = np.flatnonzero((place >= 0) & (place < n_columns))
        source[place[has_column]] = has_column
        values = self._numbers[part].take(source, axis=1)
        for start, text in zip(self._starts, self._texts, strict=True):
            codes = text.codes[part]
            rows = np.flatnonzero(codes >= 0)
            column = self._place[start + codes[rows]]
            values[rows[column >= 0], column[column >= 0]] = 1.0
        return values

    def _extras_of(self, part: slice) -> tuple[Array, Array]:
        some = slice(*np.searchsorted(self._extra_rows, [part.start, part.stop]))
        keys, column = np.unique(self._extra_keys[some], return_inverse=True)
        extras = np.zeros((part.stop - part.start, len(keys)))
        extras[self._extra_rows[some] - part.start, column] = self._extras[some]
        return extras, keys

    def _admit(self, learn: Array) -> None:
        """Give columns to the things without one, record by record and in each in the order of their keys."""
        inputs, n, n_things = self._inputs, len(learn), len(self._place)
        room = inputs.room
        first, n_learned = np.full(n_things, n), np.zeros(n_things, np.int64)
        unlearned = [np.zeros((2, 0), np.int64)]
        for things, rows in self._unknown():
            learned = learn[rows]
            np.minimum.at(first, things[learned], rows[learned])
            np.add.at(n_learned, things[learned], 1)
            unlearned.append(np.stack([things[~learned], rows[~learned]]))
        things, rows = np.concatenate(unlearned, axis=1)
        if not room:
            inputs.n_ignored += int(n_learned.sum())
            return
        brought = np.flatnonzero(first < n)
        tagged = {thing: self._tagged(thing) for thing in {*brought.tolist(), *things.tolist()}}
        keys = np.zeros(n_things, np.uint64)
        own_keys = [key_of(name) for name in tagged.values()]
        if len(set(own_keys)) < len(own_keys) or any(map(inputs.columns.is_taken, own_keys)):
            self._in_turn = True  # which of two inputs of one key is ignored depends on the rows before, too
            return
        inputs.n_ignored += int(n_learned.sum())
        keys[list(tagged)] = np.array(own_keys, np.uint64)

        added = brought[np.lexsort((keys[brought], first[brought]))][:room]
        inputs.n_ignored -= int(n_learned[added].sum())
        self._place[added] = self._n_known + np.arange(len(added))
        self._added = [tagged[thing] for thing in added.tolist()]
        self._brought = first[added]

        since = np.full(n_things, n)
        since[added] = first[added]
        early = rows < since[things]
        self._enter(things[early], rows[early], keys, room)

    def _count_repeats(self, learn: Array) -> None:
        """Count the learned strings that have an indicator already when their row comes."""
        for start, text in zip(self._starts, self._texts, strict=True):
            place = self._place[start : start + len(text.values)]
            codes = text.codes[learn]
            has_indicator = np.append(place >= 0, False)  # the last for no string
            n_repeats = int(has_indicator[codes].sum()) - int((place >= self._n_known).sum())
            if n_repeats:
                self._inputs.repeats.add(text.name, n_repeats)

    def _enter(self, things: Array, rows: Array, keys: Array, room: int) -> None:
        """Let things that have no column yet into the features, as many of a record as there was room for."""
        by_row = np.lexsort((keys[things], rows))
        things, rows = things[by_row], rows[by_row]
        values = np.ones(len(things))
        numbers = things < len(self._names)
        seen = self._numbers[rows[numbers], things[numbers]]
        # A number alone is its own mean, which is 0 after scaling; -0 tells it from an input that is not there.
        raw = np.zeros(len(seen)) if self._inputs.standardize else np.clip(seen, -RAW_LIMIT, RAW_LIMIT)
        values[numbers] = np.where(raw == 0, -0.0, raw)
        # Nor may they be found there later on, when they have one.
        self._numbers[rows[numbers], things[numbers]] = np.nan
        for start, text in zip(self._starts, self._texts, strict=True):
            text.codes[rows[(things >= start) & (things < start + len(text.values))]] = -1
        n_before = np.arange(len(rows)) - np.searchsorted(rows, rows)
        fits = n_before < room - np.searchsorted(self._brought, rows)
        self._extra_rows, self._extra_keys, self._extras = rows[fits], keys[things[fits]], values[fits]

    def _unknown(self) -> Iterator[tuple[Array, Array]]:
        """Where things without a column are observed, column by column of the frame."""
        unknown = self._place < 0
        for thing in np.flatnonzero(unknown[: len(self._names)]):
            rows = np.flatnonzero(~np.isnan(self._numbers[:, thing]))
            if rows.size:
                yield np.full(len(rows), thing), rows
        for start, text in zip(self._starts, self._texts, strict=True):
            is_unknown = np.append(unknown[start : start + len(text.values)], False)  # the last for no string
            rows = np.flatnonzero(is_unknown[text.codes])
            if rows.size:
                yield start + text.codes[rows], rows

    def _record(self, row: int) -> dict[Any, Any]:
        """A row as `learn_one` would be given it."""
        numbers = zip(self._names, self._numbers[row].tolist(), strict=False)
        record = {name: value for name, value in numbers if not math.isnan(value)}
        record.update({text.name: text.values[text.codes[row]] for text in self._texts if text.codes[row] >= 0})
        return record

    def _tagged(self, thing: int) -> list[Any]:
        if thing < len(self._names):
            return ["number", tag(self._names[thing])]
        text = bisect.bisect_right(self._starts, thing) - 1
        return ["indicator", tag(self._texts[text].name), self._texts[text].values[thing - self._starts[text]]]
