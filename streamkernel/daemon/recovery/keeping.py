"""Keeps the state of a run: what a checkpoint holds, in which order it is written, what is safe when a run ends."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from connectors.ports import Mark, OutageError, Position, SinkError, Source
from streamkernel.daemon.base import crash
from streamkernel.daemon.base.errors import CheckpointError, DaemonError
from streamkernel.daemon.base.retry import may_pass
from streamkernel.daemon.checkpoints.payload import dump_model
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.checkpoints.writer import CheckpointWriter
from streamkernel.daemon.late.saved import dump
from streamkernel.daemon.recovery.header import header
from streamkernel.daemon.recovery.resume import Start
from streamkernel.daemon.settings.plan import Plan
from streamkernel.daemon.shown.metrics import Exporter
from streamkernel.daemon.stream.chunks import ChunkProcessor
from streamkernel.daemon.stream.outbox import Outbox

__all__ = ["Keeper"]

_log = logging.getLogger(__name__)

# A stop must be over in ten seconds, whatever a disk or a broker does.
_LAST_TRIES = 3
_RETRY_SECONDS = 0.2


class Keeper:
    """The checkpoints of a run, or their absence.

    Parameters
    ----------
    plan
        The configuration.
    store
        The locked directory; None: nothing is saved.
    processor
        The model and the books.
    outbox
        The open outputs.
    positions
        Where each partition goes on, as the loop keeps it.
    exporter
        The metrics; None where none are served.
    saved
        Told where a restart would go on, by partition.

    """

    def __init__(
        self,
        plan: Plan,
        store: CheckpointStore | None,
        processor: ChunkProcessor,
        outbox: Outbox,
        positions: dict[int, Position],
        exporter: Exporter | None,
        saved: Callable[[Mapping[int, Position]], None] = lambda _: None,
    ) -> None:
        self._plan = plan
        self._processor = processor
        self._outbox = outbox
        self._positions = positions
        self._exporter = exporter
        self._saved = saved
        self._saver: CheckpointWriter | None = None
        self._reached: str | None = None
        self._unsaved = False
        if store is not None and plan.config.checkpoint is not None:
            settings = plan.config.checkpoint
            self._saver = CheckpointWriter(store, settings.every_records, settings.every_seconds)

    def begin(self, start: Start, stopped: Callable[[], bool] = lambda: False) -> None:
        """Wait for the outputs, and write a checkpoint where a restart could not do without.

        That is number 0, because a seed that was drawn must survive a kill, and one with the marks of outputs that the
        last one does not know.

        Parameters
        ----------
        start
            What the run starts from.
        stopped
            Asked while an output that cannot be reached is waited for: True ends the waiting, with nothing begun.

        Raises
        ------
        DaemonError
            Where number 0 cannot be written.

        """
        if self._saver is None:
            return
        if start.resumed:
            self._saver.resumed(self._processor.taken, start.whole)
            self._reached = self._reach()
            self._saved(self._positions)
            if self._exporter is not None:
                self._exporter.resumed(start.written)
        marks = self._marks(stopped)
        if marks is None:
            return
        begun = self._adopt()  # where sources begin, as far as that is known by now
        # An output that was not written to before holds lines of this run from now on: a restart must know whose.
        known = {key: start.mark_of(key, self._plan.raw.get(key) or {}) for key in self._outbox.sinks}
        if (begun or not start.resumed or marks != known) and not self.save():
            if not start.resumed:
                raise DaemonError("the first checkpoint could not be written, nothing was begun")
            if any(known[key] is None and self._may_have_a_mark(key, marks) for key in known):
                raise DaemonError("the first checkpoint with the new outputs could not be written, nothing was begun")

    def _may_have_a_mark(self, key: str, marks: Mapping[str, Mark | None]) -> bool:
        """Say whether an output has a mark; of one that could not be flushed, whether it may have one."""
        if key in marks:
            return marks[key] is not None
        written = self._plan.raw.get(key) or {}
        return written.get("kind", "none") != "none" and self._outbox.sinks[key].exactly_once

    def _marks(self, stopped: Callable[[], bool]) -> Mapping[str, Mark | None] | None:
        """Give the marks of the outputs, as soon as all of them are reached; None where it is stopped before."""
        while not stopped():
            try:
                return self._outbox.flush()
            except OutageError:
                time.sleep(_RETRY_SECONDS)
            except SinkError as error:
                if not may_pass(error):
                    raise
                return {}  # a full disk: whether that matters is seen when the checkpoint is written
        return None

    def room(self, taken: int) -> int | None:
        """Give how many records may come before a checkpoint must be written; None: any number."""
        return None if self._saver is None else self._saver.room(taken)

    def begun(self) -> bool:
        """Write down where a source begins by its own choice, before its first record is learnt, or without any.

        After a restart it might choose another place: the end of a topic has moved by then, or its first records were
        removed and nobody would know that they were missed.

        Returns
        -------
        begun
            False as long as that is not written down: records that are learnt now might be missed by a restart.

        """
        if self._adopt():
            self.save()
            if self._unsaved:
                _log.error("no record is learnt until a checkpoint says where the source begins")
        elif self._unsaved:
            self.save_when_due()
        return not self._unsaved

    def _adopt(self) -> bool:
        """Take over where partitions begin; say whether there were any of which that was not known."""
        chosen = False
        for source, positions in self._places():
            starting = source.starting_offsets
            if starting.keys() <= positions.keys():
                continue
            new = {key: place for key, place in starting.items() if key not in positions}
            # A restart finds by itself what was added beside others, from its first record on.
            self._unsaved |= self._saver is not None and (not positions or any(place.offset for place in new.values()))
            positions.update(new)
            chosen = True
        if chosen and self._saver is not None:
            self._saver.moved()
        return chosen

    def save_when_due(self) -> None:
        """Write a checkpoint if it is time."""
        if self._saver is not None and self._saver.due(self._processor.taken):
            self.save()

    def save(self) -> bool:
        """Write a checkpoint now; False where the disk is full or failing.

        Raises
        ------
        CheckpointError
            Where no later try would go better: what was learnt cannot be read back, or the directory is lost.

        """
        if self._saver is None:
            return False
        for source, positions in self._places():
            positions.update({key: source.lasting(place) for key, place in positions.items()})
        try:
            saved = self._saver.save(self._processor.taken, self._snapshot)
        except CheckpointError:
            if self._exporter is not None:
                self._exporter.failed()
            raise
        if saved:
            self._unsaved = False
            self._reached = self._reach()
            for source, positions in self._places():
                source.saved(positions)
            self._saved(self._positions)
        if self._exporter is not None:
            if saved and self._saver.last is not None:
                self._exporter.saved(self._saver.last, time.time())
            elif not saved:
                self._exporter.failed()
        return saved

    def finish(self) -> None:
        """Make everything durable at the end of a run.

        Raises
        ------
        DaemonError
            Where a disk or a broker does not take it.

        """
        if self._saver is not None and self._saver.consumed is None and not self._processor.taken:
            return  # nothing was begun
        for attempt in range(_LAST_TRIES):
            if attempt:
                time.sleep(1.0)
            if self._saver is not None:
                if self._saver.holds(self._processor.taken) or self.save():
                    return
            else:
                try:
                    self._outbox.flush()
                    return
                except SinkError as error:
                    if not may_pass(error):
                        raise
                    _log.error("%s", error)
        raise DaemonError("the last checkpoint could not be written" if self._saver else "the outputs are not complete")

    def safe(self) -> str:
        """Say what is safe."""
        if self._reached is None:
            return "nothing is saved: a restart begins with the first record"
        return f"everything up to {self._reached} is saved: a restart goes on from there"

    def describe(self) -> str:
        """Give a phrase on the last checkpoint."""
        if self._saver is None:
            return "off"
        if self._saver.last is not None:
            return f"{self._saver.last.name} at {self._reached}"
        return f"the one this run started from, at {self._reached or 'record 0'}"

    def _places(self) -> Iterator[tuple[Source, dict[int, Position]]]:
        """Give each source with where its partitions go on."""
        yield self._plan.source, self._positions
        if self._plan.labels is not None and self._processor.late is not None:
            yield self._plan.labels, self._processor.late.positions

    def _reach(self) -> str:
        late = self._processor.late
        labels = "" if late is None else f" and label {late.account.taken:,}"
        return f"record {self._processor.account.consumed:,}{labels}"

    def _snapshot(self) -> tuple[Mapping[str, Any], bytes]:
        # The order makes a restart exact: lines a checkpoint speaks of must be on the disk before it is.
        marks = self._outbox.flush()
        crash.point("flushed")
        model, late = self._processor.learner.model, self._processor.late
        labels, waiting = (None, b"") if late is None else dump(late)
        about = header(
            self._plan,
            model,
            self._processor.account,
            self._processor.rate.recent,
            self._positions,
            {key: mark for key, mark in marks.items() if self._plan.raw.get(key)},
            labels,
            self._processor.learner.names,
        )
        return about, dump_model(model, self._plan.config.imports) + waiting
