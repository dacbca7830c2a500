"""A run of the daemon from its start to its end: what is opened, in which order, and which errors end it."""

from __future__ import annotations

import contextlib
import logging
import shlex
from collections.abc import Callable, Mapping

from streamkernel.connectors.ports import SinkError, SourceError
from streamkernel.daemon.assembly import parts
from streamkernel.daemon.assembly.model import try_model
from streamkernel.daemon.assembly.processor import compared, label_watch, make_processor
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.base.notifier import Notifier
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.components.catalogue import REPLAY
from streamkernel.daemon.components.caveats import caveats, label_advice
from streamkernel.daemon.config.document import STANDARD_INPUT
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.fresh import set_aside, verify_fresh
from streamkernel.daemon.monitoring.dead_letters import DeadLetterLog
from streamkernel.daemon.monitoring.progress import show_progress
from streamkernel.daemon.monitoring.status import StatusBoard
from streamkernel.daemon.monitoring.view import View
from streamkernel.daemon.monitoring.watch import Watch
from streamkernel.daemon.run_state import resume
from streamkernel.daemon.run_state.coordinator import CheckpointCoordinator
from streamkernel.daemon.run_state.header import COMPONENTS, sources_of
from streamkernel.daemon.run_state.schedule import CheckpointObserver
from streamkernel.daemon.stream.ending import all_dead, verify_ending
from streamkernel.daemon.stream.loop import Feed, Loop, Observer
from streamkernel.daemon.stream.stop import StopSignals
from streamkernel.daemon.warm_start import OpenRun, warm_up

__all__ = ["LifecycleListener", "run"]

_log = logging.getLogger(__name__)

_ENDS = {"exhausted": "the source is exhausted", "enough": "--max-records is reached"}


class LifecycleListener:
    """A listener to the lifecycle of a run; this one belongs to a daemon outside any group, and does nothing.

    Attributes
    ----------
    alone
        Whether the terminal is the daemon's alone, and its metrics are not for the process that started it only.

    """

    alone = True

    def signals(self) -> StopSignals:
        """Return what says when to stop."""
        return StopSignals()

    def take(self, store: CheckpointStore, stopped: Callable[[], bool]) -> None:  # noqa: ARG002
        """Take the checkpoint directory.

        Raises
        ------
        CheckpointError
            Where another daemon holds it.

        """
        store.lock()

    def serving(self, host: str, port: int) -> None:
        """Note where the metrics are served."""

    def reading(self, record: int) -> None:
        """Note that records are read, and from which one on."""

    def saved(self, offsets: Mapping[int, int]) -> None:
        """Note that all before these offsets is saved, by partition."""


