"""Learning micro-batches: each is scored, learned as one batch step and stored with its progress, or not at all."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame

from streamkernel.daemon.base import crash
from streamkernel.estimators.growing import KernelMachine, SeveralLearner
from streamkernel.estimators.least_squares import LeastSquaresEstimator
from streamkernel.spark.failures import failure_of
from streamkernel.spark.kafka_options import PredictionTopic
from streamkernel.spark.progress import BatchOrderError, ProgressStore, StreamProgress
from streamkernel.spark.rows import Chunks, SparkRows
from streamkernel.spark.score_sums import ScoreSums

__all__ = ["BatchModel", "BatchReport", "MicroBatches", "check_model"]

#: An estimator that takes batch steps.
BatchModel: TypeAlias = KernelMachine | LeastSquaresEstimator

_log = logging.getLogger(__name__)

#: What a call of Java's says that a stop of the query interrupted.
_STOP = re.compile("InterruptedException|InterruptedIOException|ClosedByInterruptException|part of cancelled job group")
#: The words by which Spark tells a stop from a failure.
_STOPPED = "py4j.protocol.Py4JJavaError: An error occurred while calling a micro-batch: java.lang.InterruptedException"


@dataclass(frozen=True)
class BatchReport:
    """The result of a micro-batch.

    Attributes
    ----------
    batch
        The id of the micro-batch.
    sums
        The predictions of its records, made before it was learned, and their losses.
    seconds
        The duration.
    sent_bytes
        The bytes of the model as sent to the executors.

    """

    batch: int
    sums: ScoreSums
    seconds: float
    sent_bytes: int


def check_model(model: Any) -> None:
    """Raise a TypeError for a class, and a ValueError for a model that takes no batch steps."""
    if isinstance(model, type):
        raise TypeError(f"the model is the class {model.__name__}: pass an instance, {model.__name__}()")
    if issubclass(type(model), SeveralLearner):
        raise ValueError(f"{type(model).__name__} takes no batch steps, because they take one target: learn one target")
    if issubclass(type(model), BatchModel):  # by its type: a pipeline says that it is of the class of its last step
        return
    name = type(model).__name__
    if name.startswith("Adaptive"):
        raise ValueError(
            f"{name} has trees and memories, which are not sums over records: use KernelLeastSquaresClassifier, "
            "KernelLeastSquaresRegressor or a growing kernel machine"
        )
    raise ValueError(
        f"{name} takes no batch steps: use a growing kernel machine, such as KernelClassifier or KernelRegressor, "
        "without a wrapper or a pipeline"
    )


class MicroBatches:
    """The function that a query calls with each of its micro-batches.

    Parameters
    ----------
    model
        The estimator that learns.
    chunks
        Makes chunks of a partition's Arrow batches.
    progress
        What was learned before.
    select
        Makes of a micro-batch the data frame whose partitions `chunks` is given.
    watch
        Called with the report of each micro-batch that was learned.
    predictions
        Where the predictions of each micro-batch are written; None: nowhere.

    Attributes
    ----------
    model
        The estimator that learns.
    failure
        What ended it, with one sentence as its message; None where nothing did.

    """

    def __init__(
        self,
        model: BatchModel,
        chunks: Chunks,
        progress: ProgressStore,
        select: Callable[[DataFrame], DataFrame],
        watch: Callable[[BatchReport], None] = lambda _: None,
        predictions: PredictionTopic | None = None,
    ) -> None:
        self._predictions = predictions
        self.model = model
        self._chunks = chunks
        self._progress = progress
        self._select = select
        self._watch = watch
        self.failure: Exception | None = None

    def __call__(self, df: DataFrame, batch: int) -> None:
        try:
            self._learn(df, batch)
        except BaseException as error:
            self.failure = failure_of(error)
            if isinstance(error, Py4JJavaError):
                # Without Java's stack: Spark's own pattern for the end of a query overflows on a long text.
                raise (InterruptedError(_STOPPED) if _STOP.search(str(error)) else self.failure) from None
            raise

    def _learn(self, df: DataFrame, batch: int) -> None:
        progress, query = self._progress, _query_of(df)
        if progress.is_learned(query, batch):
            _log.info("micro-batch %d of the query %s was learned before", batch, query)
            return
        started = time.perf_counter()
        before = self.model.__getstate__()
        with SparkRows(self._select(df), self.model, self._chunks, self._predictions is not None) as rows:
            try:
                partials = rows.learn()
                if self._predictions is not None:
                    self._predictions.write(rows.lines)
                crash.point("batch-learned")
                progress.enter(StreamProgress(query, batch), self.model, partials)
            except BaseException:  # the query ends, and the next user of the model must not get unsaved learning
                self.model.__setstate__(before)
                raise
        self._watch(BatchReport(batch, partials.sums, time.perf_counter() - started, rows.sent_bytes))


def _query_of(df: DataFrame) -> str:
    """The id of the query that a micro-batch is of; without one, that of another query would be taken for it."""
    query: str | None = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    if not query:
        raise BatchOrderError(
            "Spark does not say which query this micro-batch belongs to, so nothing is learned: unset "
            "PYSPARK_PIN_THREAD if it is false"
        )
    return query
