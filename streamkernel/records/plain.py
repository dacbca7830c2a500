"""The fast path for plain records, which hold known numbers only, as most do: read without a loop over values."""

import math
import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from streamkernel.state import Array

#: Types of values that need no second look.
PLAIN = {float, int}


class PlainRecords:
    """A reader of records that hold exactly the given inputs, all of them finite numbers, or NaN.

    Parameters
    ----------
    names
        The names of the d inputs, at least one.
    n
        The records that `values` has room for. Defaults to 1.

    Attributes
    ----------
    values
        The last record of each row for which `read_one` returned True, float64 of shape (n, d), in the order of
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
