"""The ports: what a source hands out, what a sink takes, and where a record stands.

Everything that reads or writes records (files, River data sets, a broker) speaks these few types, so the daemon
knows none of them by name. The in-memory fakes beside this file, in `connectors.memory`, speak them too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Self, TypeAlias

from connectors.passed import Passed, PassedColumn

Label: TypeAlias = str | int | float | bool
"""A decoded target."""

Mark: TypeAlias = int | dict[str, Any]
"""How far a sink was written, as JSON: the length of a file or the end offsets of a topic, and what it is known by.

A file of version 1 of the checkpoints has the length alone."""


class ConnectorError(Exception):
    """Something outside the process cannot be read or written; the message is one sentence for the user."""


class SourceError(ConnectorError):
    """A source cannot be opened, resumed or read on."""


class SinkError(ConnectorError):
    """A sink cannot be opened, resumed or written."""


class OutageError(SinkError):
    """The other side does not answer for now: the lines wait, and the same call may be made again later."""


class Position(NamedTuple):
    """Where a record stands in its source, or where the next one will.

    Attributes
    ----------
    stream
        What the offset counts in. A file: ``"n:sha256"`` with the SHA-256 in hexadecimal of its first n decompressed
        bytes, which are all those before the offset or the first 4096, and 2048 beyond the first line where that is
        more. In a checkpoint there follow, with semicolons between, what is checked before reading goes on:
        ``"tail=n:sha256"`` of the last n (at most 4096) bytes before the offset; ``"unended"`` after a last line that
        had no line end; ``"inode=n"`` of a file that is followed. A River data set: its name and arguments. Standard
        input: ``"-"``. A topic: ``"cluster/topic/number"``, where the number is the topic's own, which a topic made
        anew does not have. Several files: that of the file, in a checkpoint with ``;files=`` and the order of the files
        as JSON behind it.
    partition
        The partition of the stream, 0 where there is only one; of several files, the number of the file, from 0.
    offset
        A file: a byte offset in the decompressed stream. A data set: a record number, from 0. A topic: an offset.

    Examples
    --------
    >>> Position("synth.SEA{}", 0, 7).offset
    7

    """

    stream: str
    partition: int
    offset: int


class Fault(NamedTuple):
    """Why a record cannot be used: a reason for metrics, and a phrase of bounded length for a reader.

    A reason is a short stable code: ``"not_json"``, ``"not_an_object"``, ``"csv_width"``, ``"encoding"``,
    ``"too_long"``, ``"target"``, ``"infinite"``, ``"nested"``, ``"string_too_long"``, ``"input_type"``,
    ``"corrupt"`` or ``"schema"``.
    """

    reason: str
    detail: str


class ColumnUse(NamedTuple):
    """What becomes of one column of a record.

    Attributes
    ----------
    name
        Of the column.
    value
        As it stands in the record, in at most 60 characters.
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
    y: Label | None
    position: Position
    next: Position
    raw: bytes
    fault: Fault | None = None
    blank: bool = False
    passed: Passed | None = None


class Connector(ABC):
    """A source or a sink as a context manager: leaving it closes the connector."""

    @abstractmethod
    def close(self) -> None:
        """Release what is held, a sink after a flush; closing twice does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Source(Connector):
    """A source of records, read in order from its beginning or from a position on."""

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
        """Hand out the next records, all of one partition.

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

    def decode(self, raw: bytes, position: Position, following: Position) -> Record:  # noqa: ARG002
        """Return the record of raw bytes, decoded as `poll` decodes its own: for one that is to be read once more.

        Parameters
        ----------
        raw
            The record as it may stand in the source, without a line end.
        position, following
            Its `position` and its `next`.

        Raises
        ------
        SourceError
            Where a record cannot be decoded without the others, as by default.

        """
        raise SourceError(f"{self.describe()}: a record of it cannot be decoded by itself")

    def decodable(self, raw: bytes, timeout: float) -> bool:  # noqa: ARG002 - most decoders need nothing from elsewhere
        """Return whether `decode` can be called for raw bytes, by default at once.

        What their decoding needs from elsewhere, such as a schema, is waited for at most `timeout` seconds.

        Raises
        ------
        SourceError
            Where it will never be there.

        """
        return True

    def pass_through(self, columns: Sequence[PassedColumn], *, message: bool = False) -> None:  # noqa: ARG002
        """Let each record hold these columns, and its message, in `passed`, from `open` on; by default it cannot."""
        raise SourceError(f"{self.describe()}: has nothing that could pass through to the lines: drop include")

    @property
    @abstractmethod
    def exhausted(self) -> bool:
        """Whether the source is finite and every record was handed out."""

    @property
    @abstractmethod
    def resumable(self) -> bool:
        """Whether a later run can go on where this one ended."""

    @property
    def total(self) -> tuple[int, str] | None:
        """The size of the source with its unit, ``"bytes"`` or ``"records"``, as offsets count; None if unknown."""
        return None

    @property
    def starting_offsets(self) -> Mapping[int, Position]:
        """Where each partition begins that no position was given for, where a later run might choose another place.

        Known before the first record of a partition is handed out, and stored before it is learnt, or where none comes.
        Empty by default.
        """
        return {}

    @property
    def chooses_order(self) -> bool:
        """Whether a later run might begin other partitions than those of `starting_offsets`, beside earlier ones.

        If so, they are stored before the first record of them is learnt. False by default.
        """
        return False

    def settled(self, positions: Mapping[int, Position]) -> Collection[int]:  # noqa: ARG002
        """Return the partitions among these without which a later run goes on just as well; none by default."""
        return ()

    def saved(self, positions: Mapping[int, Position]) -> None:
        """Take note that a checkpoint is durable from which a restart goes on at these positions, by partition."""

    def lasting(self, position: Position) -> Position:
        """Return a position as a checkpoint stores it, with all that tells a later `open` that it is the same place.

        Parameters
        ----------
        position
            The `next` of a record of the last poll that gave any, one that `lasting` returned, or one that `open` got.

        """
        return position

    @property
    def lag(self) -> Mapping[tuple[str, int], int]:
        """How many records are still to come, by topic and partition, as far as known; empty by default."""
        return {}

    @property
    def known(self) -> Mapping[tuple[str, int], int]:
        """How many records are known of, handed out since `open` or still to come, as `lag` has them.

        What was dealt with, taken from this, leaves what was not, also while records are on their way. It may be asked
        for on any thread.
        """
        return {}

    @property
    def health_problem(self) -> str | None:
        """Why records that are there do not come for now, one sentence; None where they may, as by default."""
        return None

    def columns(self, record: Record) -> Sequence[ColumnUse]:  # noqa: ARG002 - of no use to a source without columns
        """Return what becomes of each column of a record that was handed out without a fault; by default nothing."""
        return []

    @abstractmethod
    def describe(self) -> str:
        """Return one phrase that names the source in a log line."""


