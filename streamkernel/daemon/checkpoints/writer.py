"""The writer of checkpoints: when one is due, and what to do when a disk or a broker does not take it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from connectors.ports import OutageError, SinkError
from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.base.retry import Backoff, may_pass
from streamkernel.daemon.checkpoints.store import CheckpointStore

__all__ = ["CheckpointWriter", "WrittenCheckpoint"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WrittenCheckpoint:
    """A checkpoint that was written: its file, its size in bytes, how long it took and how far it reaches."""

    name: str
    size: int
    seconds: float
    consumed: int


class CheckpointWriter:
    """Writes checkpoints at fixed numbers of records and after a time, whichever comes first.

    Parameters
    ----------
    store
        The locked directory.
    every_records
        A checkpoint falls on each multiple, counted from the first start: a killed run cuts as one that was not.
    every_seconds
        The longest time between two, where records came.

    Attributes
    ----------
    last
        The last checkpoint this process wrote, None before it.
    consumed
        How far the last checkpoint reaches, of this process or the one it started from; None before the first.

    """

    def __init__(
        self,
        store: CheckpointStore,
        every_records: int,
        every_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._every_records = every_records
        self._every_seconds = every_seconds
        self._clock = clock
        self._backoff = Backoff(clock)
        self._logged = False
        self._saved_at = clock()
        self._moved = False
        self._whole = True
        self.consumed: int | None = None
        self.last: WrittenCheckpoint | None = None

    def resumed(self, consumed: int, whole: bool = True) -> None:
        """Note how far the checkpoint reaches that this process started from, and whether all of it was taken over."""
        self.consumed = consumed
        self._whole = whole

    def room(self, consumed: int) -> int:
        """Return the number of records until the next multiple."""
        return self._every_records - consumed % self._every_records

    def moved(self) -> None:
        """Note that there is something to save though no record came."""
        self._moved = True

    def holds(self, consumed: int) -> bool:
        """Return whether everything up to a record is saved."""
        return consumed == self.consumed and not self._moved

    def due(self, consumed: int) -> bool:
        """Return whether it is time."""
        if self._backoff.waiting or self.holds(consumed):
            return False
        if self._moved:
            return True
        passed = self._every_records * (consumed // self._every_records)
        return (self.consumed or 0) < passed or self._clock() - self._saved_at >= self._every_seconds

    def save(self, consumed: int, snapshot: Callable[[], tuple[Mapping[str, Any], bytes]]) -> bool:
        """Write a checkpoint that reaches up to a record.

        The snapshot makes the outputs durable and gives header and payload. One that reaches no further than the
        checkpoint before takes its place: a daemon that dies soon after each start, and writes one at each of them,
        would otherwise rotate all older ones away. Returned is False where the disk is full or failing or a broker
        does not answer: the checkpoints before stay, and it is tried again later.

        Raises
        ------
        CheckpointError
            Where the disk refuses it for good, as one that is read-only does.
        SinkError
            Where an output does.

        """
        start = time.perf_counter()
        try:
            header, payload = snapshot()
            write = self._store.replace if self._whole and consumed == self.consumed else self._store.write
            path = write(header, payload)
            size = path.stat().st_size
        except (OSError, SinkError) as error:
            if not may_pass(error):
                if isinstance(error, SinkError):
                    raise
                raise CheckpointError(
                    f"the checkpoint at record {consumed} cannot be written: {error}; mend that and start again, "
                    "nothing is lost"
                ) from error
            # Once for all tries; and the sink has told of an outage itself.
            first = not self._backoff.failing and not isinstance(error, OutageError)
            pause = self._backoff.failed()
            _log.log(
                logging.ERROR if first else logging.DEBUG,
                "the checkpoint at record %d could not be written: %s; it is tried again, first after %.0f s",
                *(consumed, error, pause),
            )
            self._logged |= first
            return False
        if self._logged:
            _log.info("checkpoints are written again, this one at record %d", consumed)
        self._logged = False
        self._backoff.succeeded()
        self._moved = False
        self._whole = True
        self._saved_at = self._clock()
        self.consumed = consumed
        self.last = WrittenCheckpoint(path.name, size, time.perf_counter() - start, consumed)
        _log.debug("checkpoint %s at record %d, %d bytes, %.3f s", path.name, consumed, size, self.last.seconds)
        return True
