"""Keeps what is shown of the daemon current: gauges, progress bar and status page twice a second, the log at times."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from streamkernel.daemon.base.mixture import experts_of, important_inputs
from streamkernel.daemon.monitoring.dead_letters import DeadLetterLog
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.monitoring.notices import Notices
from streamkernel.daemon.monitoring.view import View, changes_of, check_margin_of, figures_of, views_of_models
from streamkernel.daemon.stream.calibration import CalibrationError, IntervalCoverage
from streamkernel.daemon.stream.loop_time import LoopTime
from streamkernel.daemon.stream.processor import Processor, Scores
from streamkernel.daemon.stream.record_batch import RecordBatch

__all__ = ["Watch"]

_log = logging.getLogger(__name__)

_REFRESH_SECONDS = 0.5
# Measuring the model walks through all it consists of, which takes a while for a large forest: at most 1% of the time.
_MEMORY_PAUSE = 100
_SILENCE_SECONDS = 120.0
# A log line whenever the records have doubled shows how learning begins; one a minute that it continues.
_FIRST_LINE = 500
_LINE_SECONDS = 60.0


class Watch:
    """Observes the loop: makes a new view now and then, and gives it to the metrics, the progress bar and the log.

    Parameters
    ----------
    processor
        The model and the counts.
    exporter
        The metrics; None where none are served.
    checkpoint
        Gives a phrase on the last checkpoint.
    show
        Takes each new view, for the progress bar.
    offset
        Where the source is read from.
    dead_letters
        Logs dead letters.

    Attributes
    ----------
    times
        What the time of the loop goes into: it is to be given to the loop.

    """

    def __init__(
        self,
        processor: Processor,
        exporter: Exporter | None,
        checkpoint: Callable[[], str] = lambda: "off",
        show: Callable[[View], None] = lambda _: None,
        offset: int = 0,
        dead_letters: DeadLetterLog | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._processor = processor
        self._exporter = exporter
        self._checkpoint = checkpoint
        self._show = show
        self._clock = clock
        self._before = processor.counts.consumed
        self._before_all = processor.taken
        self._start = self._turned = self._refreshed = clock()
        self._first: tuple[float, int] | None = None  # when the first batch was learned, and how many records it had
        self._measure_at = -math.inf
        self._logged = 0
        self._line_at = _FIRST_LINE
        self._line_after = self._start + _LINE_SECONDS
        self._offset = offset
        self._last_record = math.nan
        self._memory = 0
        self._notices = Notices(processor, clock)
        self._dead_letters = dead_letters or DeadLetterLog({}, clock)
        self.times = LoopTime()
        self.view = View()
        self.refresh()

    def chunk(self, processed: RecordBatch) -> None:
        """Note a chunk."""
        if processed.next is not None:
            self._offset = processed.next.offset
        self._last_record = time.time()
        if self._first is None and processed.counts.predicted:
            self._first = self._clock(), self._processor.counts.consumed
        self._notices.chunk(processed, self._offset)
        self._dead_letters.chunk(processed)
        if self._exporter is not None:
            self._exporter.chunk(processed)

    def turn(self) -> None:
        """Note that the loop is alive, and refresh when it is time."""
        self._turned = self._clock()
        taken = self._processor.taken - self._before_all
        if self._turned - self._refreshed >= _REFRESH_SECONDS:
            self.refresh()
        if taken >= self._line_at or (self._turned >= self._line_after and taken > self._logged):
            view = self.refresh()
            self._logged = taken
            self._line_at = max(2 * taken, _FIRST_LINE)
            self._line_after = self._turned + _LINE_SECONDS
            features = f", {view.growth['features']:,} features" if view.growth else ""
            _log.info("%s%s", view.phrase(), features)

    def trouble(self) -> str | None:
        """Say what is wrong, for the health probe: the loop must turn, even where no record comes.

        While a model is refitted it does not, for as long as that takes: a restart would have to begin it again.
        """
        silence = self._clock() - self._turned
        if silence <= _SILENCE_SECONDS or self._notices.refitting:
            return None
        return f"the daemon has made no progress for {silence:.0f} s"

    def refresh(self, exact: bool = False) -> View:
        """Make a new view, and show it; `exact` is one whose costly figures, too, are those of now."""
        now = self._refreshed = self._clock()
        processor = self._processor
        model, calibration = processor.learner.model, processor.calibration
        self.view = View(
            account=processor.counts.to_json(),
            taken=processor.counts.consumed - self._before,
            seconds=now - self._start,
            rate=self._rate(now),
            offset=self._offset,
            targets=processor.quality.overall_of_targets(),
            rolling_targets=processor.quality.rolling_of_targets(),
            window=processor.quality.window,
            experts=experts_of(model),
            inputs=important_inputs(model, exact),
            changes=changes_of(model),
            check_margin=check_margin_of(model),
            calibration_error=calibration.value() if isinstance(calibration, CalibrationError) else math.nan,
            interval_coverage=calibration.value() if isinstance(calibration, IntervalCoverage) else math.nan,
            loop_seconds=dict(self.times.seconds),
            slowest_record=self.times.slowest(),
            last_record=self._last_record,
            memory=self._measured(),
            labels=processor.stage.to_json(),
            checkpoint=self._checkpoint(),
            models=views_of_models(processor),
            **figures_of(Scores(processor.quality, processor.loss), model),
        )
        self._show(self.view)
        if self._exporter is not None:
            self._exporter.refresh(self.view)
        return self.view

    def _rate(self, now: float) -> float:
        """Return the records a second since the first batch was learned, NaN before the second one."""
        began, before = self._first or (now, 0)
        n_records = self._processor.counts.consumed - before
        return n_records / (now - began) if n_records and now > began else math.nan

    def _measured(self) -> int:
        """Return the size of the models, measured again when it is time."""
        now = self._clock()
        if self._exporter is not None and now >= self._measure_at:
            self._memory = sum(model._raw_memory_usage for model in self._processor.models)
            self._measure_at = now + _MEMORY_PAUSE * (self._clock() - now)
        return self._memory
