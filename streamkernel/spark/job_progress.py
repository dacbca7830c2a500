"""The progress of a job: its checkpoints, dead letters and metrics, which the daemon's components write."""

from __future__ import annotations

import logging
import math
import threading
import time
from dataclasses import asdict

from streamkernel.connectors.ports import Fault
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.config.kafka import KafkaSourceConfig
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.monitoring.view import View, check_margin_of, growth_of
from streamkernel.daemon.run_state.header import take_snapshot
from streamkernel.daemon.run_state.schedule import SavedCheckpoint
from streamkernel.daemon.run_state.start import Start
from streamkernel.daemon.stream.ending import TooManyDeadLettersError
from streamkernel.daemon.stream.processor import Processor
from streamkernel.daemon.stream.record_batch import RecordBatch
from streamkernel.daemon.stream.sinks import Sinks
from streamkernel.estimators.base import StreamEstimator
from streamkernel.spark.partials import Partials
from streamkernel.spark.progress import StreamProgress
from streamkernel.spark.score_sums import ScoreSums

__all__ = ["JobMonitor", "JobProgress"]

_log = logging.getLogger(__name__)


class JobMonitor:
    """Keeps the daemon's metrics of a job current.

    The rolling metrics and the progressive loss are those of the last micro-batch with labels.

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
        self._report = plan.report
        self._processor = processor
        self._exporter = exporter
        self._before = processor.counts.consumed
        self._total = self._last = ScoreSums()
        self._checkpoint = "none yet"
        self._last_record = math.nan
        self._start = time.monotonic()
        self.view = self.refresh()

    def learned(self, done: RecordBatch, sums: ScoreSums) -> None:
        """Note the counts, dead letters and sums of a micro-batch."""
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
        """Return a new view, and show it."""
        model, counts = self._processor.learner.model, self._processor.counts
        self.view = View(
            account=counts.to_json(),
            taken=counts.consumed - self._before,
            seconds=time.monotonic() - self._start,
            loss=self._last.mean_loss,
            loss_sum=self._total.loss,
            losses_not_finite=self._total.n_not_finite,
            overall={name: self._total.metric(name) for name in self._report},
            rolling={name: self._last.metric(name) for name in self._report},
            growth=growth_of(model),
            check_margin=check_margin_of(model),
            checkpoint=self._checkpoint,
            last_record=self._last_record,
            memory=model._raw_memory_usage,
        )
        if self._exporter is not None:
            self._exporter.refresh(self.view)
        return self.view


class JobProgress:
    """A ProgressStore in the checkpoint directory of a configuration: the daemon may continue from it.

    Parameters
    ----------
    plan
        The configuration.
    store
        The locked directory.
    start
        What the job starts from; its positions are kept current.
    processor
        The model and the counts.
    sinks
        The open output of dead letters.
    progress
        The last learned micro-batch.
    monitor
        Shows each micro-batch.

    Attributes
    ----------
    header
        The first line of CSV files, which all of them have; empty where it is unknown, and for other sources.

    """

    def __init__(
        self,
        plan: Plan,
        store: CheckpointStore,
        start: Start,
        processor: Processor,
        sinks: Sinks,
        progress: StreamProgress,
        monitor: JobMonitor,
    ) -> None:
        self._plan = plan
        self._store = store
        self._start = start
        self._processor = processor
        self._sinks = sinks
        self._monitor = monitor
        self.progress = progress
        # They say which records were learned, whatever the query.
        self._has_positions = isinstance(plan.config.source, KafkaSourceConfig)
        self._entry = threading.Condition()
        self._closed = False
        self.header = ""

    def is_learned(self, query: str, batch: int) -> bool:
        return self.progress.is_learned(query, batch, self._has_positions)

    def enter(self, progress: StreamProgress, model: StreamEstimator, partials: Partials) -> None:  # noqa: ARG002 - the processor has it
        with self._entry:
            if self._closed:
                raise DaemonError("the job has stopped, and another process may use its checkpoints now")
            done = self._settled(partials)
            if self._processor.overrun:
                raise TooManyDeadLettersError(
                    f"{len(partials.dead):,} of the {done.counts.consumed:,} records of micro-batch {progress.batch} "
                    "are dead letters, more than dead_letters.max_rate allows: the source does not match the "
                    "configuration"
                )
            self._sinks.write({"dead_letters": done.letters}, {"dead_letters": done.letter_origins})
            self._start.positions.update(partials.ends)
            self.save(progress)
            self._monitor.learned(done, partials.sums)
            self._entry.notify_all()

    def wait_for_entry(self, seconds: float) -> None:
        """Wait for the next entry, at most some seconds."""
        with self._entry:
            self._entry.wait(seconds)

    def _settled(self, partials: Partials) -> RecordBatch:
        """Return what the daemon counts of a micro-batch."""
        sums, n_dead, done = partials.sums, len(partials.dead), RecordBatch()
        done.counts.consumed = sums.n + partials.n_skipped + n_dead
        done.counts.predicted, done.counts.learned = sums.n, sums.n_learned
        done.counts.skipped = partials.n_skipped
        # Their place among the other records is unknown: as if they came at equal distances.
        for number, record in enumerate(partials.dead, 1):
            assert record.fault is not None
            # A place in a file is unknown, only the file.
            place = "" if self._has_positions else f", in {record.position.stream}"
            fault = Fault(record.fault.reason, f"{record.fault.detail}{place}")
            done.add_dead_letter(record, fault, number * done.counts.consumed // n_dead)
        self._processor.close(done)
        return done

    def save(self, progress: StreamProgress) -> None:
        """Write a checkpoint of the model as it is, with the last micro-batch that it learned."""
        started = time.monotonic()
        self._start.marks = self._sinks.flush()
        about, payload = take_snapshot(self._start, self._plan, self._processor)
        if progress.query:
            about["spark"] = {**asdict(progress), **({"header": self.header} if self.header else {})}
        path = self._store.write(about, payload)
        self._sinks.commit()
        self.progress = progress
        seconds = time.monotonic() - started
        self._monitor.saved(SavedCheckpoint(path.name, path.stat().st_size, seconds, self._processor.taken))

    def close(self) -> None:
        """Refuse further entries. The job owns what is open."""
        with self._entry:
            self._closed = True
