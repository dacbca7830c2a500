"""The status of a daemon: what its loop publishes twice a second, and the JSON that is made of it."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, NamedTuple

from streamkernel.connectors.encode import to_json
from streamkernel.connectors.ports import Position
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.base.status_snapshot import StatusHistory, StatusSnapshot
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.monitoring.exporter.exporter import Exporter
from streamkernel.daemon.monitoring.status.checkpoint_figures import CheckpointFigures, CheckpointFiguresObserver
from streamkernel.daemon.monitoring.status.document import status_document, status_policy
from streamkernel.daemon.monitoring.status.history import FigureHistory
from streamkernel.daemon.monitoring.status.last_dead_letters import LastDeadLetters
from streamkernel.daemon.monitoring.status.pipeline import drawn, written
from streamkernel.daemon.monitoring.view import View
from streamkernel.daemon.run_state.coordinator import CheckpointCoordinator

__all__ = ["STATUS_VERSION", "StatusBoard"]

STATUS_VERSION = 1
"""Of the JSON's shape: raised when a field is renamed, removed or means something else."""

_RATE_SECONDS = 5.0


@dataclass(frozen=True)
class _PublishedStatus:
    """What the loop published last; nobody writes to it."""

    time: float
    history: StatusHistory
    view: View = field(default_factory=View)
    rate: float = math.nan
    positions: tuple[tuple[str, int, int], ...] = ()  # of the records or the labels: partition and offset
    lag: Mapping[tuple[str, int], int] = field(default_factory=dict)
    checkpoint: CheckpointFigures | None = None


class _MadeSnapshot(NamedTuple):
    """A snapshot, and what it was made of."""

    shown: _PublishedStatus
    letters: Sequence[Mapping[str, Any]]
    snapshot: StatusSnapshot


class StatusBoard:
    """Publishes the figures of a run as snapshots, and answers /api/status from the last one.

    The loop's thread writes, by what `follow` returns; others read, and touch no model.

    Parameters
    ----------
    plan
        The configuration.
    health
        The state; its page and its status are set to those of the board.
    exporter
        The metrics, which know the lag.
    clock, now
        Give seconds, the one never goes back, the other since 1970.

    Attributes
    ----------
    letters
        The last dead letters.
    checkpoints
        Observes the checkpoints for the board, and passes everything on to the metrics.

    """

    def __init__(
        self,
        plan: Plan,
        health: Health,
        exporter: Exporter,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        settings = plan.config.metrics
        assert settings is not None
        self._plan = plan
        self._health = health
        self._exporter = exporter
        self._clock = clock
        self._started = now()
        self._epoch = self._started - clock()
        self._taken: deque[tuple[float, int]] = deque()
        self._history = FigureHistory(["loss", "rate", "features", "lag", *(f"rolling_{name}" for name in plan.report)])
        self._source: Callable[[], str] = plan.source.describe
        self._places: Mapping[str, Mapping[int, Position]] = {}
        self._coordinator: CheckpointCoordinator | None = None
        self._snapshot = _PublishedStatus(self._time(), self._history.columns)
        self._made: _MadeSnapshot | None = None
        self.letters = LastDeadLetters(settings.dead_letter_chars, plan.redact, now)
        self.checkpoints = CheckpointFiguresObserver(exporter)
        models = plan.models or {"": plan.model}
        self._pipelines = {name: written(model, plan.redact) for name, model in models.items()}
        page = status_document({name: drawn(model, plan.redact) for name, model in models.items()})
        health.page, health.policy, health.status = (lambda: page), status_policy(), self.to_json

    def follow(
        self,
        source: Callable[[], str],
        checkpoints: CheckpointCoordinator,
        places: Mapping[str, Mapping[int, Position]],
        show: Callable[[View], None],
    ) -> Callable[[View], None]:
        """Follow a run, or its warm start, from now on.

        Parameters
        ----------
        source
            Describes what is read.
        checkpoints
            Makes the checkpoints.
        places
            Where the partitions of the records, the labels or the warm start continue, kept up to date by the loop.
        show
            Takes each view, too.

        Returns
        -------
        show
            What takes each view.

        """
        self._source = source
        self._coordinator = checkpoints
        self._places = places
        self._taken.clear()

        def show_both(view: View) -> None:
            show(view)
            self._show(view)

        return show_both

    def _show(self, view: View) -> None:
        """Publish a view, and add it to the history where a point is due."""
        now = self._time()
        rate = self._rate(now, view.taken)
        lag = self._exporter.lag()
        growth = view.growth.get("features", math.nan)
        figures = {"loss": view.loss, "rate": rate, "features": growth, "lag": sum(lag.values()) if lag else math.nan}
        self._history.add(now, figures | {f"rolling_{name}": value for name, value in view.rolling.items()})
        coordinator = self._coordinator
        self._snapshot = _PublishedStatus(
            now,
            self._history.columns,
            view,
            rate,
            tuple((of, at, one.offset) for of, places in self._places.items() for at, one in places.items()),
            lag,
            None if coordinator is None else self.checkpoints.figures(coordinator),
        )

    def to_json(self, since: float = 0.0, partition: int | None = None) -> bytes | None:
        """Return the status as JSON; None where a partition is asked for, which only a member of a group has."""
        if partition is not None:
            return None
        return self.snapshot().to_json(self._time(), self._health.state(), since)

    def snapshot(self) -> StatusSnapshot:
        """Return what was published last, the same object until something is published."""
        shown, letters = self._snapshot, self.letters.letters
        made = self._made
        if made is None or made.shown is not shown or made.letters is not letters:
            document = to_json(self._document(shown, letters))
            made = self._made = _MadeSnapshot(shown, letters, StatusSnapshot(document, shown.history))
        return made.snapshot

    def _document(self, shown: _PublishedStatus, letters: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        plan = self._plan
        return {
            "version": STATUS_VERSION,
            "kind": "run",
            "configuration": plan.path.name,
            "mode": plan.config.mode,
            "streamkernel": version("streamkernel"),
            "source": plan.redact(self._source()),
            "labels_source": None if plan.labels is None else plan.redact(plan.labels.describe()),
            "started": round(self._started, 3),
            "snapshot": round(shown.time, 3),
            "rate": shown.rate,
            "figures": shown.view.to_json(),
            "calibration_error": shown.view.calibration_error,
            "interval_coverage": shown.view.interval_coverage,
            "check_margin": shown.view.check_margin,
            "loop_seconds": dict(shown.view.loop_seconds),
            "slowest_record": shown.view.slowest_record,
            "positions": [{"of": of, "partition": number, "offset": offset} for of, number, offset in shown.positions],
            "lag": [{"topic": topic, "partition": at, "records": left} for (topic, at), left in shown.lag.items()],
            "checkpoint": None if shown.checkpoint is None else shown.checkpoint.to_json(),
            "checkpoint_phrase": plan.redact(shown.view.checkpoint),
            "dead_letters": letters,
            "pipelines": self._pipelines,
        }

    def _time(self) -> float:
        """Return the time in seconds since 1970, which never goes back."""
        return self._epoch + self._clock()

    def _rate(self, now: float, taken: int) -> float:
        """Return the records a second over the last seconds."""
        self._taken.append((now, taken))
        while len(self._taken) > 2 and now - self._taken[1][0] >= _RATE_SECONDS:
            self._taken.popleft()
        then, before = self._taken[0]
        return (taken - before) / (now - then) if now > then else math.nan
