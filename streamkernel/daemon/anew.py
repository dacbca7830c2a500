"""What would end a run that begins anew, found before anything is set aside for it."""

from __future__ import annotations

from pathlib import Path

from prometheus_client import CollectorRegistry

from connectors.files.opening import is_special
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.checkpoints.aside import find_problem
from streamkernel.daemon.checkpoints.resume import try_model
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.settings.config import Source as SourceSettings
from streamkernel.daemon.settings.plan import Plan
from streamkernel.daemon.settings.wiring import make_source
from streamkernel.daemon.shown.server import Server

__all__ = ["verify_fresh"]


def verify_fresh(plan: Plan, store: CheckpointStore) -> None:
    """Raise what a run would fail with as soon as its checkpoints were set aside, changing nothing.

    A broker that is not there is waited for by the run, and so it is no reason here.

    Parameters
    ----------
    plan
        The configuration.
    store
        The checkpoints, under lock.

    Raises
    ------
    ConnectorError
        Where a source or an output refuses: it is not there, not readable, or not ours to write to.
    CheckpointError
        Where the model cannot be restored from a checkpoint.
    ServerError
        Where the metrics cannot be served.

    """
    try_model(plan)
    _open_source(plan, "source", plan.config.source)
    if plan.config.labels is not None:
        _open_source(plan, "labels", plan.config.labels.source)
    find_problem(plan, store)
    if plan.config.metrics is not None:
        Server(plan.config.metrics, CollectorRegistry(), Health()).close()


def _open_source(plan: Plan, key: str, written: SourceSettings) -> None:
    path = getattr(written, "path", None)
    if path is not None and (str(path) == "-" or is_special(Path(path))):
        return  # what is taken from there does not come again
    # One that keeps nothing beside the checkpoint: the old one still goes with what is there.
    with make_source(written, plan.config.limits, key) as source:
        source.open()
