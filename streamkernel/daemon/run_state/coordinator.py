"""The coordinator of checkpoints: in which order one is made, and what is safe when a run ends."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from streamkernel.connectors.ports import Mark, OutageError, Position, SinkError, Source, SourceError
from streamkernel.daemon.base import crash
from streamkernel.daemon.base.errors import CheckpointError, DaemonError
from streamkernel.daemon.base.retry import may_pass
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.run_state.header import sources_of, take_snapshot
from streamkernel.daemon.run_state.schedule import CheckpointObserver, CheckpointSchedule, SavedCheckpoint, reason
from streamkernel.daemon.run_state.start import Start
from streamkernel.daemon.stream.loop import Checkpoints
from streamkernel.daemon.stream.processor import Processor
from streamkernel.daemon.stream.sinks import Sinks

__all__ = ["CheckpointCoordinator"]

_log = logging.getLogger(__name__)

# A stop must be over in ten seconds, whatever a disk or a broker does.
_LAST_TRIES = 3
_RETRY_SECONDS = 0.2


@dataclass
class CheckpointCoordinator(Checkpoints):
    """Makes the checkpoints of a run, or none where nothing is saved.

    Parameters
    ----------
    plan
        The configuration.
    store
        The locked directory; None: nothing is saved.
    processor
        The model and the counts.
    sinks
        The open outputs.
    start
        What the run starts from; its positions, which the loop keeps, and its join of late labels are saved.
    observer
        Notes checkpoints.
    saved
        Called with the offsets to commit to a group, by partition.
    main
        The processor of the main source while another source is read before it.

    """

    plan: Plan
    store: CheckpointStore | None
    processor: Processor
    sinks: Sinks
    start: Start
    observer: CheckpointObserver = field(default_factory=CheckpointObserver)
    saved: Callable[[Mapping[int, int]], None] = lambda _: None
    main: Processor | None = None

    def __post_init__(self) -> None:
        self._reached: str | None = None
        self._unsaved = False
        self._refusal = ""
        self._sources = sources_of(self.start, self.plan)
        self._offsets: Mapping[int, int] | None = None
        self.schedule: CheckpointSchedule | None = None
        settings = self.plan.config.checkpoint
        if self.store is not None and settings is not None:
            self.schedule = CheckpointSchedule(settings.every_records, settings.every_seconds)

    def save(self) -> bool:
        """Write a checkpoint now; False where the disk is full or failing, or a broker does not answer.

        Raises
        ------
        CheckpointError
            Where no later try would go better: what was learned cannot be read back, or the directory is lost.
        SinkError
            Where an output refuses its lines for good.

        """
        schedule, store = self.schedule, self.store
        if schedule is None or store is None:
            return False
        taken, started = self.processor.taken, time.perf_counter()
        # 1. Positions: complete them with what tells a later run that it reads the same source.
        for source, positions in self._places():
            positions.update({key: source.lasting(place) for key, place in positions.items()})
            for key in source.settled(positions):
                del positions[key]
        try:
            # 2. Outputs: drain, flush and fsync them, for lines a checkpoint speaks of must be on the disk before it.
            marks = self.sinks.flush()
            crash.point("flushed")
            # 3. Snapshot: of model, counts, late labels and positions at once.
            self.start.marks = marks
            about, payload = take_snapshot(self.start, self.plan, self.main or self.processor)
            # 4. Write: durably, and under its name only when it is whole.
            path = (store.replace if schedule.replaces(taken) else store.write)(about, payload)
            size = path.stat().st_size
            # 5. Commit: from here on the lines count, whatever happens.
            self.sinks.commit()
        except (OSError, SinkError) as error:
            self.observer.failed()
            schedule.failed(taken, error)
            self._refusal = reason(error)
            return False
        except CheckpointError:
            self.observer.failed()
            raise
        saved = SavedCheckpoint(path.name, size, time.perf_counter() - started, taken)
        schedule.succeeded(saved)
        self._unsaved = False
        self._reached = self._reach()
        # 6. Tell: the sources, which may commit to a broker, and the observers of the run.
        for source, positions in self._places():
            source.saved(positions)
        self._commit()
        self.observer.saved(saved, time.time())
        return True

    def begin(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Wait for the outputs, and write a checkpoint where a restart could not do without.

        That is number 0, because a seed that was drawn must survive a kill, and one with the marks of outputs that the
        last one does not know.

        Parameters
        ----------
        stopped
            Asked while an output that cannot be reached is waited for: True ends the waiting, with nothing begun.

        Raises
        ------
        DaemonError
            Where number 0 cannot be written.

        """
        start = self.start
        if self.schedule is None:
            return
        if start.resumed:
            self.schedule.resumed(self.processor.taken, start.whole)
            self._reached = self._reach()
            self._commit()
            self.observer.resumed(start.written)
        marks = self._marks(stopped)
        if marks is None:
            return
        begun = self._adopt()  # where sources begin, as far as that is known by now
        # An output that was not written to before holds lines of this run from now on: a restart must know whose.
        known = {key: start.mark_of(key, self.plan.raw.get(key) or {}) for key in self.sinks.sinks}
        if (begun or not start.resumed or marks != known) and not self.save():
            if not start.resumed:
                raise DaemonError("the first checkpoint could not be written: the run did not start")
            if any(known[key] is None and self._may_have_a_mark(key, marks) for key in known):
                raise DaemonError(
                    "the first checkpoint with the new outputs could not be written: the run did not start"
                )

    def _may_have_a_mark(self, key: str, marks: Mapping[str, Mark | None]) -> bool:
        """Return whether an output has a mark; of one that could not be flushed, whether it may have one."""
        if key in marks:
            return marks[key] is not None
        written = self.plan.raw.get(key) or {}
        return written.get("kind", "none") != "none" and self.sinks.sinks[key].exactly_once

    def _marks(self, stopped: Callable[[], bool]) -> Mapping[str, Mark | None] | None:
        """Return the marks of the outputs, as soon as all of them are reached; None where it is stopped before."""
        while not stopped():
            try:
                return self.sinks.flush()
            except OutageError:
                time.sleep(_RETRY_SECONDS)
            except SinkError as error:
                if not may_pass(error):
                    raise
                return {}  # a full disk: whether that matters is seen when the checkpoint is written
        return None

    def room(self, taken: int) -> int | None:
        return None if self.schedule is None else self.schedule.room(taken)

    def save_start(self) -> bool:
        """Write down where a source begins by its own choice, before its first record is learned, or without any.

        After a restart it might choose another place: the end of a topic has moved by then, or its first records were
        removed and nobody would know that they were missed.

        Returns
        -------
        saved
            False as long as that is not written down: records that are learned now might be missed by a restart.

        """
        if self._adopt():
            self.save()
            if self._unsaved:
                _log.error("no record is learned until a checkpoint stores where the source begins")
        elif self._unsaved:
            self.save_when_due()
        return not self._unsaved

    def _adopt(self) -> bool:
        """Take over where partitions begin; return whether there were any of which that was not known."""
        chosen = False
        for source, positions in self._places():
            new = {key: place for key, place in source.starting_offsets.items() if key not in positions}
            if not new:
                continue
            # A restart finds by itself which files were added, from its first record on.
            matters = source.chooses_order or not positions or any(one.offset for one in new.values())
            self._unsaved |= self.schedule is not None and matters
            positions.update(new)
            chosen = True
        if chosen and self.schedule is not None:
            self.schedule.moved()
        return chosen

    def save_when_due(self) -> None:
        if self.schedule is None:
            return
        if self.schedule.due(self.processor.taken, wanted=self.sinks.want_checkpoint):
            self.save()
        elif self.schedule.holds(self.processor.taken):
            self._commit()  # the marks of transactions come after the last record

    def finish_after(self, loop: Callable[[], str]) -> str:
        """Run a loop to its end and make everything durable, also what came before its source failed.

        Returns
        -------
        why
            What the loop gives.

        """
        try:
            why = loop()
        except SourceError:
            self.finish()  # what came before is dealt with, and in order
            raise
        self.finish()
        return why

    def finish(self) -> None:
        """Make everything durable at the end of a run.

        Raises
        ------
        DaemonError
            Where a disk or a broker does not take it.

        """
        if self.schedule is not None and self.schedule.consumed is None and not self.processor.taken:
            return  # the run did not start
        for attempt in range(_LAST_TRIES):
            if attempt:
                time.sleep(1.0)
            if self.schedule is not None:
                if self.schedule.holds(self.processor.taken) or self.save():
                    return
            else:
                try:
                    self.sinks.flush()
                    return
                except SinkError as error:
                    if not may_pass(error):
                        raise
                    _log.error("%s", error)
        raise DaemonError(
            f"the last checkpoint could not be written: {self._refusal}"
            if self.schedule
            else "the outputs are not complete"
        )

    def safe(self) -> str:
        """Return a sentence on what is safe."""
        if self._reached is None:
            return "nothing is saved: a restart begins at the first record"
        again = all(one.source.resumable for one in self._sources)
        where = "there" if again else "with the records that come then"
        return f"everything up to {self._reached} is saved: a restart continues {where}"

    def describe(self) -> str:
        """Return a phrase on the last checkpoint, and in mode predict on the one that the model is from."""
        models = self.start.models
        return self._last() + ("" if models.checkpoint is None else f"; predicting with {models.origin}")

    def _last(self) -> str:
        if self.schedule is None:
            return "off"
        if self.schedule.last is not None:
            return f"{self.schedule.last.name} at {self._reached}"
        return f"the one this run started from, at {self._reached or 'record 0'}"

    def _commit(self) -> None:
        """Commit to the groups of the sources that all before their positions is saved."""
        for source, positions in self._places():
            offsets = source.commit(positions)
            if source is self.plan.source and offsets != self._offsets:
                self._offsets = offsets
                self.saved(offsets)

    def _places(self) -> Iterator[tuple[Source, dict[int, Position]]]:
        """Yield each source with where its partitions continue."""
        return ((one.source, one.positions) for one in self._sources)

    def _reach(self) -> str:
        """Return how far the sources are taken that are followed, or the one that is read before them."""
        first = [f"record {one.taken():,} of the warm start" for one in self._sources if one.first]
        return " and ".join(first or [f"{one.what} {one.taken():,}" for one in self._sources])
