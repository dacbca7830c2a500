"""The port of a sink: it takes lines, makes them durable, and continues from a mark."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from streamkernel.connectors.ports.connector import Connector
from streamkernel.connectors.ports.record import Position

__all__ = ["Mark", "Sink"]

Mark: TypeAlias = int | dict[str, Any]
"""The progress of a sink as JSON, such as a file's length or a topic's end offsets, and its identity."""


class Sink(Connector):
    """A sink of lines. `SinkError` is the error of all its methods."""

    @abstractmethod
    def open(self, mark: Mark | None = None) -> None:
        """Open the sink.

        Parameters
        ----------
        mark
            What `flush` returned at the checkpoint to continue from. A line after it counts once, however often it is
            written again. None: there is none, and the sink's settings say what happens to existing lines.

        Raises
        ------
        SinkError
            If the sink cannot be written, is not the sink of the mark, or another one writes to it.

        """

    def find_problem(self, mark: Mark | None = None) -> None:
        """Raise the SinkError of `open`, without a change and without a lock; by default none."""

    def find_problem_anew(
        self,
        mark: Mark | None,  # noqa: ARG002 - of no use to a sink that sets nothing aside
        before: Mark | None = None,  # noqa: ARG002
        *,
        stays: bool = False,  # noqa: ARG002
    ) -> None:
        """Raise the SinkError of `set_aside` and then `open` without a mark, without a change.

        `stays`: no call of `set_aside` follows, because no earlier run recorded anything of the sink.
        """
        self.find_problem()

    def set_aside(self, mark: Mark | None, before: Mark | None = None) -> str:  # noqa: ARG002 - as above
        """Move the lines of an earlier run out of the way of a fresh start; by default they stay.

        Parameters
        ----------
        mark
            The last mark of the earlier run; None if nobody can read it any more. Other lines stay.
        before
            The last mark of the run that was set aside before: its lines may be destroyed now.

        Returns
        -------
        done
            A phrase such as ``"renamed out.csv to out.csv.old"``; empty if nothing was done.

        """
        return ""

    @abstractmethod
    def write(self, lines: Sequence[Mapping[str, Any]], positions: Sequence[Position]) -> None:
        """Take lines, each with the position of its record; `flush` makes them durable.

        A sink that cannot be cut back knows its lines by their positions.

        Raises
        ------
        SinkError
            If the system refuses. The sink keeps the lines and tries again with the next call: do not repeat them.

        """

    @abstractmethod
    def flush(self) -> Mark | None:
        """Make every line durable.

        Returns
        -------
        mark
            For a checkpoint, and for `open` after a restart. None if no line can be taken back or recognised.

        Raises
        ------
        OutageError
            If the other side does not answer for now; the lines wait.
        SinkError
            If the system refuses.

        """

    def commit(self) -> None:
        """Show others the lines of the last `flush`: a durable checkpoint has its mark. By default they see them."""

    @property
    def commit_bytes(self) -> int | None:
        """The bytes of lines that wait for `commit`; None if lines are visible without it, as by default."""
        return None

    def publish(self) -> None:
        """Begin to show others the lines, without waiting; by default `write` or `flush` shows them.

        The daemon calls it repeatedly while there are such lines.
        """

    @property
    def unpublished(self) -> int:
        """The number of lines that nobody else can read yet; by default those `waiting`."""
        return self.waiting

    @property
    def waiting(self) -> int:
        """The number of lines taken and not yet written, if known; 0 by default."""
        return 0

    @property
    def waiting_bytes(self) -> int:
        """The bytes of lines taken and not yet written, if known; 0 by default."""
        return 0

    @property
    @abstractmethod
    def exactly_once(self) -> bool:
        """Whether a restart leaves no line missing and none double."""
