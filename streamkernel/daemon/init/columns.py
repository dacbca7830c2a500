"""What the columns of a sample hold, and which of them is to be predicted as what."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from streamkernel.daemon.config.problems import hint
from streamkernel.daemon.init.sample import Sample, SampleError

__all__ = ["SampleColumn", "Target", "describe_columns", "find_target"]

_TARGET_NAMES = frozenset({"class", "label", "outcome", "response", "target", "y"})
# Whole numbers that are more than so many different ones are an amount, and no labels.
_MOST_LABELS = 20
# A text of which nearly every record has another one.
_IDENTIFIES, _FEWEST_TO_TELL = 0.9, 20
_NUMBERS = 0.9


@dataclass(frozen=True)
class SampleColumn:
    """What a column of a sample holds.

    Attributes
    ----------
    name
        The name of the column or key.
    holds
        The kind of its values.
    n_present, n_different
        How many records have a value, and how many different ones there are.
    longest
        The longest text, in characters.

    """

    name: str
    holds: Literal["numbers", "texts", "nested values", "nothing"]
    n_present: int
    n_different: int
    longest: int = 0

    @property
    def identifies(self) -> bool:
        """Whether it seems to name each record rather than to describe it."""
        enough = self.n_present >= _FEWEST_TO_TELL
        return self.holds == "texts" and enough and self.n_different >= _IDENTIFIES * self.n_present


@dataclass(frozen=True)
class Target:
    """What is to be predicted: a column, the type of its values, and whether somebody named it."""

    name: str
    kind: Literal["str", "int", "bool", "float"]
    guessed: bool


def describe_columns(sample: Sample) -> list[SampleColumn]:
    """Return what each column of a sample holds, in order."""
    return [_column(sample, name, _present(sample, name)) for name in sample.columns]


def find_target(sample: Sample, name: str | None) -> Target:
    """Return the target of a sample: the column of this name, or the one that looks most like it.

    Raises
    ------
    SampleError
        Where there is no such column, or none of its values can be learnt.

    """
    if not sample.columns:
        raise SampleError(f"{sample.path}: its first records hold nothing: give a file whose records have values")
    if name is None:
        named = [one for one in sample.columns if one.strip().lower() in _TARGET_NAMES]
        name, guessed = (named or list(sample.columns))[-1], True
    elif name in sample.columns:
        guessed = False
    else:
        listed = ", ".join(map(repr, sample.columns[:20]))
        raise SampleError(
            f"--target: {sample.path} has no column {name!r}, it has {listed}{hint(name, sample.columns)}"
        )
    values = _present(sample, name)
    column = _column(sample, name, values)
    if column.holds in ("nothing", "nested values"):
        has = "is empty" if column.holds == "nothing" else "holds nested values"
        raise SampleError(
            f"{sample.path}: the column {name!r} {has} in its first records: name another one by --target"
        )
    return Target(name, _kind(values, column), guessed)


def _kind(values: list[Any], column: SampleColumn) -> Literal["str", "int", "bool", "float"]:
    if all(isinstance(value, bool) for value in values):
        return "bool"
    if column.holds == "texts":
        return "str"
    whole = all(number.is_integer() for value in values if (number := _number(value)) is not None)
    return "int" if whole and column.n_different <= _MOST_LABELS else "float"


def _present(sample: Sample, name: str) -> list[Any]:
    return [value for record in sample.records if not _is_absent(value := record.get(name))]


def _is_absent(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip() or value.strip().lower() == "nan"
    return value is None or (isinstance(value, float) and math.isnan(value))


def _column(sample: Sample, name: str, values: list[Any]) -> SampleColumn:
    if not values:
        return SampleColumn(name, "nothing", 0, 0)
    if any(isinstance(value, dict | list) for value in values):
        return SampleColumn(name, "nested values", len(values), 0)
    different = len(set(values))
    # A text of digits is a number in CSV, and a text in JSON.
    if (sample.kind == "csv" or not any(isinstance(value, str) for value in values)) and _are_numbers(values):
        return SampleColumn(name, "numbers", len(values), different)
    return SampleColumn(name, "texts", len(values), different, max(len(str(value)) for value in values))


def _are_numbers(values: list[Any]) -> bool:
    """Return whether nearly all values are finite numbers, as a source reads them: the others are mistakes."""
    return sum(_number(value) is not None for value in values) >= _NUMBERS * len(values)


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and "_" not in str(value) else None
