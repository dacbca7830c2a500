"""The names that the line of a prediction has by itself, and those of the columns of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamkernel.connectors.class_columns import class_columns

__all__ = ["line_names"]

_OWN = ("position", "prediction", "target", "probabilities", "std", "checkpoint")
# Where there are several models.
_OF_MODELS = ("model", "models")
# Where a file has a column for each part of the position.
_PLACE = ("partition", "offset")


def line_names(
    classes: Sequence[Any] = (), *, parts_of_position: bool = False, several_models: bool = False
) -> tuple[str, ...]:
    """Return the names that no column that passes through may have in a line.

    Examples
    --------
    >>> line_names(["yes", "no"])[-3:]
    ('probability_yes', 'probability_no', 'other_probability')

    """
    places, models = _PLACE if parts_of_position else (), _OF_MODELS if several_models else ()
    return (*_OWN, *places, *models, *class_columns(classes))
