"""The start of a run: from the beginning, or at the newest checkpoint that this configuration may continue from."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from streamkernel.connectors.ports import Mark, Position
from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.base.errors import DaemonError, OtherModelError, UnfitError
from streamkernel.daemon.base.model import Model
from streamkernel.daemon.base.moments import Moments
from streamkernel.daemon.checkpoints.file import Checkpoint
from streamkernel.daemon.checkpoints.schema import check_header
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.labels import snapshot
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.recovery.header import (
    PREDICTED_WITH,
    check_versions,
    input_differences,
    label_differences,
    mark_of,
    source_differences,
    warm_differences,
)
from streamkernel.daemon.recovery.left_outputs import tell_left
from streamkernel.daemon.recovery.replayed import ReplayedLetters
from streamkernel.daemon.recovery.several import (
    RestoredModel,
    SeveralModels,
    new_models,
    restore_alone,
    restore_several,
)
from streamkernel.daemon.recovery.stored import StoredModels, stored_models
from streamkernel.daemon.recovery.trained import TrainedModel, trained_models
from streamkernel.daemon.recovery.warm import WarmStart

__all__ = ["Start", "begin", "check_mode", "refuse_outputs", "restore", "resume", "take_trained"]

_log = logging.getLogger(__name__)


@dataclass
class Start:
    """The state a run starts from, new or restored.

    Attributes
    ----------
    model
        The model, new or restored; of several, the published one.
    counts, recent_dead
        The counts so far, and the latest dead letters, as `DeadLetterRate.recent` gives them.
    positions
        Where each partition continues; empty at the beginning of the source.
    outputs
        What a checkpoint says about each output, by its key.
    join
        The join of late labels; None where there are none.
    resumed
        Whether there was a checkpoint.
    whole
        Whether all of it was taken over.
    inputs
        The names that a model of River's has learned, as `InputNames.to_text` gives them.
    target_moments
        Those of the numbers that a model of River's has learned.
    written
        When it was written, in seconds since 1970; NaN where there was none.
    trained
        Of mode predict, the model as it was read from the directory of the run that learned it, kept up to date; None
        in mode learn.
    newer
        Of mode predict, gives a newer model, None where there is none.
    replayed
        The dead letters that were replayed.
    warm
        How far the source is learned that comes first; None where there is none.
    several
        All models of a run that learns several; None where there is one.

    """

    model: Model
    counts: RecordCounts = field(default_factory=RecordCounts)
    recent_dead: list[int] = field(default_factory=list)
    positions: dict[int, Position] = field(default_factory=dict)
    outputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    join: LabelJoin | None = None
    resumed: bool = False
    whole: bool = True
    inputs: str = ""
    target_moments: Moments = field(default_factory=Moments)
    written: float = math.nan
    trained: TrainedModel | None = None
    newer: Callable[[], TrainedModel | None] = lambda: None
    replayed: ReplayedLetters = field(default_factory=ReplayedLetters)
    warm: WarmStart | None = None
    several: SeveralModels | None = None

    def take(self, model: RestoredModel) -> None:
        """Begin with a restored model, of several with that as the published one."""
        self.model, self.inputs, self.target_moments = model.model, model.inputs, model.target_moments

    def take_several(self, several: SeveralModels) -> None:
        """Begin with several models."""
        self.several = several
        self.take(several.models[several.published])

    def mark_of(self, key: str, written: Mapping[str, Any]) -> Mark | None:
        """Return the mark an output continues from: None where it starts over, also because it now goes elsewhere."""
        return mark_of(self.outputs, key, written)


def begin(plan: Plan) -> Start:
    """Return the start of a run that starts over: a new model or the initial one, and nothing taken yet.

    Raises
    ------
    CheckpointError
        Where there is no initial model, or it does not fit.

    """
    start = _nothing_taken(plan)
    if plan.config.initial_model is not None:
        path = plan.config.initial_model.checkpoint
        trained = trained_models(plan, path).newest()
        start.take(RestoredModel(trained.model, trained.inputs, trained.target_moments))
        _log.info("the model is from %s, %s", path, trained.describe())
    if plan.warm is not None:
        start.warm = WarmStart()
    return start


def _nothing_taken(plan: Plan) -> Start:
    labels = plan.config.labels
    start = Start(plan.model)
    if plan.models and plan.config.mode == "learn":
        start.take_several(new_models(plan))
    if labels is None:
        return start
    target = getattr(labels.source, "target", None) or "target"
    learn = plan.config.mode == "learn"
    most = labels.max_pending_bytes
    start.join = LabelJoin(labels.key, target, labels.timeout_seconds, labels.max_pending, max_bytes=most, learn=learn)
    return start


def resume(plan: Plan, store: CheckpointStore | None) -> Start:
    """Continue from the newest checkpoint that can be used, or begin where there is none.

    In mode predict, the checkpoint says how far the run is, and the model is read from the directory that it is served
    from.

    Raises
    ------
    CheckpointError
        Where the newest one does not fit the configuration, none of several is valid, or there is no model for mode
        predict.
    DaemonError
        Where an output of mode predict is one of the run that learned the model.

    """
    start = None if store is None else store.restore(lambda checkpoint: restore(plan, checkpoint))
    start = start or restore(plan, None)
    if plan.config.mode == "predict":
        take_trained(plan, start)
        refuse_outputs(plan, start)
    return start


def take_trained(plan: Plan, start: Start) -> None:
    """Give the start of a run in mode predict the newest trained model.

    Raises
    ------
    CheckpointError
        Where there is none, or it cannot be used.

    """
    assert plan.config.serve_from is not None
    reader = trained_models(plan, plan.config.serve_from)
    trained = reader.newest()
    start.trained, start.newer = trained, reader.newer
    start.take(RestoredModel(trained.model, trained.inputs, trained.target_moments))
    _log.info("predicting with %s, %s", reader.path, trained.describe())


def refuse_outputs(plan: Plan, start: Start) -> None:
    """Refuse outputs that are in the way of the run which learned the model and continues to write.

    It would find other bytes in its files, and a second producer with its transactional id would fence its own.

    Raises
    ------
    DaemonError
        Naming the first of them.

    """
    for key, output in plan.config.outputs.items():
        identity = getattr(output, "transactional_id", None)
        if identity is not None and start.trained is not None and start.trained.holds(identity):
            raise DaemonError(
                f"{key}.transactional_id: {identity} belongs to the run that learned the model, and this run would "
                "stop it: use another transactional_id and another topic"
            )
        path = getattr(output, "path", "-")
        own = start.mark_of(key, plan.raw.get(key) or {})
        if path != "-" and own is None and start.trained is not None and start.trained.writes_to(path):
            raise DaemonError(f"{key}.path: {path} is an output of the run that learned the model: name another file")


def restore(plan: Plan, checkpoint: Checkpoint | None, by_spark: bool = False) -> Start:
    """Continue from a checkpoint, or begin where there is none; in mode predict without a model, which is not in it.

    Parameters
    ----------
    plan
        The configuration.
    checkpoint
        The checkpoint; None where there is none.
    by_spark
        Whether a Spark job continues, which knows of files that are read whole.

    Raises
    ------
    UnfitError
        Where the checkpoint does not fit the configuration, naming each difference and the ways on.
    CheckpointError
        Where what it holds is refused.

    """
    predicts = plan.config.mode == "predict"
    if checkpoint is None:
        return _nothing_taken(plan) if predicts else begin(plan)
    header = checkpoint.header
    check_header(header)
    check_mode(header, plan.config.mode)
    check_versions(header)
    if not by_spark:
        _refuse_whole_files(header)
    labels = header.get("labels")
    stored = stored_models(checkpoint)
    start = _nothing_taken(plan)
    _refuse_differences(header, plan, lambda: None if predicts else _take_models(start, plan, stored, header))
    for difference in input_differences(header, plan):
        _log.warning("%s: the model continues with the new inputs", difference)
    start.outputs, start.resumed, start.written = header["outputs"], True, header["written"]
    for key, output in start.outputs.items():
        if start.mark_of(key, plan.raw.get(key) or {}) is None:
            tell_left(output)
    start.counts = RecordCounts(**header["account"])
    start.recent_dead = list(header["recent_dead"])
    start.replayed = ReplayedLetters.from_json(header.get("replayed", []))
    start.positions = {place[1]: Position(*place) for place in header["positions"]}
    if "warm_start" in header:
        start.warm = WarmStart.from_json(header["warm_start"])
    elif plan.warm is not None:
        _log.warning("warm_start: not learned, because the run began without it: start over with --fresh to learn it")
    if labels:
        start.whole = _labels_fit(header, plan)
        if start.whole and start.join is not None:
            snapshot.restore(start.join, labels, stored.waiting)
    return start


def _refuse_whole_files(header: Mapping[str, Any]) -> None:
    """Refuse the checkpoint of a Spark job on files, which does not say how far each of them is learned."""
    if "spark" in header and header["config"]["source"].get("kind") != "kafka":
        raise UnfitError(
            "the checkpoint is from a Spark job, which reads whole files and stores no positions in them: use "
            "another checkpoint.directory, with initial_model to keep the model"
        )


def _take_models(start: Start, plan: Plan, stored: StoredModels, header: Mapping[str, Any]) -> None:
    if plan.models:
        start.take_several(restore_several(plan, stored, header))
    else:
        start.take(restore_alone(plan, stored))


def _refuse_differences(header: Mapping[str, Any], plan: Plan, take_models: Callable[[], None]) -> None:
    """Refuse a checkpoint of another source, other late labels, warm start or model, with all differences at once.

    Raises
    ------
    UnfitError
        Naming each difference and the ways on.

    """
    found = [*source_differences(header, plan), *warm_differences(header, plan)]
    if header.get("labels") and plan.config.mode == "learn":
        found += label_differences(header, plan)
    try:
        take_models()
    except OtherModelError as error:
        if not found:
            raise
        found.append(error.sentence())
    if found:
        raise UnfitError(
            f"{'; '.join(found)}: change it back, or start over with --fresh. To keep only an unchanged model, use "
            "another checkpoint.directory with initial_model"
        )


def check_mode(header: Mapping[str, Any], mode: str) -> None:
    """Refuse the checkpoint of a run in the other mode, which kept other things.

    Raises
    ------
    UnfitError
        Saying which directory to name where.

    """
    if mode == "predict" and PREDICTED_WITH not in header:
        raise UnfitError(
            "checkpoint.directory belongs to a run that learns: name it in serve_from, and give this run its own "
            "directory, or none"
        )
    if mode == "learn" and PREDICTED_WITH in header:
        raise UnfitError(
            "checkpoint.directory belongs to a run in mode predict, which learned nothing: give this run its own"
        )


def _labels_fit(header: Mapping[str, Any], plan: Plan) -> bool:
    """Return whether the late labels of a checkpoint can continue; a model that serves may do without."""
    differences = label_differences(header, plan)
    if differences:
        pending = header["labels"]["pending"]
        _log.warning("%s: the %d records that wait for labels are given up", "; ".join(differences), pending)
    return not differences
