"""What a member of a consumer group holds: told by the client's threads, asked for by whoever works on it."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import NamedTuple

from connectors.ports import SourceError

__all__ = ["Standing", "Turn"]


class Turn(NamedTuple):
    """What became of a membership.

    Attributes
    ----------
    held
        The partitions that are this member's now.
    lost
        Those it was deprived of since the turn before, without a word in time: others may have them already. One may
        have come back since.

    """

    held: frozenset[int]
    lost: frozenset[int]


class Standing:
    """The partitions of a member; every method may be called from any thread, and only `turn` waits.

    Examples
    --------
    >>> standing = Standing()
    >>> standing.assign([0, 1])
    >>> sorted(standing.turn(0.0).held)
    [0, 1]
    >>> standing.cut_off()
    >>> turn = standing.turn(0.0)
    >>> sorted(turn.held), sorted(turn.lost)
    ([], [0, 1])
    >>> standing.reconnect()
    >>> sorted(standing.turn(0.0).held)
    [0, 1]

    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._assigned: frozenset[int] | None = None
        self._lost: frozenset[int] = frozenset()
        self._in_reach = True
        self._failure: SourceError | None = None
        self._news = False

    def assign(self, partitions: Collection[int]) -> None:
        """Note which partitions are ours; those that were and are not named were given up in good order."""
        with self._changed:
            self._assigned = frozenset(partitions)
            self._tell()

    def lose(self) -> None:
        """Note that we are out of the group."""
        with self._changed:
            self._deprive()
            self._assigned = None
            self._in_reach = True
            self._tell()

    def cut_off(self) -> None:
        """Note that the group has heard nothing for so long that it may have put us out."""
        with self._changed:
            self._deprive()
            self._in_reach = False
            self._tell()

    def reconnect(self) -> None:
        """Note that the group did not put us out."""
        with self._changed:
            self._in_reach = True
            self._tell()

    def fail(self, failure: SourceError) -> None:
        """Note that it is over: the next turn raises this."""
        with self._changed:
            self._failure = failure
            self._tell()

    def turn(self, timeout: float) -> Turn:
        """Wait for news for some seconds, and tell how things stand."""
        with self._changed:
            self._changed.wait_for(lambda: self._news, timeout)
            self._news = False
            if self._failure is not None:
                raise self._failure
            lost, self._lost = self._lost, frozenset()
            return Turn(self._held(), lost)

    def mine(self) -> frozenset[int]:
        """Give the partitions that the group last said were ours."""
        with self._changed:
            return self._assigned or frozenset()

    @property
    def joined(self) -> bool:
        """Whether we are in the group and know what is ours, which may be nothing."""
        return self._assigned is not None and self._in_reach

    @property
    def in_reach(self) -> bool:
        """Whether the group has heard of us in time."""
        return self._in_reach

    def _held(self) -> frozenset[int]:
        return (self._assigned or frozenset()) if self._in_reach else frozenset()

    def _deprive(self) -> None:
        self._lost |= self._held()

    def _tell(self) -> None:
        self._news = True
        self._changed.notify_all()
