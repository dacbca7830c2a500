"""The encoder of named inputs: a record's dict becomes a row of columns.

A column is a number, or the indicator of one value of a string input.
"""

import logging
import math
import sys
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from streamkernel.domain import Domain, is_inside
from streamkernel.fields import whole
from streamkernel.records.input_columns import RAW_LIMIT, InputColumns, InputScaler
from streamkernel.records.repeats import Repeats, turned_to_text
from streamkernel.records.rows import NO_KEYS, PLAIN, PlainRecords, Rows
from streamkernel.state import Array, State, excerpt, instead_of_input, real, tag, untag

_log = logging.getLogger(__name__)

_NAN = math.nan
_LARGEST = sys.float_info.max


class Inputs:
    """The encoder of records: numbers are columns, strings are encoded as River's `OneHotEncoder` does it.

    - max_inputs: The most columns; inputs past them are ignored and counted in `n_ignored`.
    - standardize: Whether numbers are centered and scaled by their running mean and deviation.
    - domain: The numbers that inputs may be; None (the default) is any.
    - columns: The columns in the order of arrival, found by name.
    - scaler: The running standardization of the columns.
    - n_ignored: Inputs ignored, counted at each record learned.
    - repeats: The repetitions of string inputs, which limit their indicators; what is past that limit is not in
      `n_ignored`.
    """

    def __init__(self, max_inputs: int, standardize: bool, domain: Domain | None = None) -> None:
        self.max_inputs = max_inputs
        self.standardize = standardize
        self.domain = domain
        self.n_ignored = 0
        self.repeats = Repeats()
        self.columns = InputColumns()
        self.scaler = InputScaler(self.columns, standardize)
        # How the last plain records were read, and where their numbers went.
        self._plain: PlainRecords | None = None
        self._plain_columns: list[int] = []
        self._told: set[Hashable] = set()  # numbers that turned text

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def room(self) -> int:
        """How many more columns may be added; 0 also in a model restored under a smaller limit."""
        return max(self.max_inputs - len(self.columns), 0)

    def forget(self) -> None:
        """Reset the moments and keep the columns."""
        self.scaler.forget()

    def check(self, xs: Sequence[Mapping[Any, Any]]) -> None:
        """Validate records: ValueError where a value is infinite, outside the domain or of a type that is no input."""
        for x in xs:
            for name, value in x.items():
                if type(name) is not str:
                    tag(name)
                if type(value) in PLAIN and self.domain is None and (-_LARGEST <= value <= _LARGEST or value != value):
                    continue
                if value is not None and not isinstance(value, str):
                    self._check_number(name, _number(name, value))

    def encode(self, xs: Sequence[Mapping[Any, Any]], learn: Sequence[bool], is_checked: bool = False) -> Rows:
        """Encode records as rows, with columns added for new inputs.

        - xs: n records.
        - learn: For each record, whether it may add columns.
        - is_checked: Whether `check` has passed them.

        ValueError: As `check`. Nothing is changed then.
        """
        plain = self.encode_plain(xs)
        if plain is not None:
            return plain
        if not is_checked:
            self.check(xs)
        rows, extras = [], []
        for x, admit in zip(xs, learn, strict=True):
            row, extra = self._encode_one(x, admit)
            rows.append(row)
            extras.append(extra)
        self.scaler.fit()
        d = len(self.columns)
        n_known = [*map(len, rows)]
        for row in rows:
            if len(row) < d:
                row.extend([_NAN] * (d - len(row)))
        values = np.array(rows, np.float64).reshape(len(rows), d)
        keys = sorted({key for extra in extras for key in extra})
        if not keys:
            return Rows(values, np.zeros((len(rows), 0)), NO_KEYS, np.array(n_known, np.int64))
        extra_values = np.array([[extra.get(key, 0.0) for key in keys] for extra in extras], np.float64)
        return Rows(values, extra_values, np.array(keys, np.uint64), np.array(n_known, np.int64))

    def state(self) -> State:
        """The fields of the state."""
        return {
            "columns": list(self.columns),
            "n_ignored_inputs": self.n_ignored,
            **self.scaler.state(),
            **self.repeats.state(list(self.columns.n_values())),
        }

    def load_state(self, state: State) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        self._plain = None
        self.columns.load_state(state)
        self.n_ignored = whole(state, "n_ignored_inputs")
        self.repeats.load_state(state, list(self.columns.n_values()))
        self.scaler.load_state(state)

    def add(self, columns: Sequence[list[Any]]) -> None:
        """Add columns, given as `columns` yields them, in this order."""
        for tagged in columns:
            self._note(tagged)
            self.columns.append(tagged)
        self.scaler.fit()

    def encode_plain(self, xs: Sequence[Mapping[Any, Any]]) -> Rows | None:
        """Encode records that all hold the same known numbers; returns None for any others."""
        if not xs:
            return None
        names = tuple(xs[0])
        if self._plain is None or names != self._plain.names:
            columns = [self.columns.numbers.get(name, -1) for name in names]
            if -1 in columns or not names:
                return None
            self._plain = PlainRecords(names)
            self._plain_columns = columns
        given = self._plain.read(xs)
        if given is None or self.is_outside(given):
            return None
        values = given
        if self._plain_columns != list(range(len(self))):
            values = np.full((len(xs), len(self)), _NAN)
            values[:, self._plain_columns] = given
        return Rows.known(values)

    def _encode_one(self, x: Mapping[Any, Any], admit: bool) -> tuple[list[float], dict[int, float]]:
        n_columns = len(self.columns)
        row = [_NAN] * n_columns
        known_numbers, indicators = self.columns.numbers, self.columns.indicators
        unknown: list[tuple[list[Any], float]] = []
        n_unknown, room = 0, n_columns < self.max_inputs
        for name, value in x.items():
            if type(name) is not str:
                name = untag(tag(name))  # names that are equal may be of different types
            kind = type(value)
            if kind is not float and kind is not int:
                if value is None:
                    continue
                if isinstance(value, str):
                    value = str.__str__(value)  # a subclass may hash as something else
                    known = indicators.get(name)
                    column = None if known is None else known.get(value)
                    if column is not None:
                        row[column] = 1.0
                        if admit:
                            self.repeats.add(name)
                    elif self.repeats.has_room(name, len(known or ())):
                        n_unknown += 1
                        if room:
                            unknown.append((["indicator", tag(name), value], 1.0))
                    elif admit:
                        self.repeats.note_without(name, known or ())
                    continue
                value = _number(name, value)
            column = known_numbers.get(name)
            if column is not None:
                row[column] = value
            elif value == value:  # NaN is not observed
                n_unknown += 1
                if room:
                    unknown.append((["number", tag(name)], value))
        if not n_unknown:
            return row, {}
        # One whose key another input has already counts as past the limit: its features would be the other's.
        arrivals = self.columns.arrivals(unknown)[: self.room]
        if admit:
            self.n_ignored += n_unknown - len(arrivals)
            for _, tagged, value in arrivals:
                self._note(tagged)
                self.columns.append(tagged)
                row.append(value)
            return row, {}
        for _, tagged, _ in arrivals:
            self._note(tagged)
        return row, {key: self._unseen(tagged, value) for key, tagged, value in arrivals}

    def _note(self, tagged: list[Any]) -> None:
        """Note a new column; log once where it is a text of an input that was a number before."""
        name = untag(tagged[1])
        if tagged[0] == "indicator" and name in self.columns.numbers and name not in self._told:
            self._told.add(name)
            _log.warning("%s", turned_to_text(name, tagged[2], self.repeats.types_key))

    def _unseen(self, tagged: list[Any], value: float) -> float:
        """The scaled value of an unseen input: a number alone is its own mean, which is 0 after scaling.

        Such a 0 is -0, which tells it from an input that its record does not have.
        """
        if tagged[0] == "indicator":
            return value
        return -0.0 if self.standardize or not value else min(max(value, -RAW_LIMIT), RAW_LIMIT)

    def is_outside(self, values: Array) -> bool:
        """Whether one of some numbers is outside the domain."""
        return self.domain is not None and bool(self.domain.outside(values).any())

    def _check_number(self, name: Hashable, value: float) -> None:
        if not (-_LARGEST <= value <= _LARGEST or value != value):
            raise ValueError(f"input {excerpt(name)} is infinite: use a finite number, or None if it was not observed")
        if not is_inside(self.domain, value):
            assert self.domain is not None
            raise ValueError(self.domain.refusal(name, value))


def _number(name: Hashable, value: Any) -> float:
    number = real(value)
    if number is None:
        instead = instead_of_input(value) or "a number, a string, a boolean or None"
        raise ValueError(f"input {excerpt(name)} is of type {type(value).__name__}: use {instead}")
    return number
