"""Publishes another one of several models: what `streamkernel promote CONFIG NAME` does."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.checkpoints.file import Checkpoint
from streamkernel.daemon.checkpoints.store import CheckpointStore, checkpoint_files
from streamkernel.daemon.components.catalogue import PROMOTE
from streamkernel.daemon.components.group_mode import group_of, partition_directories
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.daemon.run_state.header import open_checkpoint
from streamkernel.daemon.run_state.resume import lock_stopped, newest_of
from streamkernel.daemon.run_state.run import check_mode
from streamkernel.daemon.run_state.run_models import StoredModels

__all__ = ["promote"]

_MOST_KEPT = 1000


def promote(plan: Plan, name: str) -> list[str]:
    """Publish a model of the newest checkpoint from its position on, by writing that checkpoint once more.

    All models stay as they are. In group mode, the model is published in each partition that was begun.

    Parameters
    ----------
    plan
        The configuration; its daemon must be stopped.
    name
        The model.

    Returns
    -------
    lines
        What was done, one sentence for each checkpoint directory.

    Raises
    ------
    ConfigError
        Where the configuration has but one model, or no checkpoint.
    DaemonError
        Where the daemon is running.
    CheckpointError
        Where there is no checkpoint, or no such model in it.
    OSError
        Where the new checkpoint cannot be written.

    """
    settings = plan.config.checkpoint
    if (problems := PROMOTE.problems(plan.config)) or settings is None:
        raise ConfigError(*problems)
    directory = Path(settings.directory)
    inner = partition_directories(directory).values() if group_of(plan.config) is not None else [directory]
    begun = [one for one in inner if checkpoint_files(one)]
    if not begun:
        raise CheckpointError(f"{directory}: holds no checkpoint: set publish: {name}, and start the daemon")
    with ExitStack() as stack:
        # Of a group, all or none: no partition is touched before the daemons of all are known to be stopped.
        stores = [
            lock_stopped(CheckpointStore(one, settings.keep, int(settings.mode, 8)), "promote", stack) for one in begun
        ]
        newest = [_newest(plan, store, name) for store in stores]
        return [_promote(store, found, name) for store, found in zip(stores, newest, strict=True)]


def _newest(plan: Plan, store: CheckpointStore, name: str) -> Checkpoint:
    """Return the newest checkpoint of a directory, which holds the model."""

    def use(checkpoint: Checkpoint) -> Checkpoint:
        check_mode(checkpoint.header, plan)
        StoredModels(open_checkpoint(checkpoint)).named(name)
        return checkpoint

    return newest_of(store, use)


def _promote(store: CheckpointStore, checkpoint: Checkpoint, name: str) -> str:
    header, models = checkpoint.header, checkpoint.header["models"]
    before, consumed = models["published"], header["source"]["account"]["consumed"]
    if before == name:
        return f"{store.directory}: {name} is published already"
    promotions = [*models.get("promotions", []), [consumed, before, name]]
    promoted = {**models, "published": name, "promotions": promotions[-_MOST_KEPT:]}
    store.write({**header, "models": promoted}, checkpoint.payload)
    return f"{store.directory}: {name} is published from record {consumed + 1:,} on, instead of {before}"
