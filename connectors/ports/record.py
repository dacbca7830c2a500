"""A record, its place in its source, and why it cannot be used where it cannot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self, TypeAlias

from streamkernel.connectors.pass_through import Passed

__all__ = ["CausedFault", "ColumnUse", "Fault", "Label", "Position", "Record"]

Label: TypeAlias = str | int | float | bool
"""A decoded target."""


class Position(NamedTuple):
    """Where a record is in its source, or where the next one will.

    Attributes
    ----------
    stream
        What the offset counts in:

        - a file: ``"n:sha256"``, the SHA-256 of its first n decompressed bytes. These are all bytes before the offset,
          but at most 4096, or 2048 beyond the first line where that is more;
        - a River data set: its name and arguments;
        - standard input: ``"-"``;
        - a topic: ``"cluster/topic/number"``. A topic that is created again has another number;
        - a journal: ``"journal/id"``, in a checkpoint with ``;last=`` and the digest of the record before the
          offset.
    partition
        The partition of the stream, 0 where there is only one; of several files, the number of the file, from 0.
    offset
        A file: a byte offset in the decompressed stream. A data set: a record number, from 0. A journal: a record
        number, from 1. A topic: an offset.
    known
        What else a checkpoint knows of the place, as JSON: of a file, a
        `streamkernel.connectors.files.places.FilePlace`.

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
    """Why a record cannot be used: a reason for metrics, and a phrase of bounded length for a reader.

    A reason is a short stable code: ``"not_json"``, ``"not_an_object"``, ``"csv_width"``, ``"open_quote"``,
    ``"encoding"``, ``"too_long"``, ``"target"``, ``"infinite"``, ``"nested"``, ``"string_too_long"``,
    ``"input_type"``, ``"corrupt"`` or ``"schema"``. `CausedFault` has a cause, too.
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
    """What becomes of one column of a record.

    Attributes
    ----------
    name
        Of the column.
    value
        As it is in the record, in at most 60 characters.
    type
        What it is read as: ``"number"``, ``"string"``, ``"true or false"``, ``"date"``, ``"hash"``, ``"missing"`` or
        ``"nested"``.
    use
        A phrase: the inputs it becomes, that it is the target, or why it is neither.

    """

    name: str
    value: str
    type: str
    use: str


class Record(NamedTuple):
    """One record of a source.

    A named tuple and not a frozen data class, because it is made once for every record of the stream and a frozen
    data class costs five times as much to make.

    Attributes
    ----------
    x
        The decoded inputs by name; empty where the record is at fault or blank.
    y
        The decoded target; None where there is none, which leaves the record unlabeled. Of several targets a dict, with
        None for each that is missing.
    position
        Where the record begins.
    next
        Where its successor begins: what a checkpoint stores once this record is dealt with.
    raw
        The record as it stood in the source, without the line end; cut where the fault is ``"too_long"``.
    fault
        Why the record cannot be used, None where it can.
    blank
        True for an empty line (or a tombstone): counted as skipped, nothing else.
    passed
        What passes through to the line of the record; None where nothing is to, or nothing can.

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
