"""Trained models as a component of a run: the one that mode predict predicts with, and the initial one of a new run."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from streamkernel.daemon.base.errors import CheckpointError, DaemonError
from streamkernel.daemon.components.group_mode import group_of, of_partitions
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.run_state.component import Count, Saved, Snapshot, StateComponent, StateSection
from streamkernel.daemon.run_state.learners import make_learner
from streamkernel.daemon.run_state.run_models import RunModels
from streamkernel.daemon.run_state.schedule import CheckpointObserver
from streamkernel.daemon.stream.challengers import Challengers
from streamkernel.daemon.stream.direct import KeylessStage
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.stream.loop import Observer
from streamkernel.daemon.stream.processor import Processor, Stage
from streamkernel.daemon.stream.record_batch import RecordBatch

if TYPE_CHECKING:
    from streamkernel.daemon.checkpoints.reader import CheckpointReader
    from streamkernel.daemon.run_state.start import Start
    from streamkernel.daemon.run_state.trained import TrainedModel

__all__ = ["ModelReload", "PredictModeState"]

_log = logging.getLogger(__name__)


class _PredictedWithSection(StateSection):
    checkpoint: Count
    records: Count


class PredictModeState(StateComponent):
    """Of a run in mode predict, which checkpoint of another directory gave its model; it is read at each start."""

    name = "predicted_with"
    section = _PredictedWithSection

    def snapshot(self, start: Start, plan: Plan, processor: Processor) -> Snapshot | None:  # noqa: ARG002
        trained = start.trained
        return None if trained is None else Snapshot({"checkpoint": trained.checkpoint, "records": trained.records})

    def begin(self, start: Start, plan: Plan) -> None:
        """Take the initial model, if there is one; in mode predict, there is no model before `load`."""
        if plan.config.mode == "predict":
            start.models = RunModels({})
        elif (initial := plan.config.initial_model) is not None:
            from streamkernel.daemon.run_state.trained import initial_model

            trained = initial_model(plan, initial.checkpoint)
            start.models.models[start.models.published] = replace(trained.restored, learns=True)
            start.models.origin = f"from {initial.checkpoint}"
            _log.info("the model is from %s, %s", initial.checkpoint, trained.describe())

    def restore(self, saved: Saved, start: Start, plan: Plan) -> None:  # noqa: ARG002
        if plan.config.mode == "predict":
            start.models = RunModels({})

    def load(self, start: Start, plan: Plan, outputs: Mapping[str, Any]) -> None:
        """Load the newest trained model, and refuse outputs of the run that learned it."""
        if plan.config.mode != "predict":
            return
        reader = _trained_models(plan)
        start.trained, start.newer = reader.newest(), reader.newer
        start.models = start.trained.models(plan)
        _log.info("predicting with %s, %s", reader.path, start.trained.describe())
        _refuse_outputs(start.trained, start, plan, outputs)

    def stage(self, start: Start, plan: Plan, learner: Learner, challengers: Challengers) -> Stage | None:  # noqa: ARG002
        key = None if start.trained is None else start.trained.label_key
        return None if key is None else KeylessStage(key)

    def excluded(self, start: Start) -> Iterator[str]:
        if start.trained is not None and start.trained.label_key is not None:
            yield start.trained.label_key

    def observe(
        self, observer: Observer, start: Start, plan: Plan, processor: Processor, notes: CheckpointObserver
    ) -> Observer:
        return observer if start.trained is None else ModelReload(observer, plan, start, processor, notes)

    def exported(self, start: Start, plan: Plan) -> Mapping[str, Any]:  # noqa: ARG002
        return {"trained": start.trained}

    def check(self, plan: Plan, starts: Sequence[Start]) -> str | None:
        """Read the trained model of mode predict; in a group, the one of each partition."""
        if plan.config.mode != "predict":
            return None
        path = plan.config.serve_from or ""
        if group_of(plan.config) is None and starts:
            self.load(starts[0], plan, plan.config.outputs)
            return f"model: {path}, {starts[0].models.origin}"
        # What a partition has no model for yet fails when it is given to a member.
        found = of_partitions(path)
        for one in found:
            _trained_models(plan, one).newest()
        return f"model: {', '.join(found) or f'{path}, none yet'}"


def _trained_models(plan: Plan, path: str | None = None) -> CheckpointReader[TrainedModel]:
    # A trained model is read from a checkpoint with the sections of all components, this one included.
    from streamkernel.daemon.run_state.trained import trained_models

    return trained_models(plan, path)


def _refuse_outputs(trained: TrainedModel, start: Start, plan: Plan, outputs: Mapping[str, Any]) -> None:
    """Refuse outputs that are in the way of the run which learned the model and continues to write.

    It would find other bytes in its files, and a second producer with its transactional id would fence its own.
    """
    for key, output in outputs.items():
        identity = getattr(output, "transactional_id", None)
        if identity is not None and trained.holds(identity):
            raise DaemonError(
                f"{key}.transactional_id: {identity} belongs to the run that learned the model, and this run would "
                "stop it: use another transactional_id and another topic"
            )
        path = getattr(output, "path", "-")
        own = start.mark_of(key, plan.raw.get(key) or {})
        if path != "-" and own is None and trained.writes_to(path):
            raise DaemonError(f"{key}.path: {path} is an output of the run that learned the model: name another file")


@dataclass
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
    notes
        Notes each reload.
    clock
        Gives seconds, and never goes back.

    """

    observer: Observer
    plan: Plan
    start: Start
    processor: Processor
    notes: CheckpointObserver
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._looked = self.clock()
        self._said = ""

    def chunk(self, done: RecordBatch) -> None:
        """Note a chunk that is done."""
        self.observer.chunk(done)

    def turn(self) -> None:
        """Note that the loop is alive, and look for a newer checkpoint when it is time."""
        seconds = self.plan.config.reload
        if seconds is not None and self.clock() - self._looked >= seconds:
            self._look()
            self._looked = self.clock()
        self.observer.turn()

    def _look(self) -> None:
        try:
            newer = self.start.newer()
        except CheckpointError as error:
            if str(error) != self._said:
                self._said = str(error)
                _log.error("%s; predictions continue with the previous checkpoint", error)
            self.notes.reload_failed()
            return
        self._said = ""
        if newer is not None:
            self._take(newer)

    def _take(self, trained: TrainedModel) -> None:
        models = trained.models(self.plan)
        self.processor.replace(make_learner(self.plan, models.main))
        self.processor.checkpoint, self.processor.name = models.checkpoint, models.name
        self.start.trained, self.start.models = trained, models
        self.notes.predicts_with(trained)
        _log.info("predicting with %s", trained.describe())
