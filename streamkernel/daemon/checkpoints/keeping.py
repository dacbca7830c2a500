"""Keeps the state of a run: what a checkpoint holds, in which order it is written, what is safe when a run ends."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from connectors.ports import Position, SinkError
from streamkernel.daemon.checkpoints import resume
from streamkernel.daemon.checkpoints.payload import dump_model
from streamkernel.daemon.checkpoints.saving import Saver
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.settings.plan import Plan
from streamkernel.daemon.shown.metrics import Exporter
from streamkernel.daemon.stream.chunks import ChunkProcessor
from streamkernel.daemon.stream.loop import DaemonError
from streamkernel.daemon.stream.outbox import Outbox, is_disk_trouble

__all__ = ["Keeper"]

_log = logging.getLogger(__name__)

# A stop must be over in ten seconds, whatever the disk does.
_LAST_TRIES = 3


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

    """

    def __init__(
        self,
        plan: Plan,
        store: CheckpointStore | None,
        processor: ChunkProcessor,
        outbox: Outbox,
        positions: Mapping[int, Position],
        exporter: Exporter | None,
    ) -> None:
        self._plan = plan
        self._processor = processor
        self._outbox = outbox
        self._positions = positions
        self._exporter = exporter
        self._saver: Saver | None = None
        if store is not None and plan.config.checkpoint is not None:
            settings = plan.config.checkpoint
            self._saver = Saver(store, settings.every_records, settings.every_seconds)

    def begin(self, start: resume.Start) -> None:
        """Note the checkpoint a run starts from, or write number 0: a seed that was drawn must survive a kill.

        Raises
        ------
        DaemonError
            Where number 0 cannot be written.

        """
        if self._saver is None:
            return
        if start.resumed:
            self._saver.resumed(start.account.consumed)
            if self._exporter is not None:
                self._exporter.resumed(start.written)
        elif not self.save():
            raise DaemonError("the first checkpoint could not be written, nothing was begun")

    def room(self, consumed: int) -> int | None:
        """Give how many records may come before a checkpoint must be written; None: any number."""
        return None if self._saver is None else self._saver.room(consumed)

    def save_when_due(self) -> None:
        """Write a checkpoint if it is time."""
        if self._saver is not None and self._saver.due(self._processor.account.consumed):
            self.save()

    def save(self) -> bool:
        """Write a checkpoint now; False where the disk is full or failing."""
        if self._saver is None:
            return False
        saved = self._saver.save(self._processor.account.consumed, self._snapshot)
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
            Where the disk does not take it.

        """
        for attempt in range(_LAST_TRIES):
            if attempt:
                time.sleep(1.0)
            if self._saver is not None:
                if self._saver.consumed == self._processor.account.consumed or self.save():
                    return
            else:
                try:
                    self._outbox.flush()
                    return
                except SinkError as error:
                    if not is_disk_trouble(error):
                        raise
                    _log.error("%s", error)
        raise DaemonError("the last checkpoint could not be written" if self._saver else "the outputs are not complete")

    def safe(self) -> str:
        """Say what is safe."""
        consumed = self._saver.consumed if self._saver is not None else None
        if consumed is None:
            return "nothing is saved: a restart begins with the first record"
        return f"everything up to record {consumed:,} is saved: a restart goes on from there"

    def describe(self) -> str:
        """Give a phrase on the last checkpoint."""
        if self._saver is None:
            return "off"
        if self._saver.last is not None:
            return f"{self._saver.last.name} at record {self._saver.last.consumed:,}"
        return f"the one this run started from, at record {self._saver.consumed or 0:,}"

    def _snapshot(self) -> tuple[Mapping[str, Any], bytes]:
        # The order makes a restart exact: lines a checkpoint speaks of must be on the disk before it is.
        lengths = self._outbox.flush()
        model = self._processor.learner.model
        header = resume.header(
            self._plan,
            model,
            self._processor.account,
            self._processor.rate.recent,
            self._positions,
            {key: length for key, length in lengths.items() if self._plan.raw.get(key)},
        )
        return header, dump_model(model, self._plan.config.imports)
