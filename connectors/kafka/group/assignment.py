"""The partitions that a consumer group assigned to a member: set by the client's threads, waited for by the daemon."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterator
from typing import NamedTuple

from streamkernel.connectors.ports import SourceError

__all__ = ["Assignment", "HeldPartitions"]


class HeldPartitions(NamedTuple):
    """The partitions that a member holds now, and those it lost since it was asked before.

    Lost partitions were taken without notice in time: others may have them already, or they may have come back since. A
    member that is `joined` is in the group and knows its assignment, which may be empty.
    """

    held: frozenset[int]
    lost: frozenset[int]
    joined: bool


class Assignment:
    """The partitions of a member; every method may be called from any thread, and only `turn` waits.

    Examples
    --------
    >>> assignment = Assignment()
    >>> assignment.assign([0, 1])
    >>> assignment.turn(0.0)
    HeldPartitions(held=frozenset({0, 1}), lost=frozenset(), joined=True)
    >>> assignment.cut_off()
    >>> assignment.turn(0.0)
    HeldPartitions(held=frozenset(), lost=frozenset({0, 1}), joined=False)
    >>> assignment.reconnect()
    >>> assignment.turn(0.0)
    HeldPartitions(held=frozenset({0, 1}), lost=frozenset(), joined=True)

    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._assigned: frozenset[int] | None = None
        self._lost: frozenset[int] = frozenset()
        self._failure: SourceError | None = None
        self._news = False
        self.in_reach = True

    def assign(self, partitions: Collection[int]) -> None:
        """Set what is assigned; partitions that are not named any more were given up in good order."""
        with self._changing():
            self._assigned = frozenset(partitions)

    def lose(self) -> None:
        """Note that the member is out of the group."""
        with self._changing(lost=True):
            self._assigned, self.in_reach = None, True

    def cut_off(self) -> None:
        """Note that the group heard nothing for so long that the member may be out."""
        with self._changing(lost=True):
            self.in_reach = False

    def reconnect(self) -> None:
        """Note that the member was not put out."""
        with self._changing():
            self.in_reach = True

    def fail(self, failure: SourceError) -> None:
        """Let `turn` raise this from now on."""
        with self._changing():
            self._failure = failure

    @contextlib.contextmanager
    def _changing(self, lost: bool = False) -> Iterator[None]:
        with self._changed:
            if lost:
                self._lost |= self._held()
            yield
            self._news = True
            self._changed.notify_all()

    def turn(self, timeout: float) -> HeldPartitions:
        """Wait for a change for some seconds, and return what is held and lost."""
        with self._changed:
            self._changed.wait_for(lambda: self._news, timeout)
            self._news = False
            if self._failure is not None:
                raise self._failure
            lost, self._lost = self._lost, frozenset()
            return HeldPartitions(self._held(), lost, self._assigned is not None and self.in_reach)

    def assigned(self) -> frozenset[int]:
        """Return the partitions that the group last assigned."""
        return self._assigned or frozenset()

    def _held(self) -> frozenset[int]:
        return (self._assigned or frozenset()) if self.in_reach else frozenset()
