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
from streamkernel.estimators.batch_step import take_batch_step
from streamkernel.estimators.growing import KernelMachine
from streamkernel.estimators.least_squares import LeastSquaresEstimator
from streamkernel.estimators.several_learner import SeveralLearner
from streamkernel.spark.failures import failure_of
from streamkernel.spark.partials import Partials
from streamkernel.spark.predictions import PredictionTopic
from streamkernel.spark.progress import BatchOrderError, StreamProgress
from streamkernel.spark.progress_store import ProgressStore
from streamkernel.spark.rows import Chunks, SparkRows
from streamkernel.spark.score_sums import ScoreSums

__all__ = ["BatchModel", "BatchReport", "MicroBatches", "check_model", "learn_rows"]

#: An estimator that takes batch steps.
BatchModel: TypeAlias = KernelMachine | LeastSquaresEstimator

_log = logging.getLogger(__name__)

#: What a call of Java's says that a stop of the query interrupted.
_STOP = re.compile("InterruptedException|InterruptedIOException|ClosedByInterruptException|part of cancelled job group")
#: The words by which Spark tells a stop from a failure.
_STOPPED = "py4j.protocol.Py4JJavaError: An error occurred while calling a micro-batch: java.lang.InterruptedException"


@dataclass(frozen=True)
class BatchReport:
    """What became of a micro-batch.

    Attributes
    ----------
    batch
        The id of the micro-batch.
    sums
        What was predicted of its records before they were learned, and the losses they had.
    seconds
        How long it took.
    sent_bytes
        The bytes of the model as it was sent to the executors.

    """

    batch: int
    sums: ScoreSums
    seconds: float
    sent_bytes: int


def check_model(model: Any) -> None:
    """Refuse a model that takes no batch steps.

    Raises
    ------
    TypeError
        It is a class.
    ValueError
        Saying which model does.

    """
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


def learn_rows(model: BatchModel, rows: SparkRows) -> Partials:
    """Take a batch step on the rows of a data frame; where it fails the model is as it was.

    Raises
    ------
    Exception
        What `failure_of` makes a sentence of.

    """
    take_batch_step(model, rows)
    assert rows.partials is not None
    return rows.partials


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
        except Py4JJavaError as error:
            self.failure = failure_of(error)
            raise _short(error, self.failure) from None
        except BaseException as error:
            self.failure = failure_of(error)
            raise

    def _learn(self, df: DataFrame, batch: int) -> None:
        progress, query = self._progress, _query_of(df)
        if progress.is_learned(query, batch):
            _log.info("micro-batch %d of the query %s was learned before", batch, query)
            return
        started = time.perf_counter()
        before = self.model.__getstate__()
        rows = SparkRows(self._select(df), self.model, self._chunks, self._predictions is not None)
        try:
            partials = learn_rows(self.model, rows)
            if self._predictions is not None:
                self._predictions.write(rows.lines)
            crash.point("batch-learned")
            progress.enter(StreamProgress(query, batch), self.model, partials)
        except BaseException:  # the query ends, and the next user of the model must not have what is not saved
            self.model.__setstate__(before)
            raise
        finally:
            rows.forget()
        self._watch(BatchReport(batch, partials.sums, time.perf_counter() - started, rows.sent_bytes))


def _short(error: Py4JJavaError, failure: Exception) -> Exception:
    """What Java raised, without its stack: Spark's own pattern for the end of a query overflows on a long text."""
    if _STOP.search(str(error)):
        return InterruptedError(_STOPPED)
    return failure


def _query_of(df: DataFrame) -> str:
    """The id of the query that a micro-batch is of; without one, that of another query would be taken for it."""
    query: str | None = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    if not query:
        raise BatchOrderError(
            "Spark does not say which query this micro-batch belongs to, so nothing is learned: unset "
            "PYSPARK_PIN_THREAD if it is false"
        )
    return query
