"""A run of the daemon from its start to its end: what is opened, in which order, and what is said when it fails."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path

from connectors.ports import SourceError
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.fresh import set_aside, verify_fresh
from streamkernel.daemon.herald import Herald
from streamkernel.daemon.recovery import resume
from streamkernel.daemon.recovery.keeping import Keeper
from streamkernel.daemon.settings.plan import Plan
from streamkernel.daemon.settings.promises import caveats
from streamkernel.daemon.shown.metrics import Exporter
from streamkernel.daemon.shown.progress import show_progress
from streamkernel.daemon.shown.server import Server
from streamkernel.daemon.shown.view import View, status_page
from streamkernel.daemon.shown.watch import Watch
from streamkernel.daemon.stream.loop import Feed, Loop
from streamkernel.daemon.stream.marker import Marker
from streamkernel.daemon.stream.outbox import Outbox
from streamkernel.daemon.stream.stop import StopSignals
from streamkernel.daemon.wiring.connectors import make_sink
from streamkernel.daemon.wiring.model import try_model
from streamkernel.daemon.wiring.processor import feed_of, make_processor

__all__ = ["run"]

_log = logging.getLogger(__name__)

_ENDS = {"exhausted": "the source is exhausted", "enough": "enough records were taken"}


def run(plan: Plan, fresh: bool = False, max_records: int | None = None, herald: Herald | None = None) -> View:
    """Run the daemon until its source is exhausted, enough records were taken, or a signal comes.

    Parameters
    ----------
    plan
        The configuration.
    fresh
        Set old checkpoints aside and begin anew.
    max_records
        How many records to take at most in this run.
    herald
        Who tells whoever started this run how it gets on; None: nobody is told.

    Returns
    -------
    view
        The daemon as it ended.

    Raises
    ------
    ConnectorError, CheckpointError, ServerError, DaemonError, OSError
        When something fails; the message is one sentence.
    Stopped
        When a signal comes before anything was begun.

    """
    herald = herald or Herald()
    with contextlib.ExitStack() as stack:
        stopped = stack.enter_context(herald.signals())
        # The directory comes first: a second daemon is turned away before it touches anything.
        store = _open_store(plan, fresh, stack, lambda store: herald.take(store, stopped))
        start = resume.resume(plan, store)
        exporter, health = _serve(plan, start, stack, herald)
        if not plan.source.resumable:
            start.positions = {}
        stack.enter_context(plan.source).open(start.positions)
        feed = _open_labels(plan, start, stack, stopped)
        outbox = _open_outbox(plan, start, stack, stopped)
        for caveat in caveats(plan, outbox.sinks):
            _log.warning("%s", caveat)

        processor = make_processor(plan, start)
        keeper = Keeper(plan, store, processor, outbox, start.positions, exporter, herald.saved)
        offset = start.positions[0].offset if 0 in start.positions else 0
        total = plan.source.total[0] if plan.source.total is not None else None
        with show_progress(plan.path.stem, total, offset, herald.alone) as show:
            watch = Watch(processor, exporter, keeper.describe, show, offset)
            health.trouble = watch.trouble
            health.obstacle = lambda: _obstacle(plan)
            health.page = lambda: status_page(plan.path.name, plan.redact(plan.source.describe()), watch.view)
            if store is not None and not start.resumed:
                try_model(plan)
            keeper.begin(start, stopped)
            _log.info("reading %s from record %d on", plan.source.describe(), start.account.consumed + 1)
            if plan.labels is not None and start.late is not None:
                _log.info("reading %s from label %d on", plan.labels.describe(), start.late.account.taken + 1)
            health.ready = True
            herald.reading(start.account.consumed + 1)
            try:
                loop = Loop(
                    feed,
                    processor,
                    outbox,
                    start.positions,
                    watch,
                    keeper,
                    marker=_marker(store, "learning", stack),
                    label_marker=_marker(store, "learning-labels", stack) if plan.labels is not None else None,
                    stopped=stopped,
                    at_work=stopped.at_work,
                    max_records=max_records,
                )
                try:
                    why = loop.run()
                except SourceError:
                    keeper.finish()  # what came before is dealt with, and in order
                    raise
                keeper.finish()
            except Exception:
                _log.error("%s", keeper.safe())
                raise
            finally:
                health.ready = False
            if start.late is not None:
                _log.info("%d records wait for their labels", len(start.late.pending))
            _log.info("%s; %s", _ENDS.get(why, f"{stopped.name} came"), keeper.safe())
            return watch.refresh()


def _obstacle(plan: Plan) -> str | None:
    """Say why no records or labels come for now; None where they may."""
    for source in (plan.source, plan.labels):
        trouble = None if source is None else source.health_problem
        if trouble is not None:
            return plan.redact(trouble)
    return None


def _open_labels(plan: Plan, start: resume.Start, stack: contextlib.ExitStack, stopped: StopSignals) -> Feed:
    stopped.check()
    if plan.labels is not None and start.late is not None:
        if not plan.labels.resumable:
            start.late.positions = {}
        stack.enter_context(plan.labels).open(start.late.positions)
    return feed_of(plan, start)


def _marker(store: CheckpointStore | None, name: str, stack: contextlib.ExitStack) -> Marker | None:
    if store is None:
        return None
    marker = Marker(store.files, name)
    stack.callback(marker.close)
    return marker


def _open_store(
    plan: Plan, fresh: bool, stack: contextlib.ExitStack, take: Callable[[CheckpointStore], None]
) -> CheckpointStore | None:
    settings = plan.config.checkpoint
    if settings is None:
        return None
    if fresh and plan.config.mode == "predict":
        raise DaemonError("--fresh would set the model aside that mode predict serves: leave it out")
    store = CheckpointStore(Path(settings.directory), settings.keep, int(settings.mode, 8))
    take(store)
    stack.callback(store.close)
    if fresh:
        verify_fresh(plan, store)
        set_aside(plan, store)
        for beside in ("learning", "learning-labels", "order.log", "order-labels.log"):
            store.files.remove(beside, missing_ok=True)
    return store


def _serve(
    plan: Plan, start: resume.Start, stack: contextlib.ExitStack, herald: Herald
) -> tuple[Exporter | None, Health]:
    health = Health()
    settings = plan.config.metrics
    if settings is None:
        return None, health
    exporter = Exporter(start.model, plan.report, settings.window, start.late, plan.source, plan.labels)
    server = Server(settings, exporter.registry, health)
    stack.callback(server.close)
    herald.serving(settings.host, server.port)
    _log.info("serving metrics at %s/metrics", server.url)
    return exporter, health


def _open_outbox(plan: Plan, start: resume.Start, stack: contextlib.ExitStack, stopped: StopSignals) -> Outbox:
    settings = {"predictions": plan.config.predictions, "dead_letters": plan.config.dead_letters}
    sinks = {key: make_sink(one, key) for key, one in settings.items()}
    outbox = Outbox(sinks, max_waiting_bytes=plan.config.limits.max_waiting_bytes)
    stack.callback(outbox.close)
    for key, sink in outbox.sinks.items():
        # Each of them may wait some seconds for a broker, and a stop must not wait for all of them.
        stopped.check()
        sink.open(start.mark_of(key, plan.raw.get(key) or {}))
    return outbox
