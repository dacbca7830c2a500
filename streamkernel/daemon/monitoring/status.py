"""The status of a daemon as JSON: what its loop publishes twice a second, and the figures of the last hour."""

from __future__ import annotations

import bisect
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from importlib.metadata import version
from operator import itemgetter
from typing import Any

from streamkernel.connectors.encode import to_json
from streamkernel.connectors.ports import Position
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.monitoring.dead_letters import LastDeadLetters
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.monitoring.status_page import publish_page
from streamkernel.daemon.monitoring.view import CheckpointFigures, View
from streamkernel.daemon.run_state.coordinator import CheckpointCoordinator

__all__ = ["INTERVAL_SECONDS", "POINTS", "STATUS_VERSION", "FigureHistory", "StatusBoard"]

STATUS_VERSION = 1
"""Of the JSON's shape: raised when a field is renamed, removed or means something else."""

INTERVAL_SECONDS = 5.0
POINTS = 720
_RATE_SECONDS = 5.0


class FigureHistory:
    """Ring buffer of figures, one point for each interval of five seconds in which the process was at work.

    An interval without a point, for example while a model is refitted, is a gap.

    Parameters
    ----------
    names
        Of the figures.

    Examples
    --------
    >>> history = FigureHistory(["loss"])
    >>> for second in range(12):
    ...     history.add(100.0 + second, {"loss": second / 10})
    >>> history.newer(101.0)
    {'interval': 5.0, 'time': (105.0, 110.0), 'series': {'loss': (0.5, 1.0)}}

    """

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._ring: deque[tuple[float, ...]] = deque(maxlen=POINTS)
        self._due = -math.inf
        self._points: tuple[tuple[float, ...], ...] = ()  # a copy for the threads that read

    def add(self, time: float, figures: Mapping[str, float]) -> None:
        """Add a point if one is due; a figure that is left out is NaN."""
        if time >= self._due:
            self._due = time + INTERVAL_SECONDS
            self._ring.append((round(time, 3), *(figures.get(name, math.nan) for name in self._names)))
            self._points = tuple(self._ring)

    def newer(self, since: float) -> dict[str, Any]:
        """Return the points newer than a time in seconds since 1970."""
        points = self._points
        new = points[bisect.bisect_right(points, since, key=itemgetter(0)) :]
        times, *series = zip(*new, strict=True) if new else [()] * (1 + len(self._names))
        return {
            "interval": INTERVAL_SECONDS,
            "time": times,
            "series": dict(zip(self._names, series, strict=True)),
        }


class StatusBoard:
    """Publishes the figures of a run, and answers /api/status from what it published last.

    The loop's thread writes, through what `follow` returns; others read, and touch no model.

    Parameters
    ----------
    plan
        The configuration.
    health
        The state; its page and its status become those of the board.
    exporter
        The metrics, which know the lag and the checkpoints.
    clock, now
        Give seconds: `clock` never goes back, `now` counts since 1970.

    Attributes
    ----------
    letters
        The last dead letters.

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
        self._version = version("streamkernel")  # it reads a file
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
        self.letters = LastDeadLetters(settings.dead_letter_chars, plan.redact, now)
        self._pipelines = publish_page(plan, health, self.to_json)
        self._document = self._made(View(), self._time(), math.nan, {})

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
            A function that takes each view.

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
        """Publish a view, and add it to the history if a point is due."""
        now, lag = self._time(), self._exporter.lag
        rate = self._rate(now, view.taken)
        features = view.growth.get("features", math.nan)
        figures = {"loss": view.loss, "rate": rate, "features": features, "lag": sum(lag.values()) if lag else math.nan}
        self._history.add(now, figures | {f"rolling_{name}": value for name, value in view.rolling.items()})
        self._document = self._made(view, now, rate, lag)

    def to_json(self, since: float = 0.0, partition: int | None = None) -> bytes | None:
        """Return the status as JSON; None if a partition is asked for, which only a member of a group has."""
        if partition is not None:
            return None
        name, detail = self._health.state()
        return to_json(
            {
                **self._document,
                "dead_letters": self.letters.letters,
                "now": round(self._time(), 3),
                "state": {"name": name, "detail": detail},
                "history": self._history.newer(since),
            }
        )

    def _made(self, view: View, now: float, rate: float, lag: Mapping[tuple[str, int], int]) -> dict[str, Any]:
        plan, checkpoint = self._plan, self._checkpoint()
        labels = plan.sources.get("labels.source")
        positions = [
            {"of": of, "partition": number, "offset": one.offset}
            for of, places in self._places.items()
            for number, one in places.items()
        ]
        return {
            "version": STATUS_VERSION,
            "kind": "run",
            "configuration": plan.path.name,
            "mode": plan.config.mode,
            "streamkernel": self._version,
            "source": plan.redact(self._source()),
            "labels_source": None if labels is None else plan.redact(labels.describe()),
            "started": round(self._started, 3),
            "snapshot": round(now, 3),
            "rate": rate,
            "figures": view.to_json(),
            "calibration_error": view.calibration_error,
            "interval_coverage": view.interval_coverage,
            "check_margin": view.check_margin,
            "loop_seconds": view.loop_seconds,
            "slowest_record": view.slowest_record,
            "positions": positions,
            "lag": [{"topic": topic, "partition": at, "records": left} for (topic, at), left in lag.items()],
            "checkpoint": None if checkpoint is None else asdict(checkpoint),
            "checkpoint_phrase": plan.redact(view.checkpoint),
            "dead_letters": [],
            "pipelines": self._pipelines,
        }

    def _checkpoint(self) -> CheckpointFigures | None:
        """Return the figures of the checkpoints, with when the next one is due; None if the run saves nothing."""
        if self._coordinator is None or (schedule := self._coordinator.schedule) is None:
            return None
        figures, taken = self._exporter.checkpoint, self._coordinator.processor.taken
        if schedule.holds(taken):
            return figures
        return replace(figures, next_records=schedule.room(taken), next_seconds=schedule.seconds_left())

    def _time(self) -> float:
        """Return the time in seconds since 1970, which never goes back."""
        return self._epoch + self._clock()

    def _rate(self, now: float, taken: int) -> float:
        """Return the records per second over the last seconds."""
        self._taken.append((now, taken))
        while len(self._taken) > 2 and now - self._taken[1][0] >= _RATE_SECONDS:
            self._taken.popleft()
        then, before = self._taken[0]
        return (taken - before) / (now - then) if now > then else math.nan
