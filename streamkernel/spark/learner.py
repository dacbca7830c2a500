"""Learning micro-batches: each is scored, learnt as one batch step and entered into the books, or none of it is."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from streamkernel.batch.growing import learn_batch
from streamkernel.estimators.base import StreamEstimator
from streamkernel.estimators.growing import KernelMachine
from streamkernel.spark.books import Books
from streamkernel.spark.progress import StreamProgress
from streamkernel.spark.rows import Chunks, SparkRows
from streamkernel.spark.tally import Tally

__all__ = ["BatchReport", "MicroBatches", "check_model", "learn_rows"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BatchReport:
    """What became of a micro-batch.

    Attributes
    ----------
    batch
        Its id.
    tally
        What was predicted of its records before they were learnt, and the losses they had.
    seconds
        How long it took.
    sent_bytes
        The bytes of the model as it was sent to the executors.

    """

    batch: int
    tally: Tally
    seconds: float
    sent_bytes: int


def check_model(model: Any) -> None:
    """Refuse a model that takes no batch steps.

    Raises
    ------
    ValueError
        Saying which model does.

    """
    if isinstance(model, StreamEstimator) and hasattr(model, "batch_step"):
        return
    name = type(model).__name__
    if name.startswith("Adaptive"):
        raise ValueError(
            f"{name} has trees and memories, which are no sums over records: give a KernelLeastSquaresClassifier or "
            "KernelLeastSquaresRegressor, or a growing kernel machine"
        )
    raise ValueError(
        f"{name} takes no batch steps: give a growing kernel machine, as KernelClassifier and KernelRegressor are, "
        "without a wrapper or a pipeline around it"
    )


def learn_rows(model: KernelMachine, rows: SparkRows) -> Tally:
    """Take a batch step on the rows of a data frame; where it fails the model is as it was.

    Raises
    ------
    ValueError
        A row cannot be used.
    NotFiniteError
        Kernel, loss, step schedule or policy gave what is not finite.

    """
    before = model.__getstate__()
    try:
        learn_batch(model._machine, rows)
    except BaseException:
        model.__setstate__(before)
        raise
    finally:
        rows.forget()
    assert rows.tally is not None
    return rows.tally


class MicroBatches:
    """The function that a query calls with each of its micro-batches.

    Parameters
    ----------
    model
        The estimator that learns.
    chunks
        Makes chunks of a partition's Arrow batches.
    books
        What was learnt before.
    select
        Makes of a micro-batch the data frame whose partitions `chunks` is given.
    watch
        Called with the report of each micro-batch that was learnt.

    """

    def __init__(
        self,
        model: KernelMachine,
        chunks: Chunks,
        books: Books,
        select: Callable[[DataFrame], DataFrame],
        watch: Callable[[BatchReport], None] = lambda _: None,
    ) -> None:
        self._model = model
        self._chunks = chunks
        self._books = books
        self._select = select
        self._watch = watch

    def __call__(self, df: DataFrame, batch: int) -> None:
        books, query = self._books, _query_of(df)
        if books.progress.is_learnt(query, batch, books.has_positions):
            _log.info("micro-batch %d of the query %s was learnt before", batch, query)
            return
        started = time.perf_counter()
        before = self._model.__getstate__()
        rows = SparkRows(self._select(df), self._model, self._chunks)
        tally = learn_rows(self._model, rows)
        try:
            books.enter(StreamProgress(query, batch), self._model, tally)
        except BaseException:  # the query ends, and whoever goes on with the model must not have what is not saved
            self._model.__setstate__(before)
            raise
        self._watch(BatchReport(batch, tally, time.perf_counter() - started, rows.sent_bytes))


def _query_of(df: DataFrame) -> str:
    """The id of the query that a micro-batch is of."""
    return df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId") or "none"
