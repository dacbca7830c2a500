"""The parts of a run that hold something open: sources, outputs, markers and the metrics' server."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from streamkernel.daemon.assembly.connectors import make_sink
from streamkernel.daemon.assembly.processor import feed_of
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.http.server import Server, short_turns
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.run_state.component import OpenSource
from streamkernel.daemon.run_state.header import COMPONENTS, sources_of
from streamkernel.daemon.run_state.start import Start
from streamkernel.daemon.stream.in_flight import InFlightMarker, InFlightMarkers
from streamkernel.daemon.stream.loop import Feed
from streamkernel.daemon.stream.sinks import Sinks
from streamkernel.daemon.stream.stop import StopSignals

__all__ = [
    "log_reading",
    "make_exporter",
    "make_store",
    "open_feed",
    "open_markers",
    "open_sinks",
    "serve",
]

_log = logging.getLogger(__name__)


def make_store(plan: Plan) -> CheckpointStore | None:
    """Return the checkpoint store, not locked yet; None where nothing is saved."""
    settings = plan.config.checkpoint
    return None if settings is None else CheckpointStore(Path(settings.directory), settings.keep, int(settings.mode, 8))


def make_exporter(plan: Plan, start: Start) -> Exporter | None:
    """Return the exporter of the metrics; None where none are served."""
    if plan.config.metrics is None:
        return None
    parts: dict[str, Any] = {"source": plan.source, "outputs": tuple(plan.config.flush_seconds)}
    for component in COMPONENTS:
        parts |= component.exported(start, plan)
    return Exporter(start.models.main.model, plan.report, plan.config.metrics.window, **parts)


def serve(plan: Plan, exporter: Exporter, health: Health, stack: ExitStack) -> tuple[str, int]:
    """Serve metrics and probes until the stack is left, and return host and port."""
    settings = plan.config.metrics
    assert settings is not None
    stack.enter_context(short_turns())
    server = Server(settings, exporter.served, health)
    stack.callback(server.close)
    _log.info("%s", server.describe())
    return settings.host, server.port


def open_feed(plan: Plan, start: Start, stopped: StopSignals, stack: ExitStack) -> Feed:
    """Open the sources where the run begins, and return what the loop reads."""
    for one in sources_of(start, plan):
        if one.first:
            continue  # the warm start opens it
        if not one.source.resumable:
            one.positions.clear()
        stack.enter_context(one.source).open(one.positions)
        stopped.check()
    return feed_of(plan, start)


def open_sinks(
    plan: Plan, start: Start, stopped: StopSignals, stack: ExitStack, exporter: Exporter | None = None
) -> Sinks:
    """Open the outputs, each at the mark it continues from; the exporter hears how late their lines are."""
    made = {key: make_sink(one, key, plan) for key, one in plan.config.outputs.items()}
    sinks = Sinks(
        made,
        max_waiting_bytes=plan.config.limits.max_waiting_bytes,
        flush_seconds=plan.config.flush_seconds,
        published=None if exporter is None else exporter.published,
    )
    stack.enter_context(sinks)
    for key, sink in made.items():
        # Each of them may wait some seconds for a broker, and a stop must not wait for all of them.
        stopped.check()
        sink.open(start.mark_of(key, plan.raw.get(key) or {}))
    return sinks


def log_reading(one: OpenSource) -> None:
    """Log where an open source is read on; where no record may come yet, such as without a broker, log that, too."""
    waits = "" if one.source.health_problem is None else ", once it can be read"
    when = "warm start: " if one.first else ""
    _log.info("%sreading %s from %s %d on%s", when, one.source.describe(), one.what, one.taken() + 1, waits)


def open_markers(plan: Plan, start: Start, store: CheckpointStore | None, stack: ExitStack) -> InFlightMarkers:
    """Open the write-ahead markers next to the checkpoints; none where nothing is saved."""
    names = {one.kind: one.marker for one in sources_of(start, plan)}
    markers = {} if store is None else {kind: InFlightMarker(store.files, name) for kind, name in names.items()}
    for marker in markers.values():
        stack.callback(marker.close)
    return InFlightMarkers(markers)
