"""What became of the checkpoints of a run: the last one, those that failed, and when the next one is due."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from streamkernel.daemon.run_state.coordinator import CheckpointCoordinator
from streamkernel.daemon.run_state.schedule import CheckpointObserver, SavedCheckpoint

__all__ = ["CheckpointFigures", "CheckpointFiguresObserver"]


@dataclass(frozen=True)
class CheckpointFigures:
    """The checkpoints at one moment."""

    name: str | None = None  # of the last one that this process wrote
    time: float = math.nan  # when the last one was written, also by the process before, in seconds since 1970
    bytes: int | None = None
    seconds: float | None = None  # that it took
    records: int | None = None  # how far it reaches
    failures: int = 0  # of this process
    next_records: int | None = None  # the next one is due after this number of records
    next_seconds: float | None = None  # or after so long, whichever comes first

    def to_json(self) -> dict[str, Any]:
        """Return the figures by name."""
        return asdict(self)


class CheckpointFiguresObserver(CheckpointObserver):
    """Keeps the figures of the last checkpoint, and passes everything on to another observer.

    Parameters
    ----------
    observer
        Gets every event, too.

    """

    def __init__(self, observer: CheckpointObserver) -> None:
        self._observer = observer
        self._figures = CheckpointFigures()

    def resumed(self, written: float) -> None:
        """Note when the checkpoint was written that this process started from."""
        self._figures = replace(self._figures, time=written)
        self._observer.resumed(written)

    def saved(self, saved: SavedCheckpoint, now: float) -> None:
        """Note a checkpoint that was written."""
        self._figures = replace(
            self._figures, name=saved.name, time=now, bytes=saved.size, seconds=saved.seconds, records=saved.consumed
        )
        self._observer.saved(saved, now)

    def failed(self) -> None:
        """Note a checkpoint that could not be written."""
        self._figures = replace(self._figures, failures=self._figures.failures + 1)
        self._observer.failed()

    def publish(self) -> None:
        """Publish the metrics as they are now."""
        self._observer.publish()

    def figures(self, checkpoints: CheckpointCoordinator) -> CheckpointFigures | None:
        """Return the figures with when the next checkpoint is due; None where nothing is saved."""
        schedule, taken = checkpoints.schedule, checkpoints.processor.taken
        if schedule is None:
            return None
        if schedule.holds(taken):
            return self._figures
        return replace(self._figures, next_records=schedule.room(taken), next_seconds=schedule.seconds_left())
