"""The progress of a job that a configuration describes: the daemon may continue from its checkpoints."""

from __future__ import annotations

import threading

from streamkernel.connectors.ports import Fault
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.run_state.header import take_snapshot
from streamkernel.daemon.run_state.schedule import SavedCheckpoint
from streamkernel.daemon.run_state.start import Start
from streamkernel.daemon.stream.ending import TooManyDeadLettersError
from streamkernel.daemon.stream.processor import Processor
from streamkernel.daemon.stream.record_batch import RecordBatch
from streamkernel.daemon.stream.sinks import Sinks
from streamkernel.estimators.base import StreamEstimator
from streamkernel.spark.exporting import JobMonitor
from streamkernel.spark.partials import Partials
from streamkernel.spark.progress import StreamProgress

__all__ = ["ConfiguredProgress"]


class ConfiguredProgress:
    """ProgressStore in the checkpoint directory of a configuration.

    Parameters
    ----------
    plan
        The configuration.
    store
        The locked directory.
    start
        What the job starts from; its positions are kept up to date.
    processor
        The model and the counts.
    sinks
        The open output of dead letters.
    progress
        The last micro-batch that was learned.
    has_positions
        Whether positions tell which records were learned.
    monitor
        Shows what became of each micro-batch.

    Attributes
    ----------
    header
        The first line of CSV files, which later ones must have, too; empty where it is not known, or of other sources.

    """

    def __init__(
        self,
        plan: Plan,
        store: CheckpointStore,
        start: Start,
        processor: Processor,
        sinks: Sinks,
        progress: StreamProgress,
        has_positions: bool,
        monitor: JobMonitor,
    ) -> None:
        self._plan = plan
        self._store = store
        self._start = start
        self._processor = processor
        self._sinks = sinks
        self._monitor = monitor
        self.progress = progress
        self._has_positions = has_positions
        self._entry = threading.Condition()
        self._closed = False
        self.header = ""

    def is_learned(self, query: str, batch: int) -> bool:
        return self.progress.is_learned(query, batch, self._has_positions)

    def enter(self, progress: StreamProgress, model: StreamEstimator, partials: Partials) -> None:  # noqa: ARG002 - the processor has it
        with self._entry:
            if self._closed:
                raise DaemonError("the job has stopped, and another process may use its checkpoints now")
            self._enter(progress, partials)
            self._entry.notify_all()

    def wait_for_entry(self, seconds: float) -> None:
        """Wait until one more micro-batch is entered, but no longer than some seconds."""
        with self._entry:
            self._entry.wait(seconds)

    def _enter(self, progress: StreamProgress, partials: Partials) -> None:
        processor, sums = self._processor, partials.sums
        done = RecordBatch()
        done.counts.consumed = sums.n + partials.n_skipped
        done.counts.predicted, done.counts.learned = sums.n, sums.n_learned
        done.counts.skipped = partials.n_skipped
        n_dead = len(partials.dead)
        done.counts.consumed += n_dead
        # Where among the others they were is not known: as if they came at equal distances.
        for number, row in enumerate(partials.dead, 1):
            # A place in a file is not known, only the file.
            detail = row.detail if self._has_positions else f"{row.detail}, in {row.position.stream}"
            done.add_dead_letter(row.record, Fault(row.reason, detail), number * done.counts.consumed // n_dead)
        processor.close(done)
        if processor.overrun:
            raise TooManyDeadLettersError(
                f"{n_dead:,} of the {done.counts.consumed:,} records of micro-batch "
                f"{progress.batch} are dead letters, more than dead_letters.max_rate allows: the source does not "
                "match the configuration"
            )
        self._sinks.write({"dead_letters": done.letters}, {"dead_letters": done.letter_origins})
        self._start.positions.update(partials.ends)
        self.save(progress)
        self._monitor.learned(done, partials)

    def save(self, progress: StreamProgress) -> None:
        """Write a checkpoint of the model as it is, with the last micro-batch that it learned."""
        started = self._monitor.clock()
        self._start.marks = self._sinks.flush()
        about, payload = take_snapshot(self._start, self._plan, self._processor)
        if progress.query:
            about["spark"] = {**progress.to_json(), **({"header": self.header} if self.header else {})}
        path = self._store.write(about, payload)
        self._sinks.commit()
        self.progress = progress
        self._monitor.saved(
            SavedCheckpoint(path.name, path.stat().st_size, self._monitor.clock() - started, self._processor.taken)
        )

    def close(self) -> None:
        """Enter nothing more. What is open belongs to the job."""
        with self._entry:
            self._closed = True