def run(
    plan: Plan, fresh: bool = False, max_records: int | None = None, listener: LifecycleListener | None = None
) -> View:
    """Run the daemon until its source is exhausted, enough records were taken, or a signal comes.

    Parameters
    ----------
    plan
        The configuration.
    fresh
        Set old checkpoints aside and start over.
    max_records
        How many records to take at most in this run.
    listener
        Notes how the run gets on; None: nobody does.

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
    listener = listener or LifecycleListener()
    with contextlib.ExitStack() as stack:
        opened, feed = _open(plan, fresh, listener, stack)
        first = next((one for one in sources_of(opened.start, plan) if one.first), None)
        if first is not None:
            before = first.taken()
            why, view = _warm_up(opened, max_records)
            if why != "exhausted":
                return view
            if max_records is not None:
                max_records -= first.taken() - before
        return _follow(opened, feed, listener, max_records, stack)


def _open(plan: Plan, fresh: bool, listener: LifecycleListener, stack: contextlib.ExitStack) -> tuple[OpenRun, Feed]:
    """Open everything a run needs, and return it with the feed of the main source.

    1. The directory: a second daemon is turned away before it touches anything.
    2. The state: new, or that of the newest checkpoint.
    3. The HTTP endpoint, the sources and the sinks.
    """
    stopped = stack.enter_context(listener.signals())
    health = Health(obstacle=lambda: _obstacle(plan))
    stack.enter_context(Notifier(health, stopped))
    store = _take_store(plan, fresh, listener, stopped, stack)
    start = resume.resume(plan, store)
    exporter = parts.make_exporter(plan, start)
    board = None if exporter is None else StatusBoard(plan, health, exporter)
    if exporter is not None:
        listener.serving(*parts.serve(plan, exporter, health, stack))
    try:
        feed = parts.open_feed(plan, start, stopped, stack)
    except SourceError:
        if start.resumed:  # the lines that its checkpoint holds are committed all the same
            with contextlib.suppress(SinkError):
                parts.open_sinks(plan, start, stopped, stack)
        raise
    sinks = parts.open_sinks(plan, start, stopped, stack, exporter)
    for caveat in caveats(plan, sinks.sinks):
        _log.warning("%s", caveat)
    opened = OpenRun(
        plan,
        start,
        make_processor(plan, start),
        sinks,
        stopped,
        DeadLetterLog(
            {key: section.kind for key, section in plan.config.sources.items()},
            refused=label_advice(plan),
            last=None if board is None else board.letters,
            sources=plan.sources,
        ),
        store,
        parts.open_markers(plan, start, store, stack),
        exporter or CheckpointObserver(),
        health,
        board,
        exporter,
    )
    if store is not None and not start.resumed:
        try_model(plan)
    return opened, feed


def _warm_up(opened: OpenRun, max_records: int | None) -> tuple[str, View]:
    """Learn the source of the warm start; return why it ended, and the last view."""
    try:
        why, view = warm_up(opened, max_records)
    except BaseException:
        opened.dead_letters.summarize()
        raise
    if why != "exhausted":
        opened.dead_letters.summarize()
        _log.info("%s during the warm start", _ENDS.get(why, f"{opened.stopped.name} came"))
    return why, view


def _follow(
    opened: OpenRun, feed: Feed, listener: LifecycleListener, max_records: int | None, stack: contextlib.ExitStack
) -> View:
    """Read the main source to its end, and return the last view."""
    plan, start, processor, stopped = opened.plan, opened.start, opened.processor, opened.stopped
    checkpoints = CheckpointCoordinator(
        plan, opened.store, processor, opened.sinks, start, opened.observer, listener.saved
    )
    watch = _watch(opened, checkpoints, listener.alone, stack)
    checkpoints.begin(stopped)
    if not stopped():  # while it waited for a broker
        for one in sources_of(start, plan):
            parts.log_reading(one)
    opened.health.ready = True
    listener.reading(start.counts.consumed + 1)
    observer: Observer = watch
    for component in COMPONENTS:
        observer = component.observe(observer, start, plan, processor, opened.observer)
    watched = label_watch(plan, compared(plan, feed, processor, start))
    loop = Loop(
        watched,
        processor,
        opened.sinks,
        start.positions,
        observer,
        checkpoints,
        markers=opened.markers,
        stopped=stopped,
        at_work=stopped.at_work,
        max_records=max_records,
        times=watch.times,
    )
    try:
        why = _run_to_the_end(loop, checkpoints, opened.health)
    finally:
        opened.dead_letters.summarize("" if all_dead(processor) or not listener.alone else _way_back(plan))
    for text in filter(None, (component.describe(start) for component in COMPONENTS)):
        _log.info("%s", text)
    _log.info("%s; %s", _ENDS.get(why, f"{stopped.name} came"), checkpoints.safe())
    if why == "exhausted":
        verify_ending(processor)
        watched.verify(processor.counts)
    return watch.refresh(exact=True)


def _watch(
    opened: OpenRun, checkpoints: CheckpointCoordinator, shows_progress: bool, stack: contextlib.ExitStack
) -> Watch:
    """Return the watch over the loop, which the progress bar, the status page and the health probe follow."""
    plan, start, board = opened.plan, opened.start, opened.board
    offset = start.positions[0].offset if 0 in start.positions else 0
    total = plan.source.total[0] if plan.source.total is not None else None
    show = stack.enter_context(show_progress(plan.path.stem, total, offset, shows_progress))
    if board is not None:
        positions = {f"{one.what}s": one.positions for one in sources_of(start, plan)}
        show = board.follow(plan.source.describe, checkpoints, positions, show)
    watch = Watch(opened.processor, opened.exporter, checkpoints.describe, show, offset, opened.dead_letters)
    opened.health.trouble = watch.trouble
    opened.health.summary = lambda: watch.view.phrase()
    return watch


def _run_to_the_end(loop: Loop, checkpoints: CheckpointCoordinator, health: Health) -> str:
    """Run the loop, make everything durable, and give why it ended."""
    try:
        return checkpoints.finish_after(loop.run)
    except Exception:
        if checkpoints.processor.taken:  # else the error says it all
            _log.error("%s", checkpoints.safe())
        raise
    finally:
        health.ready = False


def _way_back(plan: Plan) -> str:
    """Return how dead letters that are kept come back; nothing where they do not."""
    path = getattr(plan.config.dead_letters, "path", "-")
    if path == "-" or REPLAY.problems(plan.config):
        return ""
    config = "CONFIG" if str(plan.path) == STANDARD_INPUT else shlex.quote(str(plan.path))
    command = f"streamkernel replay {shlex.quote(str(path))} {config}"
    return f"the dead letters are in {path}: fix them, then {command} learns them"


def _obstacle(plan: Plan) -> str | None:
    """Return why no records or labels come for now; None where they may."""
    problems = (source.health_problem for source in plan.sources.values())
    return next((plan.redact(problem) for problem in problems if problem is not None), None)


def _take_store(
    plan: Plan, fresh: bool, listener: LifecycleListener, stopped: StopSignals, stack: contextlib.ExitStack
) -> CheckpointStore | None:
    """Lock the checkpoint directory, and set aside what is in it where the run starts over."""
    store = parts.make_store(plan)
    if store is None:
        if fresh:
            _log.info("--fresh has no effect: this run stores nothing and starts at the first record")
        return None
    listener.take(store, stopped)
    stack.callback(store.close)
    if fresh:
        verify_fresh(plan, store)
        set_aside(plan, store)
        for beside in ("learning", "learning-labels", "order.log", "order-labels.log"):
            store.files.remove(beside, missing_ok=True)
    return store
