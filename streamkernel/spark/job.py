"""The Spark job of a configuration: its source as a streaming data frame, learned micro-batch by micro-batch."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from streamkernel.daemon.assembly import parts
from streamkernel.daemon.assembly.connectors import make_sink
from streamkernel.daemon.assembly.processor import make_processor
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
from streamkernel.daemon.stream.sinks import Sinks
from streamkernel.daemon.stream.stop import StopSignals
from streamkernel.spark.configured_progress import ConfiguredProgress
from streamkernel.spark.exporting import JobMonitor
from streamkernel.spark.known_inputs import compared_rows
from streamkernel.spark.learner import MicroBatches
from streamkernel.spark.offsets import NEVER, check_ahead, committed, committed_offsets, topic_facts
from streamkernel.spark.predictions import PredictionTopic
from streamkernel.spark.progress import BatchOrderError, StreamProgress
from streamkernel.spark.running import start_query, stop_query, wait_for
from streamkernel.spark.session import make_session
from streamkernel.spark.sources import StreamSource, first_line, source_of
from streamkernel.spark.unsupported import unsupported

__all__ = ["JobOptions", "run_job"]

_log = logging.getLogger(__name__)

#: Where a topic begins, as Spark's options have it.
_EARLIEST = -2
#: How often a first file is looked for.
WAIT_SECONDS = 1.0


@dataclass(frozen=True)
class JobOptions:
    """How a job is run, in addition to what its configuration says.

    Attributes
    ----------
    location
        Where Spark keeps its offsets and commits; None: in the folder `spark` of the checkpoint directory.
    trigger
        The time from one micro-batch to the next, such as "10 seconds"; None: as fast as they are learned.
    most
        The most messages, or files, of a micro-batch; None: no bound.
    until_end
        Whether the job ends when it has learned what was there at its beginning.
    fresh
        Whether old checkpoints are set aside, and the job starts over.

    """

    location: str | None = None
    trigger: str | None = None
    most: int | None = None
    until_end: bool = False
    fresh: bool = False


def run_job(plan: Plan, options: JobOptions, spark: SparkSession | None = None) -> View:
    """Run a job until a signal comes or, where it is to end, all that was there is learned.

    Parameters
    ----------
    plan
        The configuration.
    options
        How it is run.
    spark
        The session; None: that of this process, made where there is none.

    Returns
    -------
    The job as it ended.

    Raises
    ------
    ConfigError
        The configuration asks for what a Spark job does not do.
    ConnectorError, CheckpointError, DaemonError, OSError
        When something fails; the message is one sentence.

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
        has_positions = isinstance(plan.config.source, KafkaSourceConfig)
        if not has_positions:
            _check_follows(session, location, progress)
        sinks = _dead_letters(plan, start, stack)
        processor = make_processor(plan, start)
        health = Health()
        exporter = _exporter(plan, start, health, stack)
        monitor = JobMonitor(plan, processor, exporter)
        health.summary = lambda: monitor.view.phrase()
        progress_store = ConfiguredProgress(plan, store, start, processor, sinks, progress, has_positions, monitor)
        if not start.resumed:
            progress_store.save(progress)
        if isinstance(plan.config.source, CsvSourceConfig) and not header:
            found = _wait_for_header(session, str(plan.config.source.path), options, stopped)
            if found is None:
                return monitor.refresh()
            header = found
        source = _open(plan, session, start, location, options, header)
        progress_store.header = header.decode()
        model: Any = processor.learner.model
        select = compared_rows(plan, processor, source)
        learn = MicroBatches(model, source.chunks, progress_store, select, predictions=PredictionTopic.of(plan))
        query = start_query(source, learn, location, options.trigger, options.until_end)
        stack.callback(stop_query, session, query, progress_store)
        health.ready = True
        _log.info("learning %s from record %d on", plan.source.describe(), start.counts.consumed + 1)
        wait_for(query, stopped, learn, progress_store)
        if options.until_end and not stopped():
            verify_ending(processor)
        _log.info("%s", monitor.view.phrase())
        return monitor.refresh()


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


def _check_follows(session: SparkSession, location: str, progress: StreamProgress) -> None:
    """Refuse a location that does not continue where the model is: else only new files would show it."""
    query, last = committed(session, location)
    try:
        progress.is_learned(query, last + 1)
    except BatchOrderError as error:
        raise DaemonError(str(error)) from error


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
