"""The ports: what a source hands out, what a sink takes, and where a record stands.

Everything that reads or writes records (files, River data sets, a broker) speaks these few types, so the daemon
knows none of them by name. The in-memory fakes beside this file, in `connectors.memory`, speak them too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeAlias

Label: TypeAlias = str | int | float | bool
"""A decoded target."""


class ConnectorError(Exception):
    """Something outside the process cannot be read or written; the message is one sentence for the user."""


class SourceError(ConnectorError):
    """A source cannot be opened, resumed or read on."""


class SinkError(ConnectorError):
    """A sink cannot be opened, resumed or written."""


class Position(NamedTuple):
    """Where a record stands in its source, or where the next one will.

    Parameters
    ----------
    stream
        What the offset counts in. A file: its identity, ``"n:sha256"`` with the SHA-256 in hexadecimal of its first n
        (at most 4096) decompressed bytes. A River data set: its name and arguments. Standard input: ``"-"``.
    partition
        The partition of the stream, 0 where there is only one.
    offset
        A file: a byte offset in the decompressed stream. A data set: a record number, from 0.

    Examples
    --------
    >>> Position("synth.SEA{}", 0, 7).offset
    7

    """

    stream: str
    partition: int
    offset: int


class Fault(NamedTuple):
    """Why a record cannot be used.

    Parameters
    ----------
    reason
        A short stable code, fit for a metric's label: ``"not_json"``, ``"not_an_object"``, ``"csv_width"``,
        ``"encoding"``, ``"too_long"``, ``"target"``, ``"infinite"``, ``"nested"`` or ``"string_too_long"``.
    detail
        A phrase for a reader, of bounded length.

    """

    reason: str
    detail: str


class Record(NamedTuple):
    """One record of a source.

    A named tuple and not a frozen data class, because it is made once for every record of the stream and a frozen
    data class costs five times as much to make.

    Parameters
    ----------
    x
        The decoded inputs by name; empty where the record is at fault or blank.
    y
        The decoded target; None where there is none, which leaves the record unlabelled.
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

    Examples
    --------
    >>> start, end = Position("memory", 0, 0), Position("memory", 0, 1)
    >>> record = Record({"a": 1.0}, "yes", start, end, b'{"a":1.0,"y":"yes"}')
    >>> record.x, record.y, record.fault, record.blank
    ({'a': 1.0}, 'yes', None, False)

    """

    x: dict[str, Any]
    y: Label | None
    position: Position
    next: Position
    raw: bytes
    fault: Fault | None = None
    blank: bool = False


class Source(ABC):
    """Where records come from. A context manager: leaving it closes the source."""

    @abstractmethod
    def open(self, positions: Mapping[int, Position] | None = None) -> None:
        """Open the source, at its beginning or where an earlier run left it.

        Parameters
        ----------
        positions
            By partition, the `next` position of the last record that was dealt with. None or empty: begin anew.

        Raises
        ------
        SourceError
            When the source cannot be read, cannot be resumed, or is not what the positions were taken from.

        """

    @abstractmethod
    def poll(self, max_records: int, timeout: float) -> list[Record]:
        """Hand out the next records.

        Parameters
        ----------
        max_records
            The most records to hand out.
        timeout
            Seconds to wait for the first record, where records may still arrive.

        Returns
        -------
        list of Record
            In the source's order; empty when none came within the timeout or the source is exhausted.

        Raises
        ------
        SourceError
            When the source cannot be read on; every record before that place was handed out.

        """

    @property
    @abstractmethod
    def exhausted(self) -> bool:
        """Whether the source is finite and every record was handed out."""

    @property
    @abstractmethod
    def resumable(self) -> bool:
        """Whether a later run can go on where this one ended."""

    @property
    @abstractmethod
    def total(self) -> tuple[int, str] | None:
        """The size of the source with its unit, ``"bytes"`` or ``"records"``, as offsets count; None if unknown."""

    @abstractmethod
    def describe(self) -> str:
        """Return one phrase that names the source in a log line."""

    @abstractmethod
    def close(self) -> None:
        """Release what the source holds; closing twice does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Sink(ABC):
    """Where lines go. A context manager: leaving it closes the sink."""

    @abstractmethod
    def open(self, length: int | None = None) -> None:
        """Open the sink.

        Parameters
        ----------
        length
            What `flush` returned at the checkpoint to go on from: whatever was written after it is cut off. None:
            start anew, over what may be there.

        Raises
        ------
        SinkError
            When the sink cannot be written, or holds less than `length`.

        """

    @abstractmethod
    def write(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Take lines, which are durable only after the next `flush`.

        Parameters
        ----------
        lines
            One mapping a line.

        Raises
        ------
        SinkError
            When the system refuses to write. The lines are kept and the next `write` or `flush` tries again: they
            must not be handed over a second time.

        """

    @abstractmethod
    def flush(self) -> int | None:
        """Make every line durable.

        Returns
        -------
        int or None
            The length to record in a checkpoint and to give to `open` after a restart; None where nothing can be cut
            off again.

        Raises
        ------
        SinkError
            When the system refuses to write.

        """

    @property
    @abstractmethod
    def exactly_once(self) -> bool:
        """Whether a restart leaves no line missing and none double."""

    @abstractmethod
    def close(self) -> None:
        """Flush and release what the sink holds; closing twice does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
