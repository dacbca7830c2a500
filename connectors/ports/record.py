"""A record, its position in its source, and the fault of an unusable one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self, TypeAlias

from streamkernel.connectors.pass_through import Passed

__all__ = ["CausedFault", "ColumnUse", "Fault", "Label", "Position", "Record"]

Label: TypeAlias = str | int | float | bool
"""A decoded target."""


class Position(NamedTuple):
    """The beginning of a record in its source.

    Attributes
    ----------
    stream
        The identity of what the offset counts in:

        - a file: ``"n:sha256"``, the SHA-256 of its first n decompressed bytes, all before the offset. n is at most
          4096, or 2048 beyond the first line if that is more;
        - a River data set: its name and arguments;
        - standard input: ``"-"``;
        - a topic: ``"cluster/topic/number"``. A topic that is created again has another number;
        - a journal: ``"journal/id"``. A checkpoint adds ``;last=`` and the digest of the record before the offset.
    partition
        The partition, 0 if there is only one. For several files, the number of the file, from 0.
    offset
        A file: a byte in the decompressed stream. A data set or a journal: a record number, from 0 or 1. A topic: an
        offset.
    known
        More about the place in a checkpoint, as JSON: for a file, a `streamkernel.connectors.files.places.FilePlace`.

    Examples
    --------
    >>> Position("synth.SEA{}", 0, 7).offset
    7

    """

    stream: str
    partition: int
    offset: int
    known: Mapping[str, Any] | None = None

    def to_json(self) -> list[Any]:
        """Return the position as a checkpoint has it, without what is not known."""
        return [part for part in self if part is not None]


class Fault(NamedTuple):
    """Why a record is unusable: a reason for metrics, and a short phrase for a reader.

    Reasons are ``"not_json"``, ``"not_an_object"``, ``"csv_width"``, ``"open_quote"``, ``"encoding"``, ``"too_long"``,
    ``"target"``, ``"infinite"``, ``"nested"``, ``"string_too_long"``, ``"input_type"``, ``"corrupt"`` and ``"schema"``.
    `CausedFault` has a cause, too.
    """

    reason: str
    detail: str

    @property
    def cause(self) -> str:
        """The cause; empty but for a `CausedFault`."""
        return ""


class CausedFault(Fault):
    """A fault with a cause of its own, such as ``"quotes"``, that decides how to mend the record."""

    cause = ""

    def __new__(cls, reason: str, detail: str, cause: str = "") -> Self:
        """Make a fault."""
        self = super().__new__(cls, reason, detail)
        self.cause = cause
        return self


class ColumnUse(NamedTuple):
    """The use of one column of a record.

    Attributes
    ----------
    name
        The column's name.
    value
        Its value in the record, in at most 60 characters.
    type
        ``"number"``, ``"string"``, ``"true or false"``, ``"date"``, ``"hash"``, ``"missing"`` or ``"nested"``.
    use
        A phrase: its inputs, or that it is the target, or why it is neither.

    """

    name: str
    value: str
    type: str
    use: str


class Record(NamedTuple):
    """One record of a source. A frozen data class would take five times as long to make.

    Attributes
    ----------
    x
        The decoded inputs by name; empty if the record has a fault or is blank.
    y
        The decoded target; None for an unlabeled record. For several targets a dict, with None for each missing one.
    position, next
        The position of the record and of the next one. A checkpoint stores `next`.
    raw
        The record's bytes in the source, without the line end; cut if the fault is ``"too_long"``.
    fault
        Why the record is unusable; None if it is usable.
    blank
        Whether it is an empty line or a tombstone, which the daemon skips and counts.
    passed
        The pass-through columns; None without any.

    Examples
    --------
    >>> start, end = Position("memory", 0, 0), Position("memory", 0, 1)
    >>> record = Record({"a": 1.0}, "yes", start, end, b'{"a":1.0,"y":"yes"}')
    >>> record.x, record.y, record.fault, record.blank
    ({'a': 1.0}, 'yes', None, False)

    """

    x: dict[str, Any]
    y: Any
    position: Position
    next: Position
    raw: bytes
    fault: Fault | None = None
    blank: bool = False
    passed: Passed | None = None
