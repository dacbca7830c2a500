"""The port of a source: records in order, from the beginning or from a position."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence

from streamkernel.connectors.pass_through import PassedColumn
from streamkernel.connectors.ports.connector import Connector, SourceError
from streamkernel.connectors.ports.record import ColumnUse, Position, Record

__all__ = ["Source", "at_offset"]


def at_offset(partition: int, offset: int) -> str:
    """Return the place of a record by its numbers, such as ``"offset 7 of partition 2"``."""
    return f"offset {offset}" + (f" of partition {partition}" if partition else "")


class Source(Connector):
    """A source of records. `SourceError` is the error of all its methods."""

    @abstractmethod
    def open(self, positions: Mapping[int, Position] | None = None) -> None:
        """Open the source at its beginning, or where an earlier run left it.

        Parameters
        ----------
        positions
            By partition, the `next` position of the last record that was dealt with. None or empty: start over.

        Raises
        ------
        SourceError
            If the source cannot be read, cannot be resumed, or is not the source of the positions.

        """

    @abstractmethod
    def poll(self, max_records: int, timeout: float) -> Sequence[Record]:
        """Return the next records, all of one partition and in order.

        Parameters
        ----------
        max_records
            The most records to return.
        timeout
            How long to wait for the first record, in seconds. Without one, the list is empty.

        Raises
        ------
        SourceError
            If the source cannot be read on. It has handed out every record before that place.

        """

    def decode(self, raw: bytes, position: Position, following: Position) -> Record:  # noqa: ARG002
        """Return the record of raw bytes again, with its `position` and its `next`; by default that is impossible."""
        raise SourceError(f"{self.describe()}: one record alone cannot be decoded")

    def decodable(self, raw: bytes, timeout: float) -> bool:  # noqa: ARG002 - most decoders need nothing from elsewhere
        """Return whether `decode` can be called now; by default it can.

        Waits at most `timeout` seconds for what decoding needs, such as a schema. Raises SourceError if it never comes.
        """
        return True

    def place(self, partition: int, offset: int) -> str:
        """Return where a record begins, for people; in a file, with the line if that is cheap to count."""
        return at_offset(partition, offset)

    def pass_through(self, columns: Sequence[PassedColumn], *, message: bool = False) -> None:  # noqa: ARG002
        """Fill `Record.passed` with these columns, and the message, from `open` on; by default that is impossible."""
        raise SourceError(f"{self.describe()}: has no columns to pass through to the lines: remove include")

    @property
    @abstractmethod
    def exhausted(self) -> bool:
        """Whether the source is finite and has handed out every record."""

    @property
    @abstractmethod
    def resumable(self) -> bool:
        """Whether a later run can continue where this one ended."""

    @property
    def total(self) -> tuple[int, str] | None:
        """The size of the source with its unit, ``"bytes"`` or ``"records"``, as offsets count; None if unknown."""
        return None

    @property
    def starting_offsets(self) -> Mapping[int, Position]:
        """The beginning of each partition without a position, if a later run might choose another one.

        Known before the first record of a partition, and stored before the daemon learns it. Empty by default.
        """
        return {}

    @property
    def chooses_order(self) -> bool:
        """Whether a later run might begin partitions that `starting_offsets` lacks, in addition to earlier ones.

        If so, a checkpoint stores them before the daemon learns their first record. False by default.
        """
        return False

    def settled(self, positions: Mapping[int, Position]) -> Collection[int]:  # noqa: ARG002
        """Return the partitions that a later run does not need in a checkpoint; none by default."""
        return ()

    def saved(self, positions: Mapping[int, Position]) -> None:
        """Note that a checkpoint is durable: a restart continues at these positions, by partition."""

    def commit(self, positions: Mapping[int, Position]) -> Mapping[int, int]:
        """Commit these saved positions to the source's group, if it has one; called after `saved` and when idle.

        Returns
        -------
        offsets
            The committed offsets by partition. They also pass what follows a position and is no record.

        """
        return {partition: position.offset for partition, position in positions.items()}

    def lasting(self, position: Position) -> Position:
        """Return the position for a checkpoint, with all that a later `open` needs to recognise the place.

        Parameters
        ----------
        position
            The `next` of a record of the last poll, a position that `lasting` returned, or one that `open` got.

        """
        return position

    @property
    def lag(self) -> Mapping[tuple[str, int], int]:
        """The number of records to come, by topic and partition, if known; empty by default."""
        return {}

    @property
    def known(self) -> Mapping[tuple[str, int], int]:
        """The number of records handed out since `open` or to come, as in `lag`; for any thread."""
        return {}

    @property
    def health_problem(self) -> str | None:
        """Why available records do not arrive, one sentence; None by default."""
        return None

    def columns(self, record: Record) -> Sequence[ColumnUse]:  # noqa: ARG002 - of no use to a source without columns
        """Return the use of each column of a record without a fault; nothing by default."""
        return []

    @abstractmethod
    def describe(self) -> str:
        """Return a phrase that names the source in a log line."""
