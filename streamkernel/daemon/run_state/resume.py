"""The start of a run, or of a command on a stopped one: at the beginning, or at the newest checkpoint that fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, TypeVar

from streamkernel.daemon.base.errors import (
    CheckpointError,
    DaemonError,
    DirectoryInUseError,
    OtherModelError,
    UnfitError,
)
from streamkernel.daemon.checkpoints.file import Checkpoint
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.run_state.header import COMPONENTS, MODELS, check_header, open_checkpoint
from streamkernel.daemon.run_state.run import check_mode, check_versions
from streamkernel.daemon.run_state.run_models import new_models
from streamkernel.daemon.run_state.start import Start

__all__ = ["begin", "load", "lock_stopped", "newest_of", "restore", "resume"]

T = TypeVar("T")


def begin(plan: Plan) -> Start:
    """Return the start of a run that starts over: a new model or the initial one, and nothing taken yet.

    Raises
    ------
    CheckpointError
        Where there is no initial model, or it does not fit.

    """
    start = Start(new_models(plan))
    for component in COMPONENTS:
        component.begin(start, plan)
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
    start = start or begin(plan)
    load(plan, start, plan.config.outputs)
    return start


def load(plan: Plan, start: Start, outputs: Mapping[str, Any]) -> None:
    """Load what the run needs and its checkpoint does not have; see `StateComponent.load`."""
    for component in COMPONENTS:
        component.load(start, plan, outputs)


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
        return begin(plan)
    saved = open_checkpoint(checkpoint)
    check_mode(saved.header, plan)
    check_versions(saved.header)
    if not by_spark and "spark" in saved.header and saved.header["source"]["config"].get("kind") != "kafka":
        raise UnfitError(
            "the checkpoint is from a Spark job, which reads whole files and stores no positions in them: use "
            "another checkpoint.directory, with initial_model to keep the model"
        )
    start = Start(new_models(plan))
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


def lock_stopped(store: CheckpointStore, command: str, stack: ExitStack) -> CheckpointStore:
    """Lock a directory until the stack ends, and return it; a DaemonError, which names the command, where it runs."""
    try:
        store.lock()
    except DirectoryInUseError as error:
        raise DaemonError(
            f"{store.directory}: in use by the daemon ({error.holder}): stop it, {command}, and start it again"
        ) from None
    stack.callback(store.close)
    return store


def newest_of(store: CheckpointStore, use: Callable[[Checkpoint], T], hint: str = "") -> T:
    """Return what `use` makes of the newest checkpoint; a CheckpointError, with a hint after it, where there is none.

    Raises
    ------
    CheckpointError
        Where there is none, or it cannot be used.

    """

    def checked(checkpoint: Checkpoint) -> T:
        check_header(checkpoint.header)
        return use(checkpoint)

    found = store.restore(checked)
    if found is None:
        raise CheckpointError(f"{store.directory}: holds no checkpoint{hint}")
    return found
