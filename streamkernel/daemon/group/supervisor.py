"""The children of a member: one for each partition it owns, started, ended and started again as need be."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable, Collection, Mapping

from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.base.retry import Backoff
from streamkernel.daemon.group.child import Child

__all__ = ["Supervisor"]

_log = logging.getLogger(__name__)

#: A child has this long to finish its record and write its checkpoint, so that a member ends within ten seconds.
GRACE_SECONDS = 9.0
# One that ran for so long did not die of how it was started.
_WELL_SECONDS = 60.0
_LOOK_SECONDS = 0.05


class Supervisor:
    """Keeps one child running for each partition that is assigned to the member.

    Parameters
    ----------
    start
        Starts the child of a partition.
    grace
        Seconds a child may take to end after its signal.

    Attributes
    ----------
    assigned
        The partitions of this member.
    children
        By partition, also those that are ending.

    """

    def __init__(
        self,
        start: Callable[[int], Child],
        grace: float = GRACE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._start = start
        self._grace = grace
        self._clock = clock
        self._backoffs: dict[int, Backoff] = {}
        self._saved: dict[int, int] = {}
        self.assigned: frozenset[int] = frozenset()
        self.children: dict[int, Child] = {}

    def assign(self, partitions: Collection[int]) -> None:
        """Take over which partitions are ours from now on; the children of others finish."""
        self.assigned = frozenset(partitions)
        for partition, child in self.children.items():
            if partition not in self.assigned:
                child.stop(self._grace)

    def kill(self, partitions: Collection[int]) -> None:
        """End the children of partitions that may be in other hands by now."""
        for partition in sorted(partitions):
            child = self.children.get(partition)
            if child is not None:
                _log.warning(
                    "partition %d: another member may have it now. What was learned since its last checkpoint is "
                    "dropped",
                    partition,
                )
                child.kill()

    def poll(self) -> dict[int, int]:
        """Read what the children report, start those that are missing, and return the newly saved offsets by partition.

        Raises
        ------
        DaemonError
            When a child cannot continue; the message is one sentence.

        """
        failure = self._collect()
        if failure is not None:
            raise DaemonError(failure)
        for partition in sorted(self.assigned - self.children.keys()):
            if partition not in self._backoffs or not self._backoffs[partition].waiting:
                self.children[partition] = self._start(partition)
        saved, self._saved = self._saved, {}
        return saved

    def stop(self) -> dict[int, int]:
        """Let all children finish, wait for them, and return the offsets that were saved by partition."""
        self.assign(())
        while self.children:
            self._collect()
            time.sleep(_LOOK_SECONDS)
        return self._saved

    @property
    def reading(self) -> bool:
        """Whether all partitions that are ours are being read."""
        children = map(self.children.get, self.assigned)
        return all(child is not None and child.reading and child.stop_signal is None for child in children)

    def addresses(self) -> Mapping[int, tuple[str, int]]:
        """Return by partition where its metrics are served."""
        # A copy: another thread asks.
        children = sorted(self.children.copy().items())
        return {partition: child.address for partition, child in children if child.address is not None}

    def _collect(self) -> str | None:
        """Read the reports and exits of the children; return why the member cannot continue, None where it can."""
        failure = None
        for partition, child in list(self.children.items()):
            child.read_reports()
            status = child.ended()
            saved = child.newly_saved()
            if saved is not None:
                self._saved[partition] = saved
            if status is not None:
                del self.children[partition]
                failure = self._settle(partition, child, status) or failure
        return failure

    def _settle(self, partition: int, child: Child, status: int) -> str | None:
        if child.overdue:
            _log.warning(
                "partition %d: did not end within %.0f s and is killed. Records since its last checkpoint are "
                "learned again",
                *(partition, self._grace),
            )
        elif child.stop_signal is not None:
            if status > 0:
                _log.warning("partition %d: ended with a failure: %s", partition, child.failure or f"status {status}")
        elif status > 0:
            return f"partition {partition}: {child.failure or f'its process ended with status {status}'}"
        else:
            self._delay_restart(partition, child, status)
        return None

    def _delay_restart(self, partition: int, child: Child, status: int) -> None:
        """Set, and log, when a child that was killed or stopped by others is started again."""
        backoff = self._backoffs.setdefault(partition, Backoff(self._clock))
        if self._clock() - child.started > _WELL_SECONDS:
            backoff.succeeded()
        pause = backoff.failed()
        how = f"was killed by {signal.Signals(-status).name}" if status else "was stopped from outside"
        _log.error("partition %d: its process %s; it is started again in %.0f s", partition, how, pause)
