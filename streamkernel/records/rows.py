"""Records encoded as rows of numbers: a column for each known input, and what their records alone brought.

Plain records hold known numbers only, as most do: they are read without a loop over values.
"""

import math
import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from streamkernel.state import Array

NO_KEYS = np.zeros(0, np.uint64)


class Rows(NamedTuple):
    """Encoded records, before they are scaled.

    - values: One column for each known input, float64 of shape (n, d); NaN where it was not observed.
    - extras: Inputs met only in records that may not add columns, scaled, float64 of shape (n, e); 0 is not observed,
      -0 a number that is 0.
    - extra_keys: The keys of those inputs, ascending, uint64 of shape (e,).
    - n_known: The number of inputs known at each record, with its own if it may add columns; int64 of shape (n,).
    """

    values: Array
    extras: Array
    extra_keys: Array
    n_known: Array

    @classmethod
    def known(cls, values: Array) -> "Rows":
        """Encoded records, (n, d), of known inputs only."""
        n, d = values.shape
        return cls(values, np.zeros((n, 0)), NO_KEYS, np.full(n, d))

    def part(self, rows: slice) -> "Rows":
        """Some of the encoded records, with the extras that these have."""
        if not self.extra_keys.size:
            return Rows(self.values[rows], self.extras[rows], self.extra_keys, self.n_known[rows])
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


#: Types of values that need no second look.
PLAIN = {float, int}


class PlainRecords:
    """A reader of records that hold exactly the given inputs, all of them finite numbers, or NaN.

    - names: The names of the d inputs, at least one.
    - n: The records that `values` has room for. Defaults to 1.
    - values: The last record of each row for which `read_one` returned True, float64 of shape (n, d), in the order of
      `names`; undefined once it returned False.
    """

    def __init__(self, names: tuple[Any, ...], n: int = 1) -> None:
        self.names = names
        self.values = np.zeros((n, len(names)))
        get: Callable[[Any], Any] = operator.itemgetter(*names)
        self._get = get if len(names) > 1 else lambda x: (get(x),)
        self._memory = self.values.data
        self._offsets = [row * self.values.strides[0] for row in range(n)]
        self._pack: Callable[..., None] = struct.Struct(f"{len(names)}d").pack_into

    def read_one(self, x: Mapping[Any, Any], place: int = 0) -> bool:
        """Read a record of finite numbers into a row of `values`; returns False if it holds anything else."""
        if type(x) is not dict or len(x) != len(self.names):  # a Counter, say, has an answer to any name
            return False
        try:
            row = self._get(x)
            if not (PLAIN.issuperset(map(type, row)) and math.isfinite(sum(row))):
                return False
            self._pack(self._memory, self._offsets[place], *row)
        except (KeyError, OverflowError, struct.error):  # another name; an integer past the largest float
            return False
        return True

    def read(self, xs: Sequence[Mapping[Any, Any]]) -> Array | None:
        """Read n records of finite numbers or NaN: float64 of shape (n, d), or None if one holds anything else."""
        d = len(self.names)
        if set(map(type, xs)) != {dict} or set(map(len, xs)) != {d}:
            return None
        try:
            numbers = [*chain.from_iterable(map(self._get, xs))]
            if not PLAIN.issuperset(map(type, numbers)):
                return None
            values = np.array(numbers, np.float64).reshape(len(xs), d)
        except (KeyError, OverflowError):
            return None
        return None if np.isinf(values).any() else values
