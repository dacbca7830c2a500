"""A warm start: a source that ends is learned to its end before the first record of the main one."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from streamkernel.daemon.assembly.parts import log_reading
from streamkernel.daemon.assembly.processor import compared, label_watch
from streamkernel.daemon.base import crash
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.monitoring.dead_letters import DeadLetterLog
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.monitoring.status import StatusBoard
from streamkernel.daemon.monitoring.view import View
from streamkernel.daemon.monitoring.watch import Watch
from streamkernel.daemon.run_state.coordinator import CheckpointCoordinator
from streamkernel.daemon.run_state.schedule import CheckpointObserver
from streamkernel.daemon.run_state.start import Start
from streamkernel.daemon.run_state.warm_start import WarmStartState
from streamkernel.daemon.stream.ending import verify_ending
from streamkernel.daemon.stream.in_flight import InFlightMarkers
from streamkernel.daemon.stream.loop import Loop
from streamkernel.daemon.stream.processor import Processor
from streamkernel.daemon.stream.sinks import Sinks
from streamkernel.daemon.stream.stop import StopSignals
from streamkernel.finite import NotFiniteError

__all__ = ["OpenRun", "warm_up"]

_log = logging.getLogger(__name__)


@dataclass
class OpenRun:
    """What a run holds open.

    Attributes
    ----------
    plan, start
        The configuration, and the state from which the run starts.
    processor
        The models and the counts of the main source.
    sinks
        The open outputs.
    stopped
        Whether to stop.
    dead_letters
        Logs dead letters.
    store
        The locked checkpoint directory; None: nothing is saved.
    markers
        The write-ahead markers.
    observer
        Notes checkpoints.
    health
        What the probe reports.
    board, exporter
        The status page and the metrics; None where none are served.

    """

    plan: Plan
    start: Start
    processor: Processor
    sinks: Sinks
    stopped: StopSignals
    dead_letters: DeadLetterLog
    store: CheckpointStore | None = None
    markers: InFlightMarkers = field(default_factory=lambda: InFlightMarkers({}))
    observer: CheckpointObserver = field(default_factory=CheckpointObserver)
    health: Health = field(default_factory=Health)
    board: StatusBoard | None = None
    exporter: Exporter | None = None


def warm_up(run: OpenRun, max_records: int | None = None) -> tuple[str, View]:
    """Learn the source of a warm start from where it is, and make that durable.

    Returns
    -------
    why, view
        As `Loop.run` gives it, ``"exhausted"`` where the main source may begin; and the last view.

    Raises
    ------
    ConnectorError, CheckpointError, DaemonError
        When something fails; what was learned is saved.

    """
    plan, start = run.plan, run.start
    (one,) = WarmStartState().sources(start, plan)
    assert one.first is not None
    source, processor = one.source, one.first(run.processor)
    observer = run.observer
    checkpoints = CheckpointCoordinator(
        plan, run.store, processor, run.sinks, start, observer=observer, main=run.processor
    )

    def publish(view: View) -> None:  # noqa: ARG001
        # The metrics count the main source alone; meanwhile they report checkpoints and outputs.
        observer.publish()

    show: Callable[[View], None] = publish
    if run.board is not None:
        show = run.board.follow(source.describe, checkpoints, {"warm_start": one.positions}, publish)
    watch = Watch(processor, None, checkpoints.describe, show, dead_letters=run.dead_letters)
    run.health.trouble = watch.trouble
    run.health.summary = lambda: f"warm start: {watch.view.phrase()}"
    with source:
        source.open(one.positions)
        checkpoints.begin(run.stopped)
        log_reading(one)
        run.health.ready = True
        watched = label_watch(plan, compared(plan, source, processor, start, place=one.section), one.section)
        loop = Loop(
            watched,
            processor,
            run.sinks,
            one.positions,
            watch,
            checkpoints,
            markers=run.markers,
            stopped=run.stopped,
            at_work=run.stopped.at_work,
            max_records=max_records,
            times=watch.times,
        )
        with _telling_what_is_safe(checkpoints):
            why = checkpoints.finish_after(loop.run)
    if why == "exhausted":
        with _telling_what_is_safe(checkpoints):
            verify_ending(processor)
            watched.verify(processor.counts)
            crash.point("seam")
            _refit(run)
            crash.point("refitted")
            _end(run, checkpoints)
    elif checkpoints.schedule is not None:
        _log.info("%s", checkpoints.safe())
    return why, watch.refresh()


@contextlib.contextmanager
def _telling_what_is_safe(checkpoints: CheckpointCoordinator) -> Iterator[None]:
    """Log what is saved, where the warm start ends with an error."""
    try:
        yield
    except Exception:
        if checkpoints.schedule is not None:
            _log.error("%s", checkpoints.safe())
        raise


def _refit(run: OpenRun) -> None:
    """Refit the models that have a window, after the last record.

    The checkpoint before it is of that record: a run killed before the next one refits again, to the same bytes.
    """
    assert run.plan.config.warm_start is not None
    if run.plan.config.warm_start.refit is False:
        return
    run.stopped.at_work(True)
    try:
        run.processor.refit_windows()
    except (ValueError, NotFiniteError) as error:
        raise DaemonError(
            f"the model cannot be refitted after the warm start: {error}. Set warm_start.refit: false to continue "
            "without a refit"
        ) from error
    finally:
        run.stopped.at_work(False)


def _end(run: OpenRun, checkpoints: CheckpointCoordinator) -> None:
    """Make it durable that the main source is read from now on."""
    warm = run.start.warm
    assert warm is not None
    warm.done = True
    warm.positions.clear()
    if checkpoints.schedule is not None:
        checkpoints.schedule.moved()
        checkpoints.finish()
        # The run continues from that checkpoint as from one of a process before.
        run.start.resumed, run.start.written = True, time.time()
    crash.point("seam")
    _log.info("the warm start is done: %d records; the main source follows", warm.counts.learned)
