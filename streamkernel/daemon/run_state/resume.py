"""The start of a run: from the beginning, or at the newest checkpoint that this configuration may continue from."""

from __future__ import annotations

import logging

from streamkernel.daemon.base.errors import DaemonError, OtherModelError, UnfitError
from streamkernel.daemon.checkpoints.file import Checkpoint
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.run_state.header import COMPONENTS, MODELS, open_checkpoint
from streamkernel.daemon.run_state.run import check_mode, check_versions
from streamkernel.daemon.run_state.run_models import RunModels, new_models
from streamkernel.daemon.run_state.start import Start
from streamkernel.daemon.run_state.trained import trained_models
from streamkernel.daemon.run_state.warm_start import WarmStart

__all__ = ["begin", "refuse_outputs", "restore", "resume", "take_trained"]

_log = logging.getLogger(__name__)


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
        start.models.models[start.models.published] = trained.restored
        _log.info("the model is from %s, %s", path, trained.describe())
    if plan.warm is not None:
        start.warm = WarmStart()
    return start


def _nothing_taken(plan: Plan) -> Start:
    labels = plan.config.labels
    start = Start(new_models(plan))
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
    start.models = RunModels({"": trained.restored})
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
    if checkpoint is None:
        return _nothing_taken(plan) if plan.config.mode == "predict" else begin(plan)
    saved = open_checkpoint(checkpoint)
    check_mode(saved.header, plan.config.mode)
    check_versions(saved.header)
    if not by_spark and "spark" in saved.header and saved.header["source"]["config"].get("kind") != "kafka":
        raise UnfitError(
            "the checkpoint is from a Spark job, which reads whole files and stores no positions in them: use "
            "another checkpoint.directory, with initial_model to keep the model"
        )
    start = _nothing_taken(plan)
    found = [difference for component in COMPONENTS for difference in component.differences(saved, plan)]
    try:
        MODELS.restore(saved, start, plan)
    except OtherModelError as error:
        if not found:
            raise
        found.append(error.sentence())
    if found:
        raise UnfitError(
            f"{'; '.join(found)}: change it back, or start over with --fresh. To keep only an unchanged model, use "
            "another checkpoint.directory with initial_model"
        )
    for component in COMPONENTS:
        if component is not MODELS:
            component.restore(saved, start, plan)
    return start
