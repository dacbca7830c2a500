"""The port of a source: what hands out records in order, and continues from a position."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence

from streamkernel.connectors.pass_through import PassedColumn
from streamkernel.connectors.ports.connector import Connector, SourceError
from streamkernel.connectors.ports.record import ColumnUse, Position, Record

__all__ = ["Source", "at_offset"]


def at_offset(partition: int, offset: int) -> str:
    """Return where a record is by its numbers alone, such as ``"offset 7 of partition 2"``."""
    return f"offset {offset}" + (f" of partition {partition}" if partition else "")


class Source(Connector):
    """A source of records, read in order from its beginning or from a position on."""

    @abstractmethod
    def open(self, positions: Mapping[int, Position] | None = None) -> None:
        """Open the source, at its beginning or where an earlier run left it.

        Parameters
        ----------
        positions
            By partition, the `next` position of the last record that was dealt with. None or empty: start over.

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
            The record as it may be in the source, without a line end.
        position, following
            Its `position` and its `next`.

        Raises
        ------
        SourceError
            Where a record cannot be decoded without the others, as by default.

        """
        raise SourceError(f"{self.describe()}: one record alone cannot be decoded")

    def decodable(self, raw: bytes, timeout: float) -> bool:  # noqa: ARG002 - most decoders need nothing from elsewhere
        """Return whether `decode` can be called for raw bytes, by default at once.

        What their decoding needs from elsewhere, such as a schema, is waited for at most `timeout` seconds.

        Raises
        ------
        SourceError
            Where it will never be there.

        """
        return True

    def place(self, partition: int, offset: int) -> str:
        """Return where a record begins, in words for people; of a file, with its line where that is cheap to count."""
        return at_offset(partition, offset)

    def pass_through(self, columns: Sequence[PassedColumn], *, message: bool = False) -> None:  # noqa: ARG002
        """Let each record hold these columns, and its message, in `passed`, from `open` on; by default it cannot."""
        raise SourceError(f"{self.describe()}: has no columns to pass through to the lines: remove include")

    @property
    @abstractmethod
    def exhausted(self) -> bool:
        """Whether the source is finite and every record was handed out."""

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
        """Where each partition begins that no position was given for, where a later run might choose another place.

        Known before the first record of a partition is handed out, and stored before it is learned, or where none
        comes. Empty by default.
        """
        return {}

    @property
    def chooses_order(self) -> bool:
        """Whether a later run might begin partitions that `starting_offsets` lacks, in addition to earlier ones.

        If so, they are stored before the first record of them is learned. False by default.
        """
        return False

    def settled(self, positions: Mapping[int, Position]) -> Collection[int]:  # noqa: ARG002
        """Return the partitions among these without which a later run continues just as well; none by default."""
        return ()

    def saved(self, positions: Mapping[int, Position]) -> None:
        """Note that a checkpoint is durable: a restart continues at these positions, by partition."""

    def commit(self, positions: Mapping[int, Position]) -> Mapping[int, int]:
        """Tell the group of the source, where it has one, that all before these positions is saved.

        Called after `saved`, and again and again while no record comes.

        Returns
        -------
        offsets
            The offsets to commit to the group, by partition: they also pass what follows a position and is no record.

        """
        return {partition: position.offset for partition, position in positions.items()}

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
