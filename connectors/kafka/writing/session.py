"""What a sink needs of a topic it writes to: one producer's life, from its connection to the first failure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

from connectors.kafka.writing.emitted import Emitted
from connectors.kafka.writing.mark import Producer
from connectors.ports import Mark, Position

__all__ = ["Broken", "Connect", "Line", "Receipt", "Session"]


class Line(NamedTuple):
    """A line on its way: its bytes, and where its record stands."""

    value: bytes
    position: Position


class Receipt(Protocol):
    """What becomes of a line; as `kafka.future.Future`."""

    is_done: bool
    exception: Exception | None
    value: Any
    """With the ``offset`` the line has in its partition; -1 where the broker does not say."""


class Broken(Exception):
    """The session is of no use any more, and another one may go on; the message is a phrase that says why."""


class Session(ABC):
    """A connected producer, and how the topic stood when it was connected.

    Attributes
    ----------
    stream
        The topic: ``"cluster/topic/number"``.
    writer
        What the lines are signed with.
    partitions
        How many the topic has.
    producer
        Who the broker takes it for.
    ends
        Where each partition ended.
    largest
        The longest batch the topic takes, in bytes; None where that is not known.
    emitted
        Which lines are there already.
    earlier
        By partition of a source, how many lines for its records stand there of runs that nothing is known of.
    unproven
        Partitions of which a line of an earlier process may still be under way: a line to one of them is to go by
        `prove` first.
    transactional
        Whether lines count only once they are committed.
    transaction_seconds
        How long a transaction may be open before the broker ends it.

    """

    stream: str
    writer: str
    partitions: int
    producer: Producer | None
    ends: dict[int, int]
    largest: int | None
    emitted: Emitted
    earlier: dict[tuple[str, int], int]
    unproven: set[int]
    transactional: bool
    transaction_seconds: float

    @property
    @abstractmethod
    def sequences(self) -> dict[int, int]:
        """By partition, the number that the producer's next line has, once all before are acknowledged."""

    @abstractmethod
    def send(self, line: Line) -> Receipt:
        """Give a line to the producer, which sends it when it can.

        Raises
        ------
        SinkError
            When this line can never be sent.
        Broken
            When the producer takes no more.

        """

    @abstractmethod
    def prove(self, line: Line) -> int:
        """Send a line and wait until it stands in its partition, with none of an earlier process between.

        Returns
        -------
        offset
            Where it stands.

        Raises
        ------
        SinkError, Broken
            As `explain` gives them.

        """

    @abstractmethod
    def explain(self, error: Exception, line: Line | None = None) -> Exception:
        """Say what it means that a line, or a transaction, failed: a `SinkError` or `Broken`."""

    @abstractmethod
    def follows(self, error: Exception) -> bool:
        """Say whether a line failed only because another one did."""

    @abstractmethod
    def wait(self, seconds: float) -> None:
        """Send at once what was given, and wait until it is acknowledged, but no longer than some seconds."""

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction."""

    @abstractmethod
    def commit(self) -> None:
        """Commit it, however long that takes.

        Raises
        ------
        SinkError
            When it cannot be.

        """

    @abstractmethod
    def verify(self) -> bool:
        """Look at what is known of the topic by now, and say whether lines can be sent.

        Raises
        ------
        SinkError, Broken
            When it is not there any more, or is another one.

        """

    @abstractmethod
    def answered(self) -> bool:
        """Say whether a broker has answered anything of late."""

    @abstractmethod
    def failure(self) -> str:
        """Say in a phrase why no broker answers."""

    @abstractmethod
    def abandon(self) -> None:
        """End the connection, within seconds; what was not acknowledged may stand in the topic or not."""


Connect: TypeAlias = Callable[[Mark | None, int, Callable[[], bool], Producer | None], Session]
"""Makes a session that goes on from a mark, given how many attempts failed before, and asks whether to give up.

The producer is that of the session before in this process, if there was one: where another process has taken its
transactional id since, it is not taken back.

It raises `connectors.kafka.base.client.Unreachable` where trying again may help, and a `ConnectorError` where it would
not.
"""
