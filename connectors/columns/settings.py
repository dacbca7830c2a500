"""The settings of columns: which are inputs, and how each is read."""

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
    """How one column is read.

    Attributes
    ----------
    type
        ``"auto"``: as the source reads it by itself; ``"string"``, ``"number"``, ``"date"`` (parts of the calendar), or
        ``"hash"`` (one of so many buckets).
    na
        Spellings of a missing value, in place of those for all columns; None: those.
    nested
        What becomes of an object or a list; None: as for all columns.
    invalid
        What becomes of a value that is not of the type: the record is a fault, or the value is missing.
    format
        Of a date: ``"iso"``, ``"unix"`` or ``"unix_ms"`` (seconds or milliseconds since 1970), or one of `strptime`.
    parts
        Of a date: names of `streamkernel.connectors.columns.dates.PARTS`.
    cyclic
        Of a date: whether the parts that come round are a sine and a cosine, and not a number.
    timezone
        Of a date: the zone of its parts, where it says or implies one; None: the one it is written in.
    buckets
        Of a hash: how many.
    decimal, thousands
        Of a number: how it is written, in place of what is said for all columns; None for both: that.

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
    """Which columns of a source are inputs, and how they are read.

    Attributes
    ----------
    include
        The columns that are inputs; None: all. A name stands for what is nested in it, too.
    exclude
        Columns that are none.
    na
        Spellings of a missing value. A number of the same value is missing, too.
    nested
        What becomes of objects and lists: the record is a fault, they are left out, or each value in them is a column
        ``"outer.inner"``, in a list ``"outer.0"``.
    decimal, thousands
        How numbers are written in text: what separates the fraction, and what stands between the thousands; None for
        both: as Python writes them.
    types
        How columns are read that are not read as the source does by itself.

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
        """Tell whether a column is an input: neither excluded nor, where some are included, another one."""
        if self.is_excluded(name):
            return False
        return self.include is None or any(outer in self.include for outer in ancestry(name))

    def is_excluded(self, name: str) -> bool:
        """Tell whether a column, or what it is nested in, is excluded."""
        return any(outer in self.exclude for outer in ancestry(name))


def ancestry(name: str) -> list[str]:
    """Return the names that a name is nested in, the outermost first, and the name itself.

    Examples
    --------
    >>> ancestry("user.address.zip")
    ['user', 'user.address', 'user.address.zip']

    """
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
