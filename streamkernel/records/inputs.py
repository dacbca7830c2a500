"""The encoder of named inputs: a record's dict becomes a row of columns, standardised by running moments.

A column is a number, or the indicator of one value of a string input. Columns are found by name, so neither the order
of the keys nor the moment an input first appears matters to the features: those are drawn by the key of the name.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from streamkernel.compute.arrival import Scaling
from streamkernel.compute.moments import COUNT, LARGEST, M2, MEAN, are_moments, scale
from streamkernel.compute.moments import SIZE as MOMENTS
from streamkernel.dates import instead_of_input
from streamkernel.domain import Domain, is_inside
from streamkernel.records.plain import PLAIN, PlainRecords
from streamkernel.records.repeats import FREE, Repeats
from streamkernel.state import Array, Rules, State, array, checked, real, shown, state_mismatch, tag, untag, whole

#: Scaled inputs are clipped to this many deviations.
SCALED_LIMIT = 4.0
#: Inputs that are not scaled are clipped here, where float32 projections stay finite.
RAW_LIMIT = 1e15

_NAN = math.nan
_NO_KEYS = np.zeros(0, np.uint64)
_TEXT = {str}
_quoted = json.encoder.encode_basestring


def key_of(tagged: list[Any]) -> int:
    """The 64-bit key of a column, the same for ever: a BLAKE2b hash of its name with type and an indicator's value."""
    kind, name, *value = tagged
    if name[0] == "str":  # as JSON has it, without the encoder that each call of `dumps` makes
        rest = f",{_quoted(value[0])}]" if value else "]"
        text = f'["{kind}",["str",{_quoted(name[1])}]{rest}'
    else:
        text = json.dumps(tagged, separators=(",", ":"), ensure_ascii=False)
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


class Rows(NamedTuple):
    """Encoded records, before they are scaled.

    Attributes
    ----------
    values
        One column for each known input, float64 of shape (n, d); NaN where it was not observed.
    extras
        Inputs met only in records that may not add columns, scaled, float64 of shape (n, e); 0 is not observed, -0 a
        number that is 0.
    extra_keys
        The keys of those inputs, ascending, uint64 of shape (e,).
    n_known
        The number of inputs known at each record, with its own if it may add columns; int64 of shape (n,).

    """

    values: Array
    extras: Array
    extra_keys: Array
    n_known: Array

    @classmethod
    def known(cls, values: Array) -> "Rows":
        """Encoded records, (n, d), of known inputs only."""
        n, d = values.shape
        return cls(values, np.zeros((n, 0)), _NO_KEYS, np.full(n, d))

    def part(self, rows: slice) -> "Rows":
        """Some of the encoded records, with the extras that these have."""
        if not self.extra_keys.size:
            return (
                self
                if rows == slice(0, len(self.values))
                else Rows(self.values[rows], self.extras[rows], self.extra_keys, self.n_known[rows])
            )
        extras = self.extras[rows]
        used = is_met(extras).any(axis=0)
        # In the layout that compiled code knows: numpy gives columns that are chosen in the other.
        chosen = np.ascontiguousarray(extras[:, used])
        return Rows(self.values[rows], chosen, self.extra_keys[used], self.n_known[rows])

    def in_order(self, X: Array) -> Array:
        """Scaled rows X (n, d + e) with each record's extras right after the columns it knows, as if it came alone."""
        if not self.extra_keys.size:
            return X
        d = self.values.shape[1]
        X = X.copy()
        for row, n_known in zip(X, self.n_known, strict=True):
            met = row[d:][is_met(row[d:])]
            row[d:] = 0
            row[n_known : n_known + len(met)] = met
        return X


def is_met(extras: Array) -> Array:
    """Which extras were observed, bool of their shape: 0 is not, but -0 is a number that is 0."""
    return np.asarray((extras != 0) | np.signbit(extras))


