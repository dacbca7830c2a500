"""The settings of columns: the inputs and their types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from streamkernel.connectors.names import nfc, with_normal_names

__all__ = ["ColumnSettings", "ColumnType", "DatePart", "InputSettings", "Nested", "ancestry"]

ColumnType: TypeAlias = Literal["auto", "string", "number", "date", "hash"]
Nested: TypeAlias = Literal["dead_letter", "flatten", "ignore"]
DatePart: TypeAlias = Literal[
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "day_of_year",
    "weekday",
    "hour",
    "minute",
    "second",
    "time_of_day",
    "days",
]


@dataclass(frozen=True)
class ColumnSettings:
    """The settings of one column.

    Attributes
    ----------
    type
        ``"auto"`` (the type that the source shows), ``"string"``, ``"number"``, ``"date"`` (parts of the calendar), or
        ``"hash"`` (one of some buckets).
    na
        The spellings of a missing value; None: those of all columns.
    nested
        The treatment of an object or a list; None: as for all columns.
    invalid
        The treatment of a value of another type: a fault, or a missing value.
    format
        Date: ``"iso"``, ``"unix"`` or ``"unix_ms"`` (seconds or milliseconds since 1970), or a format of `strptime`.
    parts
        Date: names of `streamkernel.connectors.columns.dates.PARTS`.
    cyclic
        Date: whether a cyclic part is a sine and a cosine instead of a number.
    timezone
        Date: the zone of the parts; None: the zone of the written date.
    buckets
        Hash: the number of buckets.
    decimal, thousands
        Number: the notation; None for both: as for all columns.

    """

    type: ColumnType = "auto"
    na: tuple[str, ...] | None = None
    nested: Nested | None = None
    invalid: Literal["dead_letter", "missing"] = "dead_letter"
    format: str = "iso"
    parts: tuple[DatePart, ...] = ("year", "month", "day", "weekday", "hour")
    cyclic: bool = True
    timezone: str | None = None
    buckets: int = 64
    decimal: str | None = None
    thousands: str | None = None


@dataclass(frozen=True)
class InputSettings:
    """The inputs of a source and their types.

    Attributes
    ----------
    include
        The input columns; None: all. A name covers everything nested in it.
    exclude
        The columns that are not inputs.
    na
        The spellings of a missing value. An equal number is missing, too.
    nested
        The treatment of objects and lists: a fault, left out, or a column for each value in them: ``"outer.inner"``, in
        a list ``"outer.0"``.
    decimal, thousands
        The notation of numbers in text: the decimal sign, and the separator of thousands; None for both: Python's.
    types
        The settings of single columns.

    """

    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    na: tuple[str, ...] = ()
    nested: Nested = "dead_letter"
    decimal: str | None = None
    thousands: str | None = None
    types: Mapping[str, ColumnSettings] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key in ("include", "exclude"):
            names = getattr(self, key)
            object.__setattr__(self, key, None if names is None else tuple(map(nfc, names)))
        object.__setattr__(self, "types", with_normal_names(self.types))

    def is_input(self, name: str) -> bool:
        """Whether a column is an input."""
        if self.is_excluded(name):
            return False
        return self.include is None or any(outer in self.include for outer in ancestry(name))

    def is_excluded(self, name: str) -> bool:
        """Whether a column, or an object around it, is excluded."""
        return any(outer in self.exclude for outer in ancestry(name))


def ancestry(name: str) -> list[str]:
    """Return the names of the objects around a nested value, the outermost first, and its own name.

    Examples
    --------
    >>> ancestry("user.address.zip")
    ['user', 'user.address', 'user.address.zip']

    """
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
