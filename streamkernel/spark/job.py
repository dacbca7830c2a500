"""The Spark job of a configuration: its source as a streaming data frame, learnt micro-batch by micro-batch."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from streamkernel.daemon.base.errors import DaemonError, UnfitError
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.checkpoints.file import Checkpoint
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.config.kafka import KafkaSourceConfig
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.daemon.fresh import set_aside
from streamkernel.daemon.monitoring.exporter.exporter import Exporter
from streamkernel.daemon.monitoring.view import View
from streamkernel.daemon.recovery import resume
from streamkernel.daemon.recovery.resume import Start
from streamkernel.daemon.stream.sinks import Sinks
from streamkernel.daemon.stream.stop import StopSignals
from streamkernel.daemon.wiring import parts
from streamkernel.daemon.wiring.connectors import make_sink
from streamkernel.daemon.wiring.processor import make_processor
from streamkernel.spark.exporting import JobMonitor
from streamkernel.spark.learner import MicroBatches
from streamkernel.spark.offsets import check_ahead, committed_offsets, is_new, topic_facts
from streamkernel.spark.plan_books import PlanBooks
from streamkernel.spark.predictions import PredictionTopic
from streamkernel.spark.progress import BatchOrderError, StreamProgress
from streamkernel.spark.sources import StreamSource, source_of
from streamkernel.spark.unsupported import unsupported

__all__ = ["JobOptions", "run_job"]

_log = logging.getLogger(__name__)

#: Where a topic begins, as Spark's options have it.
_EARLIEST = -2


@dataclass(frozen=True)
class JobOptions:
    """How a job is run, beside what its configuration says.

    Attributes
    ----------
    location
        Where Spark keeps its offsets and commits; None: in the folder `spark` of the checkpoint directory.
    trigger
        The time from one micro-batch to the next, such as "10 seconds"; None: as fast as they are learnt.
    most
        The most messages, or files, of a micro-batch; None: no bound.
    until_end
        Whether the job ends when it has learnt what was there at its beginning.
    fresh
        Whether old checkpoints are set aside, and the job begins anew.

    """

    location: str | None = None
    trigger: str | None = None
    most: int | None = None
    until_end: bool = False
    fresh: bool = False


def run_job(plan: Plan, options: JobOptions, spark: SparkSession | None = None) -> View:
    """Run a job until a signal comes or, where it is to end, all that was there is learnt.

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
        raise ConfigError(problems)
    with contextlib.ExitStack() as stack:
        stopped = stack.enter_context(StopSignals())
        store = parts.make_store(plan)
        assert store is not None
        store.lock()
        stack.callback(store.close)
        location = options.location or Path(store.directory, "spark").absolute().as_uri()
        if options.fresh:
            _begin_afresh(plan, store, options)
        start, progress = _resume(plan, store)
        sinks = _dead_letters(plan, start, stack)
        session = spark or _session(plan)
        if options.fresh and not is_new(session, location):
            raise DaemonError(f"{location} is that of an earlier query: with --fresh, give a new --checkpoint-location")
        source = _open(plan, session, start, location, options)
        processor = make_processor(plan, start)
        health = Health()
        exporter = _exporter(plan, start, health, stack)
        monitor = JobMonitor(plan, processor, exporter)
        health.summary = lambda: monitor.view.phrase()
        has_positions = isinstance(plan.config.source, KafkaSourceConfig)
        books = PlanBooks(plan, store, start, processor, sinks, progress, has_positions, monitor)
        if not start.resumed:
            books.save(progress)
        model: Any = processor.learner.model
        learn = MicroBatches(model, source.chunks, books, source.select, predictions=PredictionTopic.of(plan))
        query = _start(source, learn, location, options)
        stack.callback(query.stop)
        health.ready = True
        _log.info("learning %s from record %d on", plan.source.describe(), start.counts.consumed + 1)
        _wait(query, stopped, learn)
        _log.info("%s", monitor.view.phrase())
        return monitor.refresh()


