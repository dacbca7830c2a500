"""The Spark job of a configuration: its source as a streaming data frame, learned micro-batch by micro-batch."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streamkernel.connectors.memory import MemorySource
from streamkernel.daemon.assembly import parts
from streamkernel.daemon.assembly.connectors import make_sink
from streamkernel.daemon.assembly.processor import compared, make_processor
from streamkernel.daemon.base.errors import DaemonError, UnfitError
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.checkpoints.file import Checkpoint
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.config.kafka import KafkaSourceConfig
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.daemon.config.sources import CsvSourceConfig
from streamkernel.daemon.fresh import set_aside, verify_fresh
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.monitoring.view import View
from streamkernel.daemon.run_state import resume
from streamkernel.daemon.run_state.start import Start
from streamkernel.daemon.stream.ending import verify_ending
from streamkernel.daemon.stream.known_inputs import ENOUGH
from streamkernel.daemon.stream.processor import Processor
from streamkernel.daemon.stream.sinks import Sinks
from streamkernel.daemon.stream.stop import StopSignals
from streamkernel.finite import NotFiniteError
from streamkernel.spark.failures import failure_of
from streamkernel.spark.job_progress import JobMonitor, JobProgress
from streamkernel.spark.kafka_options import PredictionTopic
from streamkernel.spark.learner import MicroBatches
from streamkernel.spark.offsets import NEVER, check_ahead, committed, committed_offsets, topic_facts
from streamkernel.spark.progress import StreamProgress
from streamkernel.spark.query import LearningQuery
from streamkernel.spark.session import make_session, silence
from streamkernel.spark.sources import StreamSource, first_line, source_of
from streamkernel.spark.unsupported import unsupported

__all__ = ["JobOptions", "run_job"]

_log = logging.getLogger(__name__)

#: Where a topic begins, in Spark's options.
_EARLIEST = -2
#: The seconds between two looks for a first file.
WAIT_SECONDS = 1.0
#: How long a stop waits for the current micro-batch, which would come again: less than a supervisor waits.
GRACE_SECONDS = 8.0


@dataclass(frozen=True)
class JobOptions:
    """The options of a job that its configuration does not have.

    Attributes
    ----------
    location
        Where Spark keeps its offsets and commits; None: the folder `spark` of the checkpoint directory.
    trigger
        The time between micro-batches, for example "10 seconds"; None: no pause.
    most
        The most messages, or files, of a micro-batch; None: no bound.
    until_end
        Whether the job ends when it has learned all that existed at its start.
    fresh
        Whether the job sets old checkpoints aside and starts over.

    """

    location: str | None = None
    trigger: str | None = None
    most: int | None = None
    until_end: bool = False
    fresh: bool = False


def run_job(plan: Plan, options: JobOptions, spark: SparkSession | None = None) -> View:
    """Run a job until a signal comes or, with `until_end`, all existing data is learned.

    Parameters
    ----------
    plan
        The configuration.
    options
        How to run it.
    spark
        The session; None: the one of this process, or a new one.

    Returns
    -------
    The job at its end.

    Raises
    ------
    ConfigError
        A Spark job does not support a setting.
    ConnectorError, CheckpointError, DaemonError, OSError
        Something failed; the message is one sentence.

    """
    if problems := unsupported(plan):
        raise ConfigError(*problems)
    with contextlib.ExitStack() as stack:
        stopped = stack.enter_context(StopSignals())
        store = parts.make_store(plan)
        assert store is not None
        store.lock()
        stack.callback(store.close)
        # No URI, in which a space would be %20: Spark takes names as they are.
        location = options.location or f"file://{Path(store.directory, 'spark').absolute()}"
        session = spark or make_session(f"streamkernel {plan.path.stem}")
        if options.fresh:
            _begin_afresh(plan, store, session, options)
        start, progress, header = _resume(plan, store)
        if not isinstance(plan.config.source, KafkaSourceConfig):
            # Else only new files would show that the location does not continue where the model is.
            query_id, last = committed(session, location)
            progress.is_learned(query_id, last + 1)
        sinks = _dead_letters(plan, start, stack)
        processor = make_processor(plan, start)
        health = Health()
        monitor = JobMonitor(plan, processor, _exporter(plan, start, health, stack))
        health.summary = lambda: monitor.view.phrase()
        job_progress = JobProgress(plan, store, start, processor, sinks, progress, monitor)
        if not start.resumed:
            job_progress.save(progress)
        if isinstance(plan.config.source, CsvSourceConfig) and not header:
            found = _wait_for_header(session, str(plan.config.source.path), options, stopped)
            if found is None:
                return monitor.refresh()
            header = found
        source = _open(plan, session, start, location, options, header)
        job_progress.header = header.decode()
        model: Any = processor.learner.model
        select = _compared_rows(plan, processor, start, source)
        learn = MicroBatches(model, source.chunks, job_progress, select, predictions=PredictionTopic.of(plan))
        writer: Any = source.df.writeStream.foreachBatch(learn).option("checkpointLocation", location)
        if options.until_end or options.trigger is not None:
            given = {"availableNow": True} if options.until_end else {"processingTime": options.trigger}
            writer = writer.trigger(**given)
        query = LearningQuery.start(writer, job_progress, learn)
        stack.callback(_stop, session, query, job_progress)
        health.ready = True
        _log.info("learning %s from record %d on", plan.source.describe(), start.counts.consumed + 1)
        _wait_for(query, stopped, job_progress)
        if options.until_end and not stopped():
            verify_ending(processor)
        _log.info("%s", monitor.view.phrase())
        return monitor.refresh()


def _wait_for(query: LearningQuery, stopped: StopSignals, progress: JobProgress) -> None:
    """Wait for the end of a query, or for a signal; raise the error that ended it."""
    try:
        while not query.awaitTermination(1) and not stopped():
            pass
        if stopped() and query.status["isTriggerActive"]:
            progress.wait_for_entry(GRACE_SECONDS)
    except (ValueError, NotFiniteError) as error:
        raise DaemonError(str(error)) from error
    except Exception as error:
        if not stopped():  # the same signal may have come to Java, too
            raise failure_of(error) from error
    if stopped():
        _log.info("%s came", stopped.name)


def _stop(session: SparkSession, query: LearningQuery, progress: JobProgress) -> None:
    """Stop a query, whether or not it has ended; its current micro-batch is not entered any more."""
    progress.close()
    with contextlib.suppress(Exception):
        if query.isActive:
            silence(session)
        query.stop()


def _compared_rows(
    plan: Plan, processor: Processor, start: Start, source: StreamSource
) -> Callable[[DataFrame], DataFrame]:
    """Return what selects the rows of a micro-batch, and compares its first inputs with the model's, as the daemon."""
    compares = True

    def select(df: DataFrame) -> DataFrame:
        nonlocal compares
        rows = source.select(df)
        if compares:
            batches = rows.limit(ENOUGH).toArrow().to_batches()
            records = [record for chunk in source.chunks(batches) for record in chunk.records]
            compares = not records
            compared(plan, MemorySource(records), processor, start).poll(ENOUGH, 0)
        return rows

    return select


