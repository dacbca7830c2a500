"""What `check` tries: every connection a run would need, without starting anything."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client import CollectorRegistry

from connectors.ports import ConnectorError
from streamkernel.daemon.checkpoints import resume
from streamkernel.daemon.checkpoints.payload import dump_model
from streamkernel.daemon.checkpoints.store import Checkpoint, CheckpointError, read
from streamkernel.daemon.settings.plan import Plan
from streamkernel.daemon.settings.promises import caveats
from streamkernel.daemon.settings.wiring import make_sink
from streamkernel.daemon.shown.server import Health, Server, ServerError
from streamkernel.daemon.stream.loop import DaemonError

__all__ = ["Findings", "check"]

_POLL_SECONDS = 1.0


@dataclass
class Findings:
    """What was tried.

    Attributes
    ----------
    good
        What works, and what to know about it.
    bad
        What would make a run fail.

    """

    good: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)

    def add(self, attempt: Callable[[], str]) -> None:
        """Note what an attempt says, or why it fails."""
        try:
            self.good.append(attempt())
        except (ConnectorError, CheckpointError, ServerError, DaemonError) as error:
            self.bad.append(str(error))


def check(plan: Plan) -> Findings:
    """Try the connections of a configuration.

    Parameters
    ----------
    plan
        The configuration, valid in itself.

    """
    findings = Findings()
    findings.add(lambda: _source(plan))
    findings.add(lambda: _checkpoint(plan))
    sinks = {"predictions": plan.config.predictions, "dead_letters": plan.config.dead_letters}
    for key, settings in sinks.items():
        path = getattr(settings, "path", None)
        if path is not None and path != "-":
            findings.add(lambda key=key, path=path: f"{key}: {_writable(Path(path))}")  # type: ignore[misc]
    findings.add(lambda: _metrics(plan))
    findings.good += caveats(plan, {key: make_sink(settings) for key, settings in sinks.items()})
    return findings


def _source(plan: Plan) -> str:
    if getattr(plan.config.source, "path", None) == "-":
        return "source: standard input, not tried"
    with plan.source as source:
        source.open()
        records = source.poll(1, _POLL_SECONDS)
        if not records:
            return f"source: {source.describe()}, no record yet"
        fault = records[0].fault
        first = "" if fault is None else f"; its first record cannot be used: {fault.detail}"
        return f"source: {source.describe()}{first}"


def _checkpoint(plan: Plan) -> str:
    # A model that no checkpoint can hold is found out now, not at the first one.
    dump_model(plan.model, plan.config.imports)
    if plan.config.checkpoint is None:
        return f"model: {type(plan.model).__name__}, new"
    directory = Path(plan.config.checkpoint.directory)
    _writable(directory / "lock")
    newest = _newest(directory)
    start = resume.restore(plan, newest)
    if newest is None:
        return f"checkpoint: {directory}, none yet"
    return f"checkpoint: {directory}, a run goes on from number {newest.number}, record {start.account.consumed:,}"


def _newest(directory: Path) -> Checkpoint | None:
    """Read the newest valid one and, unlike the store, leave the others where they are."""
    failure = None
    for path in sorted(directory.glob("checkpoint-*.skc"), reverse=True):
        try:
            return read(path)
        except CheckpointError as error:
            failure = error
    if failure is not None:
        raise failure
    return None


def _writable(path: Path) -> str:
    """Say that a file can be written, or made where it and its folders are missing."""
    existing = path
    while not existing.exists():
        existing = existing.parent
    if existing != path and not existing.is_dir():
        raise DaemonError(f"{path}: cannot be written: {existing} is no folder")
    if existing == path and path.is_dir():
        raise DaemonError(f"{path}: cannot be written: it is a folder")
    if not os.access(existing, os.W_OK):
        raise DaemonError(f"{path}: cannot be written: no permission in {existing}")
    return str(path)


def _metrics(plan: Plan) -> str:
    settings = plan.config.metrics
    if settings is None:
        return "metrics: off"
    Server(settings, CollectorRegistry(), Health()).close()
    return f"metrics: {settings.host}:{settings.port}" + (", any free port" if settings.port == 0 else "")
