"""Records in columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["CodedColumn"]

Array = np.ndarray[Any, np.dtype[Any]]


class CodedColumn(NamedTuple):
    """A column as codes of its distinct values.

    Attributes
    ----------
    name
        The name of the column.
    codes
        The index in `values` of each record's value, int64 of shape (n,); -1 where it has none.
    values
        The distinct values so far; more may follow.

    """

    name: str
    codes: Array
    values: Sequence[Any]
