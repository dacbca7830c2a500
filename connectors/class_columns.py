"""Columns of probabilities: one for each named class, and one for all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamkernel.connectors.encode import to_json

OTHERS = "other_probability"
"""The column of all other classes."""

PROBABILITIES = "probabilities"
"""The name of a line's probabilities."""


def class_columns(classes: Sequence[Any]) -> tuple[str, ...]:
    """Return the column names of some classes.

    Examples
    --------
    >>> class_columns([True, "no"])
    ('probability_true', 'probability_no', 'other_probability')

    """
    return (*(f"probability_{_text(label)}" for label in classes), OTHERS) if classes else ()


class ClassColumns:
    """A converter of a line's probabilities to columns.

    Parameters
    ----------
    classes
        The classes with a column each; without any, lines stay as they are.

    Examples
    --------
    >>> spread = ClassColumns(["yes", "no"])
    >>> spread({"prediction": "yes", "probabilities": {"yes": 0.5, "no": 0.25, "maybe": 0.25}})
    {'prediction': 'yes', 'probability_yes': 0.5, 'probability_no': 0.25, 'other_probability': 0.25}
    >>> spread({"prediction": None, "probabilities": {}})
    {'prediction': None, 'probability_yes': None, 'probability_no': None, 'other_probability': None}

    """

    def __init__(self, classes: Sequence[Any] = ()) -> None:
        self.names = class_columns(classes)
        self._columns = dict(zip(map(_text, classes), self.names, strict=False))

    def __call__(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a line with a column for each class in place of its probabilities.

        A class that the model has not seen has probability 0. Without probabilities, all columns are None.
        """
        if not self.names:
            return line
        spread: dict[str, Any] = {}
        for name, value in line.items():
            if name == PROBABILITIES:
                spread |= self.values(value)
            else:
                spread[name] = value
        return spread if PROBABILITIES in line else spread | self.values(None)

    def values(self, probabilities: Mapping[Any, float] | None) -> dict[str, float | None]:
        """Return the columns of one line's probabilities."""
        if not probabilities:
            return dict.fromkeys(self.names)
        found: dict[str, float | None] = dict.fromkeys(self.names, 0.0)
        others = 0.0
        for label, probability in probabilities.items():
            column = self._columns.get(_text(label))
            if column is None:
                others += probability
            else:
                found[column] = probability
        found[OTHERS] = others
        return found


def _text(label: Any) -> str:
    """Return a label as a key of JSON: true, 3."""
    return label if isinstance(label, str) else to_json(label).decode()
