"""The port of a sink: what takes lines, makes them durable, and continues from a mark."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from streamkernel.connectors.ports.connector import Connector
from streamkernel.connectors.ports.record import Position

__all__ = ["Mark", "Sink"]

Mark: TypeAlias = int | dict[str, Any]
"""How far a sink was written, as JSON: the length of a file or the end offsets of a topic, and what it is known by."""


class Sink(Connector):
    """A sink of lines, which a flush makes durable and a mark lets it continue."""

    @abstractmethod
    def open(self, mark: Mark | None = None) -> None:
        """Open the sink.

        Parameters
        ----------
        mark
            What `flush` returned at the checkpoint to continue from: a line written after it counts only once, however
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
        """Raise the SinkError that `set_aside` and, after it, `open` without a mark would, changing nothing.

        `stays` says that `set_aside` is not to be called, for no earlier run recorded anything of the sink.
        """
        self.find_problem()

    def set_aside(self, mark: Mark | None, before: Mark | None = None) -> str:  # noqa: ARG002 - as above
        """Put what an earlier run wrote out of the way of one that starts over; by default it stays where it is.

        Parameters
        ----------
        mark
            What the earlier run recorded of it last, and what is not known by that stays; None where nobody can read
            that any more.
        before
            What the run recorded whose lines were set aside before: those may be destroyed now.

        Returns
        -------
        done
            A phrase such as ``"renamed out.csv to out.csv.old"``; empty where nothing was done.

        Raises
        ------
        SinkError
            When there is no place for it.

        """
        return ""

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

    def commit(self) -> None:
        """Begin to show others the lines of the last `flush`, now that a durable checkpoint has its mark.

        By default nothing happens: `write`, `publish` or `flush` shows them.
        """

    @property
    def commit_bytes(self) -> int | None:
        """How many bytes of lines wait for `commit`; None where a line is shown without it, as by default."""
        return None

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
