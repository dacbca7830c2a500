"""Reloads the model of a run in mode predict when the run that learns has written a newer checkpoint."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from streamkernel.daemon.assembly.processor import make_learner
from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.run_state.run_models import RunModels
from streamkernel.daemon.run_state.start import Start
from streamkernel.daemon.run_state.trained import TrainedModel
from streamkernel.daemon.stream.loop import Observer
from streamkernel.daemon.stream.processor import Processor
from streamkernel.daemon.stream.record_batch import RecordBatch

__all__ = ["ModelReload"]

_log = logging.getLogger(__name__)


class ModelReload(Observer):
    """An observer of the loop that looks for a newer checkpoint at times, and has the processor predict with its model.

    Where the newer one cannot be used, the log says so once, and the model stays.

    Parameters
    ----------
    observer
        Gets every event, too.
    plan
        The configuration; its `reload` says how often to look, in seconds, and None never to.
    start
        What the run started from; its trained model is kept up to date.
    processor
        Predicts with the model.
    exporter
        The metrics; None where none are served.
    clock
        Gives seconds, and never goes back.

    """

    def __init__(
        self,
        observer: Observer,
        plan: Plan,
        start: Start,
        processor: Processor,
        exporter: Exporter | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._observer = observer
        self._plan = plan
        self._start = start
        self._processor = processor
        self._exporter = exporter
        self._clock = clock
        self._looked = clock()
        self._said = ""

    def chunk(self, done: RecordBatch) -> None:
        """Note a chunk that is done."""
        self._observer.chunk(done)

    def turn(self) -> None:
        """Note that the loop is alive, and look for a newer checkpoint when it is time."""
        seconds = self._plan.config.reload
        if seconds is not None and self._clock() - self._looked >= seconds:
            self._look()
            self._looked = self._clock()
        self._observer.turn()

    def _look(self) -> None:
        try:
            newer = self._start.newer()
        except CheckpointError as error:
            if str(error) != self._said:
                self._said = str(error)
                _log.error("%s; predictions continue with the previous checkpoint", error)
            if self._exporter is not None:
                self._exporter.reload_failed()
            return
        self._said = ""
        if newer is not None:
            self._take(newer)

    def _take(self, trained: TrainedModel) -> None:
        self._processor.replace(make_learner(self._plan, trained.restored))
        self._processor.checkpoint = trained.checkpoint
        self._processor.name = trained.name if self._plan.models else ""
        self._start.trained, self._start.models = trained, RunModels({"": trained.restored})
        if self._exporter is not None:
            self._exporter.predicts_with(trained)
        _log.info("predicting with %s", trained.describe())
