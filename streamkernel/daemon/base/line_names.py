"""The names that the line of a prediction has by itself, and those of the columns of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from connectors.class_columns import class_columns

__all__ = ["line_names"]

_OWN = ("position", "prediction", "target", "probabilities", "std", "checkpoint")
# Where a file has a column for each part of the position.
_PLACE = ("partition", "offset")


def line_names(classes: Sequence[Any] = (), *, parts_of_position: bool = False) -> tuple[str, ...]:
    """Return the names that no column that passes through may have in a line.

    Examples
    --------
    >>> line_names(["yes", "no"])[-3:]
    ('probability_yes', 'probability_no', 'other_probability')

    """
    return (*_OWN, *(_PLACE if parts_of_position else ()), *class_columns(classes))