def _begin_afresh(plan: Plan, store: CheckpointStore, session: SparkSession, options: JobOptions) -> None:
    """Set aside what is there, once nothing is known that the job would fail with."""
    location = options.location
    if location is not None and committed(session, location) != NEVER:
        raise DaemonError(f"{location} belongs to an earlier query: with --fresh, name a new --checkpoint-location")
    verify_fresh(plan, store)
    path = str(plan.config.source.path) if isinstance(plan.config.source, CsvSourceConfig) else None
    header = None if path is None else first_line(session, path)
    if path is None or header is not None:
        source_of(plan, session, "", {}, options.most, header)
    set_aside(plan, store)
    own = Path(store.directory, "spark")
    if location is None and own.exists():
        number = 0
        while (old := own.with_name(f"spark.old-{number}")).exists():
            number += 1
        os.rename(own, old)


def _resume(plan: Plan, store: CheckpointStore) -> tuple[Start, StreamProgress, bytes]:
    """Continue from the newest checkpoint that can be used, or begin; with the header of CSV files, where known."""

    def use(checkpoint: Checkpoint) -> tuple[Start, StreamProgress, bytes]:
        written = checkpoint.header.get("spark")
        progress = StreamProgress.from_json(written)
        of_files = not isinstance(plan.config.source, KafkaSourceConfig)
        start = resume.restore(plan, checkpoint, by_spark=True)
        if of_files and not progress.query and start.counts.consumed:
            raise UnfitError(
                "the checkpoint is from the daemon, which counts bytes, and Spark counts whole files: set another "
                "checkpoint.directory for the job, with initial_model"
            )
        header = written.get("header") if isinstance(written, dict) else None
        return start, progress, header.encode() if isinstance(header, str) else b""

    return store.restore(use) or (resume.begin(plan), StreamProgress(), b"")


def _dead_letters(plan: Plan, start: Start, stack: contextlib.ExitStack) -> Sinks:
    sink = make_sink(plan.config.dead_letters, "dead_letters")
    sinks = Sinks({"dead_letters": sink}, max_waiting_bytes=plan.config.limits.max_waiting_bytes)
    stack.enter_context(sinks)
    sink.open(start.mark_of("dead_letters", plan.raw.get("dead_letters") or {}))
    return sinks


def _wait_for_header(session: SparkSession, path: str, options: JobOptions, stopped: StopSignals) -> bytes | None:
    """The first line of CSV files, waited for where there is none yet; None where the job is over before."""
    waited = False
    while (header := first_line(session, path)) is None:
        if options.until_end or stopped():
            _log.info("the files at %s have no lines", path)
            return None
        if not waited:
            _log.info("waiting for the first file at %s, with the column names", path)
            waited = True
        time.sleep(WAIT_SECONDS)
    return header


def _open(
    plan: Plan, spark: SparkSession, start: Start, location: str, options: JobOptions, header: bytes
) -> StreamSource:
    source = plan.config.source
    if not isinstance(source, KafkaSourceConfig):
        return source_of(plan, spark, "", {}, options.most, header)
    stream, partitions = topic_facts(source)
    others = {place.stream for place in start.positions.values()} - {stream}
    if others:
        raise UnfitError(
            f"the checkpoint is from the topic {min(others)}, and this is {stream}: set another checkpoint.directory "
            "for the job, with initial_model to continue with the model alone"
        )
    positions = {partition: place.offset for partition, place in start.positions.items()}
    check_ahead(committed_offsets(spark, location, source.topic), positions, str(plan.config.checkpoint.directory))  # type: ignore[union-attr]
    if source.partitions != "all":
        partitions = frozenset(source.partitions)
    begins = {one: positions.get(one, _EARLIEST) for one in partitions} if positions else {}
    return source_of(plan, spark, stream, begins, options.most)


def _exporter(plan: Plan, start: Start, health: Health, stack: contextlib.ExitStack) -> Exporter | None:
    if plan.config.metrics is None:
        return None
    exporter = Exporter(start.models.main.model, plan.report, plan.config.metrics.window)
    parts.serve(plan, exporter, health, stack)
    return exporter