def _begin_afresh(plan: Plan, store: CheckpointStore, options: JobOptions) -> None:
    set_aside(plan, store)
    own = Path(store.directory, "spark")
    if options.location is None and own.exists():
        number = 0
        while (old := own.with_name(f"spark.old-{number}")).exists():
            number += 1
        os.rename(own, old)


def _resume(plan: Plan, store: CheckpointStore) -> tuple[Start, StreamProgress]:
    """Go on from the newest checkpoint that can be used, or begin."""

    def use(checkpoint: Checkpoint) -> tuple[Start, StreamProgress]:
        progress = StreamProgress.from_json(checkpoint.header.get("spark"))
        of_files = not isinstance(plan.config.source, KafkaSourceConfig)
        start = resume.restore(plan, checkpoint, by_spark=True)
        if of_files and not progress.query and start.counts.consumed:
            raise UnfitError(
                "the checkpoint is that of the daemon, which reads files by their bytes, and Spark reads them whole: "
                "give the job a checkpoint.directory of its own, with initial_model"
            )
        return start, progress

    return store.restore(use) or (resume.begin(plan), StreamProgress())


def _dead_letters(plan: Plan, start: Start, stack: contextlib.ExitStack) -> Sinks:
    sink = make_sink(plan.config.dead_letters, "dead_letters")
    sinks = Sinks({"dead_letters": sink}, max_waiting_bytes=plan.config.limits.max_waiting_bytes)
    stack.callback(sinks.close)
    sink.open(start.mark_of("dead_letters", plan.raw.get("dead_letters") or {}))
    return sinks


def _session(plan: Plan) -> SparkSession:
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # not by spark-submit, which knows the executors' interpreter
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    builder = SparkSession.builder.appName(f"streamkernel {plan.path.stem}")
    # Of what options say, Spark shows all whose name does not look like a secret.
    secrets = "(?i)secret|password|token|access[.]?key|jaas|keystore"
    try:
        return builder.config("spark.redaction.regex", secrets).getOrCreate()
    except PySparkRuntimeError as error:
        raise DaemonError(
            f"Spark cannot be started; it needs Java 17 or newer: {str(error).splitlines()[0]}"
        ) from error


def _open(plan: Plan, spark: SparkSession, start: Start, location: str, options: JobOptions) -> StreamSource:
    source = plan.config.source
    if not isinstance(source, KafkaSourceConfig):
        return source_of(plan, spark, "", {}, options.most)
    stream, partitions = topic_facts(source)
    others = {place.stream for place in start.positions.values()} - {stream}
    if others:
        raise UnfitError(
            f"the checkpoint is that of the topic {min(others)}, and this is {stream}: give the job another "
            "checkpoint.directory, with initial_model to go on with the model alone"
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
    exporter = Exporter(start.model, plan.report, plan.config.metrics.window)
    parts.serve(plan, exporter, health, False, stack)
    return exporter


def _start(source: StreamSource, learn: MicroBatches, location: str, options: JobOptions) -> StreamingQuery:
    writer: Any = source.df.writeStream.foreachBatch(learn).option("checkpointLocation", location)
    try:
        if options.until_end:
            writer = writer.trigger(availableNow=True)
        elif options.trigger is not None:
            writer = writer.trigger(processingTime=options.trigger)
        query: StreamingQuery = writer.start()
    except PySparkException as error:
        raise DaemonError(f"the query cannot be started: {str(error).splitlines()[0]}") from error
    return query


def _wait(query: StreamingQuery, stopped: StopSignals, learn: MicroBatches) -> None:
    """Wait for the end of a query, or for a signal to end it.

    Raises
    ------
    Exception
        What ended it.

    """
    try:
        while not query.awaitTermination(1):
            if stopped():
                query.stop()
                _log.info("%s came", stopped.name)
                return
    except Exception as error:
        if isinstance(learn.failure, ValueError | BatchOrderError):
            raise DaemonError(str(learn.failure)) from learn.failure
        if learn.failure is not None:
            raise learn.failure from None
        raise DaemonError(f"the query ended: {str(error).splitlines()[0]}") from error