class Inputs:
    """The encoder of records: its columns, found by name, and their running moments.

    It does in one what River's `OneHotEncoder` does for strings and its `StandardScaler` for numbers. Scaled values are
    cut at `SCALED_LIMIT` deviations, and outliers count in the moments as less than they are (`compute.moments`).

    Parameters
    ----------
    max_inputs
        The most columns; inputs past them are ignored and counted in `n_ignored`.
    standardize
        Whether numbers are centred and scaled by their running mean and deviation.
    domain
        The numbers that inputs may be; None (the default) is any.

    Attributes
    ----------
    columns
        The columns in the order of arrival, each ["number", name] or ["indicator", name, value]; names as `tag` has
        them.
    moments
        The running moments of each column, float64 of shape (d, `compute.moments.SIZE`).
    n_ignored
        Inputs ignored, counted at each record learnt.
    repeats
        The repetitions of string inputs, which limit their indicators; what is past that limit is not in `n_ignored`.

    """

    rules: ClassVar[Rules] = {"input_moments": are_moments}

    def __init__(self, max_inputs: int, standardize: bool, domain: Domain | None = None) -> None:
        self.max_inputs = max_inputs
        self.standardize = standardize
        self.domain = domain
        self.n_ignored = 0
        self.repeats = Repeats()
        self.columns: list[list[Any]] = []
        self._numbers: dict[Hashable, int] = {}
        self._indicators: dict[Hashable, dict[str, int]] = {}
        self._keys: list[int] = []
        self._taken: set[int] = set()
        self._key_array = _NO_KEYS
        # How the last plain records were read, and where their numbers went.
        self._plain: PlainRecords | None = None
        self._plain_columns: list[int] = []
        self.forget()

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def room(self) -> int:
        """How many more columns may be added; 0 also in a model restored under a smaller limit."""
        return max(self.max_inputs - len(self.columns), 0)

    def is_taken(self, key: int) -> bool:
        """Whether a column has this key: another input of the same key is ignored."""
        return key in self._taken

    @property
    def keys(self) -> Array:
        """The columns' keys, uint64 of shape (d,)."""
        if len(self._key_array) != len(self._keys):
            self._key_array = np.array(self._keys, np.uint64)
        return self._key_array

    @property
    def names(self) -> list[str]:
        """The names of the columns as text, `name` or, of an indicator, `name=value`."""
        return [str(untag(name[1])) + (f"={name[2]}" if name[0] == "indicator" else "") for name in self.columns]

    def forget(self) -> None:
        """Reset the moments and keep the columns."""
        self.moments = np.zeros((0, MOMENTS))
        self._is_number = np.zeros(0, np.bool_)
        self._fit()

    def check(self, xs: Sequence[Mapping[Any, Any]]) -> None:
        """Validate records that are then encoded slice by slice: raises what `encode` would raise."""
        for x in xs:
            if self.domain is None and PLAIN.issuperset(map(type, x.values())) and _TEXT.issuperset(map(type, x)):
                try:
                    if math.isfinite(math.fsum(x.values())):
                        continue
                except (OverflowError, ValueError):  # an integer past the largest float; infinities that cancel
                    pass
            for name, value in x.items():
                if type(name) is not str:
                    tag(name)
                if value is not None and not isinstance(value, str):
                    self._usable(name, _number(name, value))

    def encode(self, xs: Sequence[Mapping[Any, Any]], learn: Sequence[bool]) -> Rows:
        """Encode records as rows, with columns added for new inputs.

        Parameters
        ----------
        xs
            n records.
        learn
            For each record, whether it may add columns.

        Raises
        ------
        ValueError
            A value is infinite, outside the domain or of a type that is no input. No column is added then.

        """
        plain = self.encode_plain(xs)
        if plain is not None:
            return plain
        n_columns, n_ignored, repeats = len(self.columns), self.n_ignored, self.repeats.copy_counts()
        rows: list[list[float]] = []
        extras: list[dict[int, float]] = []
        n_known: list[int] = []
        try:
            for x, admit in zip(xs, learn, strict=True):
                row, extra = self._encode_one(x, admit)
                rows.append(row)
                extras.append(extra)
                n_known.append(len(self.columns))
            values = self._matrix(rows, xs)
        except BaseException:
            self._truncate(n_columns)
            self.n_ignored = n_ignored
            self.repeats.restore_counts(repeats)
            raise
        self._fit()
        extra_keys = sorted({key for extra in extras for key in extra})
        place = {key: j for j, key in enumerate(extra_keys)}
        extra_values = np.zeros((len(rows), len(extra_keys)))
        for r, extra in enumerate(extras):
            for key, value in extra.items():
                extra_values[r, place[key]] = value
        return Rows(values, extra_values, np.array(extra_keys, np.uint64), np.array(n_known, np.int64))

    def scale(self, rows: Rows, learn: Array, dtype: np.dtype[Any]) -> Array:
        """Scale encoded rows one after the other, each by the moments that include it.

        Parameters
        ----------
        rows
            n encoded rows.
        learn
            The rows that update the moments, bool of shape (n,); others are scaled as if they did, and then forgotten.
        dtype
            float32 or float64.

        Returns
        -------
        Array of shape (n, d + e); absent values are 0, the mean.

        """
        n, d = rows.values.shape
        out = np.empty((n, d + rows.extras.shape[1]), dtype)
        scale(rows.values, learn, *self.scaling(d), 0, out)
        out[:, d:] = rows.extras
        return out

    def scaling(self, n_columns: int) -> Scaling:
        """The scaling parameters and moments of the first columns, for compiled code to read and update."""
        limit = SCALED_LIMIT if self.standardize else RAW_LIMIT
        if n_columns == len(self.moments):
            return Scaling(self.standardize, limit, self._is_number, self.moments)
        return Scaling(self.standardize, limit, self._is_number[:n_columns], self.moments[:n_columns])

    def as_of_now(self, values: Array) -> Array:
        """Encoded values of shape (n, d), scaled by the current moments, which are not updated."""
        if self.standardize:
            deviation = np.sqrt(self.moments[:, M2] / np.maximum(self.moments[:, COUNT], 1))
            centred = np.clip(values, -LARGEST, LARGEST) - self.moments[:, MEAN]
            scaled = np.divide(centred, deviation, out=np.zeros_like(values), where=deviation > 0)
            values = np.where(self._is_number, np.clip(scaled, -SCALED_LIMIT, SCALED_LIMIT), values)
        return np.asarray(np.nan_to_num(np.clip(values, -RAW_LIMIT, RAW_LIMIT), nan=0.0))

    def state(self) -> State:
        """The fields of the state."""
        return checked(
            {
                "columns": list(self.columns),
                "n_ignored_inputs": self.n_ignored,
                "input_moments": self.moments.copy(),
                **self.repeats.state(list(self._n_values())),
            },
            self.rules,
        )

    def load_state(self, state: State) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        checked(state, self.rules)
        self._truncate(0)
        columns = state.get("columns")
        for name in columns if isinstance(columns, list) else [columns]:
            match name:
                case ["number", tagged] | ["indicator", tagged, str()] if _is_tag(tagged):
                    self._append(list(name))
                case _:
                    raise state_mismatch("columns")
        if len(set(self._keys)) != len(self):
            raise state_mismatch("columns")
        self.n_ignored = whole(state, "n_ignored_inputs")
        self.repeats.load_state(state, self._n_values())
        self.forget()
        self.moments = array(state, "input_moments", np.float64, len(self), MOMENTS)

    def number(self, name: Hashable) -> int:
        """The index of the column of a number; -1 where it has none."""
        return self._numbers.get(name, -1)

    def indicators(self, name: Hashable) -> Mapping[str, int]:
        """The indexes of the indicators of a string input, by value."""
        return self._indicators.get(name, {})

    def add(self, columns: Sequence[list[Any]]) -> None:
        """Add columns, given as `columns` has them, in this order."""
        for tagged in columns:
            self._append(tagged)
        self._fit()

    @property
    def plain_names(self) -> tuple[Any, ...] | None:
        """The names of all columns in their order if all are numbers; else None."""
        return tuple(self._numbers) if len(self._numbers) == len(self) else None

    def encode_plain(self, xs: Sequence[Mapping[Any, Any]]) -> Rows | None:
        """Encode records that all hold the same known numbers; returns None for any others."""
        if not xs:
            return None
        names = tuple(xs[0])
        if self._plain is None or names != self._plain.names:
            columns = [self._numbers.get(name, -1) for name in names]
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
        row = [_NAN] * len(self.columns)
        known_numbers = self._numbers
        unknown: list[tuple[list[Any], float]] = []
        n_unknown, room = 0, self.room
        for name, value in x.items():
            kind = type(value)
            if kind is not float and kind is not int:
                if value is None:
                    continue
                if isinstance(value, str):
                    value = str.__str__(value)  # a subclass may hash as something else
                    known = self._indicators.get(name)
                    if known is None and type(name) is not str:
                        known = self._indicators.get(untag(tag(name)))
                    column = None if known is None else known.get(value)
                    if column is not None:
                        row[column] = 1.0
                        if admit:
                            self.repeats.add(name)
                    elif self.repeats.has_room(name, n_values := len(known or ())):
                        n_unknown += 1
                        if room:
                            unknown.append((["indicator", tag(name), value], 1.0))
                    elif admit:
                        self.repeats.note_without(name, n_values)
                    continue
                value = _number(name, value)
            column = known_numbers.get(name)
            if column is None and type(name) is not str:
                column = known_numbers.get(untag(tag(name)))
            if column is not None:
                row[column] = value
            elif value == value:  # NaN is not observed
                n_unknown += 1
                value = self._usable(name, value)
                if room:
                    unknown.append((["number", tag(name)], value))
        if not n_unknown:
            return row, {}
        arrivals = self._arrivals(unknown)
        if admit:
            self.n_ignored += n_unknown - len(arrivals)
            for _, tagged, value in arrivals:
                self._append(tagged)
                row.append(value)
            return row, {}
        return row, {key: self._unseen(tagged, value) for key, tagged, value in arrivals}

    def _arrivals(self, unknown: Sequence[tuple[list[Any], float]]) -> list[tuple[int, list[Any], float]]:
        """The unknown inputs of a record that there is room for, in the order of their keys.

        One whose key another input has already counts as past the limit: its features would be the other's.
        """
        arrivals: dict[int, tuple[list[Any], float]] = {}
        for tagged, value in unknown:
            key = key_of(tagged)
            # Of two in one record the first by name, whatever their order.
            if key not in self._taken and (key not in arrivals or repr(tagged) < repr(arrivals[key][0])):
                arrivals[key] = tagged, value
        return [(key, *arrivals[key]) for key in sorted(arrivals)[: self.room]]

    def _unseen(self, tagged: list[Any], value: float) -> float:
        """The scaled value of an unseen input: a number alone is its own mean, which is 0 after scaling.

        Such a 0 is -0, which tells it from an input that its record does not have.
        """
        if tagged[0] == "indicator":
            return value
        return -0.0 if self.standardize or not value else min(max(value, -RAW_LIMIT), RAW_LIMIT)

    def _matrix(self, rows: list[list[float]], xs: Sequence[Mapping[Any, Any]]) -> Array:
        d = len(self.columns)
        for row in rows:
            if len(row) < d:
                row.extend([_NAN] * (d - len(row)))
        try:
            values = np.array(rows, np.float64).reshape(len(rows), d)
        except OverflowError:  # an integer past the largest float
            values = np.full((1, 1), np.inf)
        if np.isinf(values).any() or self.is_outside(values):
            for x in xs:
                for name, value in x.items():
                    if value is not None and not isinstance(value, str):
                        self._usable(name, _number(name, value))
        return values

    def is_outside(self, values: Array) -> bool:
        """Whether one of some numbers is outside the domain."""
        return self.domain is not None and bool(self.domain.outside(values).any())

    def _usable(self, name: Hashable, value: float) -> float:
        value = _finite(name, value)
        if not is_inside(self.domain, value):
            assert self.domain is not None
            raise ValueError(self.domain.refusal(name, value))
        return value

    def may_refuse(self, name: Hashable, n_new: int) -> bool:
        """Whether some of so many new values of a string input may be past the limit that repetitions set."""
        return n_new > 0 and len(self.indicators(name)) + n_new > FREE

    def _n_values(self) -> dict[Hashable, int]:
        """The number of indicators of each string input, in the order of arrival."""
        names = (untag(tagged[1]) for tagged in self.columns if tagged[0] == "indicator")
        return dict(Counter(names))

    def _append(self, tagged: list[Any]) -> None:
        column = len(self.columns)
        name = untag(tagged[1])
        if tagged[0] == "indicator":
            self._indicators.setdefault(name, {})[tagged[2]] = column
        else:
            self._numbers[name] = column
        self.columns.append(tagged)
        self._keys.append(key_of(tagged))
        self._taken.add(self._keys[-1])

    def _truncate(self, n_columns: int) -> None:
        for tagged in self.columns[n_columns:]:
            name = untag(tagged[1])
            if tagged[0] == "indicator":
                del self._indicators[name][tagged[2]]
            else:
                del self._numbers[name]
        del self.columns[n_columns:]
        del self._keys[n_columns:]
        self._taken = set(self._keys)
        self._key_array = _NO_KEYS
        self._plain = None

    def _fit(self) -> None:
        """Add rows of moments for columns that have none yet."""
        missing = len(self.columns) - len(self.moments)
        if missing > 0:
            self.moments = np.concatenate([self.moments, np.zeros((missing, MOMENTS))])
        if len(self._is_number) != len(self.columns):
            self._is_number = np.array([name[0] == "number" for name in self.columns], np.bool_)


def _is_tag(tagged: Any) -> bool:
    try:
        untag(tagged)
    except ValueError:
        return False
    return True


def _number(name: Hashable, value: Any) -> float:
    number = real(value)
    if number is None:
        instead = instead_of_input(value) or "a number, a string, a boolean or None"
        raise ValueError(f"input {shown(name)} is of type {type(value).__name__}: give {instead}")
    return number


def _finite(name: Hashable, value: float) -> float:
    try:
        if not math.isinf(value):
            return value
    except OverflowError:
        pass
    raise ValueError(f"input {shown(name)} is infinite: give a finite number, or None where it was not observed")
