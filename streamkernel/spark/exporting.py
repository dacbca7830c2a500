"""The metrics of a job: the daemon's, by the tallies of micro-batches."""

from __future__ import annotations

import logging
import math
import time

from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.monitoring.view import View, check_margin_of, growth_of
from streamkernel.daemon.run_state.schedule import SavedCheckpoint
from streamkernel.daemon.stream.processor import Processor
from streamkernel.daemon.stream.record_batch import RecordBatch
from streamkernel.spark.partials import Partials
from streamkernel.spark.score_sums import ScoreSums

__all__ = ["JobMonitor"]

_log = logging.getLogger(__name__)


class JobMonitor:
    """Keeps the metrics of a job current, by the names that the daemon's have.

    The rolling metrics and the progressive loss are those of the last micro-batch that had labels.

    Parameters
    ----------
    plan
        The configuration.
    processor
        The model and the counts.
    exporter
        The metrics; None where they are not served.

    """

    def __init__(self, plan: Plan, processor: Processor, exporter: Exporter | None) -> None:
        self._plan = plan
        self._processor = processor
        self._exporter = exporter
        self._before = processor.counts.consumed
        self._total = self._last = ScoreSums()
        self._checkpoint = "none yet"
        self._last_record = math.nan
        self.clock = time.monotonic
        self._start = self.clock()
        self.view = View()
        self.refresh()

    def learned(self, done: RecordBatch, partials: Partials) -> None:
        """Note a micro-batch: its counts and dead letters, and its sums."""
        sums = partials.sums
        self._total = ScoreSums.total([self._total, sums])
        if sums.n_learned:
            self._last = sums
        self._last_record = time.time()
        if self._exporter is not None:
            labeled = done.labeled[""]
            labeled.losses = [sums.mean_loss] * sums.n_losses  # they are only counted
            labeled.n_not_finite = sums.n_not_finite
            self._exporter.chunk(done)
        view = self.refresh()
        _log.info("%s, %s features", view.phrase(), f"{view.growth.get('features', 0):,}")

    def saved(self, saved: SavedCheckpoint) -> None:
        """Note a checkpoint."""
        self._checkpoint = saved.name
        if self._exporter is not None:
            self._exporter.saved(saved, time.time())

    def refresh(self) -> View:
        """Make a new view, and show it."""
        processor, report = self._processor, self._plan.report
        model = processor.learner.model
        self.view = View(
            account=processor.counts.to_json(),
            taken=processor.counts.consumed - self._before,
            seconds=self.clock() - self._start,
            loss=self._last.mean_loss,
            loss_sum=self._total.loss,
            losses_not_finite=self._total.n_not_finite,
            overall={name: self._total.metric(name) for name in report},
            rolling={name: self._last.metric(name) for name in report},
            growth=growth_of(model),
            check_margin=check_margin_of(model),
            checkpoint=self._checkpoint,
            last_record=self._last_record,
            memory=model._raw_memory_usage,
        )
        if self._exporter is not None:
            self._exporter.refresh(self.view)
        return self.view
