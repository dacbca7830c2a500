"""The query of a job while it runs: its start, the wait for its end, and how it is stopped."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.stream.stop import StopSignals
from streamkernel.finite import NotFiniteError
from streamkernel.spark.configured_progress import ConfiguredProgress
from streamkernel.spark.failures import SparkJobError, failure_of
from streamkernel.spark.learner import MicroBatches
from streamkernel.spark.progress import BatchOrderError
from streamkernel.spark.session import silence
from streamkernel.spark.sources import StreamSource

__all__ = ["job_failure", "start_query", "stop_query", "wait_for"]

_log = logging.getLogger(__name__)

#: How long a stop waits for the micro-batch in work, which would be learned again: less than a supervisor waits.
GRACE_SECONDS = 8.0
#: What Java that has ended is known by.
_GONE = (Py4JNetworkError, ConnectionError, EOFError)


def start_query(
    source: StreamSource, learn: MicroBatches, location: str, trigger: str | None, until_end: bool
) -> StreamingQuery:
    """Start the query that learns a source.

    Raises
    ------
    DaemonError
        Spark refuses it.

    """
    writer: Any = source.df.writeStream.foreachBatch(learn).option("checkpointLocation", location)
    try:
        if until_end:
            writer = writer.trigger(availableNow=True)
        elif trigger is not None:
            writer = writer.trigger(processingTime=trigger)
        query: StreamingQuery = writer.start()
    except (PySparkException, Py4JError) as error:
        raise DaemonError(f"the query cannot be started with {location}: {failure_of(error)}") from error
    return query


def wait_for(query: StreamingQuery, stopped: StopSignals, learn: MicroBatches, progress: ConfiguredProgress) -> None:
    """Wait for the end of a query, or for a signal to end it.

    Raises
    ------
    Exception
        What ended it.

    """
    try:
        while not query.awaitTermination(1):
            if stopped():
                if query.status["isTriggerActive"]:
                    progress.wait_for_entry(GRACE_SECONDS)
                break
    except Exception as error:
        if stopped():  # the same signal may have come to Java, too
            _log.info("%s came", stopped.name)
            return
        if isinstance(error, _GONE):
            raise DaemonError(
                "Spark's Java process has ended: killed, or out of memory (spark.driver.memory). Start the job again: "
                "it continues after its last checkpoint"
            ) from error
        raise job_failure(learn.failure or error) from error
    if stopped():
        _log.info("%s came", stopped.name)


def job_failure(error: BaseException) -> Exception:
    """What ends a job, as an exception whose message is one sentence for the user."""
    failure = failure_of(error)
    ours = (ValueError, NotFiniteError, BatchOrderError, SparkJobError)
    return DaemonError(str(failure)) if isinstance(failure, ours) else failure


def stop_query(session: SparkSession, query: StreamingQuery, progress: ConfiguredProgress) -> None:
    """Stop a query, whether or not it has ended; what it is learning is not entered any more."""
    progress.close()
    with contextlib.suppress(Py4JError, PySparkException, *_GONE):
        if query.isActive:
            silence(session)
        query.stop()