class Sink(Connector):
    """A sink of lines, which a flush makes durable and a mark lets it go on from."""

    @abstractmethod
    def open(self, mark: Mark | None = None) -> None:
        """Open the sink.

        Parameters
        ----------
        mark
            What `flush` returned at the checkpoint to go on from: a line written after it counts only once, however
            often it is written again. None: there is none; what holds something already is treated as the
            configuration of the sink says.

        Raises
        ------
        SinkError
            When the sink cannot be written, is not what it was at the mark, or is another one's.

        """

    def find_problem(self, mark: Mark | None = None) -> None:
        """Raise the SinkError that `open` would, changing nothing and shutting out nobody; by default none."""

    def find_problem_anew(
        self,
        mark: Mark | None,  # noqa: ARG002 - of no use to a sink that sets nothing aside
        before: Mark | None = None,  # noqa: ARG002
        *,
        stays: bool = False,  # noqa: ARG002
    ) -> None:
        """Raise the SinkError that `set_aside` and, behind it, `open` without a mark would, changing nothing.

        `stays` says that `set_aside` is not to be called, for no earlier run recorded anything of the sink.
        """
        self.find_problem()

    def set_aside(self, mark: Mark | None, before: Mark | None = None) -> None:
        """Put what an earlier run wrote out of the way of one that begins anew; by default it stays where it is.

        Parameters
        ----------
        mark
            What the earlier run recorded of it last, and what is not known by that stays; None where nobody can read
            that any more.
        before
            What the run recorded whose lines were set aside before: those may be destroyed now.

        Raises
        ------
        SinkError
            When there is no place for it.

        """

    @abstractmethod
    def write(self, lines: Sequence[Mapping[str, Any]], positions: Sequence[Position]) -> None:
        """Take lines, which are durable only after the next `flush`.

        Parameters
        ----------
        lines
            One mapping a line.
        positions
            Where the record of each line begins, one for each line. A sink that cannot be cut back knows its lines by
            them; one that can may do without.

        Raises
        ------
        SinkError
            When the system refuses to write. The lines are kept and the next `write` or `flush` tries again: they
            must not be handed over a second time.

        """

    @abstractmethod
    def flush(self) -> Mark | None:
        """Make every line durable.

        Returns
        -------
        mark
            What to record in a checkpoint and to give to `open` after a restart; None where no line can be taken back
            or known again.

        Raises
        ------
        OutageError
            When the other side does not answer for now; the lines wait.
        SinkError
            When the system refuses to write.

        """

    def publish(self) -> None:
        """Begin to show others the lines that were taken, without waiting for it and without making them durable.

        Called again and again while there are such lines; by default they are shown by `write` or by `flush`.

        Raises
        ------
        SinkError
            When the system refuses to write. The lines are kept.

        """

    @property
    def unpublished(self) -> int:
        """How many of the lines taken last nobody else can read yet; by default those that are not written."""
        return self.waiting

    @property
    def waiting(self) -> int:
        """How many lines were taken and are not written yet, where that is known; 0 by default."""
        return 0

    @property
    def waiting_bytes(self) -> int:
        """How many bytes of lines were taken and are not written yet, where that is known; 0 by default."""
        return 0

    @property
    @abstractmethod
    def exactly_once(self) -> bool:
        """Whether a restart leaves no line missing and none double."""
