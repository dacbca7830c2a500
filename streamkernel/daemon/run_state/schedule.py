"""The schedule of checkpoints, at numbers of records, after a time and after a failure; and who observes them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamkernel.connectors.os_reason import reason_and_file
from streamkernel.connectors.ports import OutageError, SinkError
from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.base.retry import Backoff, may_pass

if TYPE_CHECKING:
    from streamkernel.daemon.run_state.trained import TrainedModel

__all__ = ["CheckpointObserver", "CheckpointSchedule", "SavedCheckpoint", "reason"]

# Early checkpoints may take a tenth of the time.
_MOST_SHARE = 10

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SavedCheckpoint:
    """A checkpoint that was written: its file, its size in bytes, how long it took and how far it reaches."""

    name: str
    size: int
    seconds: float
    consumed: int


class CheckpointObserver:
    """An observer of checkpoints, those that are written and those that are reloaded; this one does nothing."""

    def resumed(self, written: float) -> None:
        """Note when the checkpoint was written that the run starts from, in seconds since 1970."""

    def saved(self, saved: SavedCheckpoint, now: float) -> None:
        """Note a checkpoint, written at `now` (seconds since 1970)."""

    def failed(self) -> None:
        """Note a checkpoint that could not be written."""

    def predicts_with(self, trained: TrainedModel) -> None:
        """Note that another trained model predicts from now on."""

    def reload_failed(self) -> None:
        """Note a newer checkpoint that could not be used."""

    def publish(self) -> None:
        """Let others see what was noted."""


class CheckpointSchedule:
    """A schedule of checkpoints: at multiples of a number of records, or after a time, whichever comes first.

    Parameters
    ----------
    every_records
        A checkpoint falls on each multiple, counted from the first start: a killed run cuts as one that was not.
    every_seconds
        The longest time between two, where records came.
    clock
        Gives seconds, and never goes back.

    Attributes
    ----------
    last
        The last checkpoint this process wrote, None before it.
    consumed
        How far the last checkpoint reaches, of this process or the one it started from; None before the first.

    """

    def __init__(self, every_records: int, every_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_records = every_records
        self._every_seconds = every_seconds
        self._clock = clock
        self._backoff = Backoff(clock)
        self._failure_logged = False
        self._saved_at = clock()
        self._moved = False
        self._whole = True
        self.consumed: int | None = None
        self.last: SavedCheckpoint | None = None

    def resumed(self, consumed: int, whole: bool = True) -> None:
        """Note how far the checkpoint reaches that this process started from, and whether all of it was taken over."""
        self.consumed = consumed
        self._whole = whole

    def moved(self) -> None:
        """Note that there is something to save though no record came."""
        self._moved = True

    def room(self, consumed: int) -> int:
        """Return the number of records until the next multiple."""
        return self._every_records - consumed % self._every_records

    def seconds_left(self) -> float:
        """Return the seconds until a checkpoint is due by its time."""
        return max(0.0, self._every_seconds - (self._clock() - self._saved_at))

    def holds(self, consumed: int) -> bool:
        """Return whether everything up to a record is saved."""
        return consumed == self.consumed and not self._moved

    def replaces(self, consumed: int) -> bool:
        """Return whether a checkpoint is to take the place of the last one, for it reaches no further.

        A daemon that dies soon after each start, and writes one at each of them, would otherwise rotate all older ones
        away.
        """
        return self._whole and consumed == self.consumed

    def due(self, consumed: int, *, wanted: bool = False) -> bool:
        """Return whether it is time for a checkpoint; it comes early where one is `wanted` and does not take long."""
        if self._backoff.waiting or self.holds(consumed):
            return False
        since = self._clock() - self._saved_at
        if self._moved or (wanted and since >= _MOST_SHARE * (0.0 if self.last is None else self.last.seconds)):
            return True
        passed = self._every_records * (consumed // self._every_records)
        return (self.consumed or 0) < passed or since >= self._every_seconds

    def succeeded(self, saved: SavedCheckpoint) -> None:
        """Note a checkpoint that was written."""
        if self._failure_logged:
            _log.info("checkpoints are written again, this one at record %d", saved.consumed)
        self._failure_logged = False
        self._backoff.succeeded()
        self._moved = False
        self._whole = True
        self._saved_at = self._clock()
        self.consumed = saved.consumed
        self.last = saved
        _log.debug(
            "checkpoint %s at record %d, %d bytes, %.3f s", saved.name, saved.consumed, saved.size, saved.seconds
        )

    def failed(self, consumed: int, error: OSError | SinkError) -> None:
        """Note a checkpoint that could not be written; the ones before stay, and it is tried again later.

        Raises
        ------
        CheckpointError
            Where the disk refuses it for good, as one that is read-only does.
        SinkError
            Where an output does.

        """
        if not may_pass(error):
            if isinstance(error, SinkError):
                raise error
            raise CheckpointError(
                f"the checkpoint at record {consumed} cannot be written: {reason(error)}; fix that and start again, "
                "nothing is lost"
            ) from error
        # Once for all tries; and the sink has logged an outage itself.
        first = not self._backoff.failing and not isinstance(error, OutageError)
        pause = self._backoff.failed()
        _log.log(
            logging.ERROR if first else logging.DEBUG,
            "the checkpoint at record %d could not be written: %s; the daemon tries again, first after %.0f s",
            *(consumed, reason(error), pause),
        )
        self._failure_logged |= first


def reason(error: OSError | SinkError) -> str:
    """Return what failed without the number of the error."""
    return reason_and_file(error) if isinstance(error, OSError) else str(error)
