"""Learning data frames: one as a batch step, a streaming one micro-batch by micro-batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from streamkernel.estimators.novelty import KernelNoveltyDetector
from streamkernel.spark.books import Books, CheckpointBooks, MemoryBooks
from streamkernel.spark.failures import failure_of
from streamkernel.spark.frames import ColumnRoles, roles_of
from streamkernel.spark.learner import BatchModel, BatchReport, MicroBatches, check_model, learn_rows
from streamkernel.spark.partials import SourceChunk
from streamkernel.spark.query import LearningQuery
from streamkernel.spark.rows import SparkRows
from streamkernel.spark.tally import Tally

__all__ = ["learn_batch_of", "learn_stream"]


def learn_batch_of(
    df: DataFrame,
    model: BatchModel,
    target: str | None = None,
    *,
    weight: str | None = None,
    inputs: Iterable[str] | None = None,
) -> Tally:
    """Take one batch step on the rows of a data frame, which stay on the executors.

    The model comes to what its `batch_step` on the same rows comes to, but for the rounding of sums, however the rows
    are partitioned.

    Parameters
    ----------
    df
        A data frame that is no stream.
    model
        A growing estimator or one of least squares, on the driver.
    target
        The column of the target; null is predicted only. None (the default) is for novelty detection.
    weight
        The column of the weight. None (the default): each is 1.
    inputs
        The columns of the inputs. None (the default): all others of numbers, booleans and strings.

    Returns
    -------
    What was predicted of the rows before the step, as counts and sums.

    Raises
    ------
    ValueError
        A column is missing or no input, the model takes no batch steps, or a row cannot be used; nothing is learnt.
    NotFiniteError
        Kernel, loss, step schedule or policy gave what is not finite; nothing is learnt.

    """
    roles, chunks = _prepare(df, model, target, weight, inputs)
    try:
        rows = SparkRows(df.select(*roles.names), model, chunks)
        try:
            return learn_rows(model, rows).tally
        finally:
            rows.forget()
    except (PySparkException, Py4JError) as error:
        raise failure_of(error) from error


def learn_stream(
    df: DataFrame,
    model: BatchModel,
    target: str | None = None,
    *,
    checkpoint_location: str | PathLike[str],
    checkpoint: str | PathLike[str] | None = None,
    weight: str | None = None,
    inputs: Iterable[str] | None = None,
    trigger: dict[str, Any] | None = None,
    query_name: str | None = None,
    watch: Callable[[BatchReport], None] = lambda _: None,
) -> LearningQuery:
    """Start a query that learns a streaming data frame, a batch step for each of its micro-batches.

    Each micro-batch is learnt once: the model's checkpoint says which one it learnt last, and one that Spark repeats
    is passed over. Without a checkpoint that holds for the life of the process alone.

    Parameters
    ----------
    df
        A streaming data frame.
    model
        A growing estimator or one of least squares, on the driver. Where the checkpoint holds one of the same
        arguments, it goes on with that.
    target, weight, inputs
        As for `learn_batch_of`.
    checkpoint_location
        Where Spark keeps its offsets and commits; of one model alone.
    checkpoint
        A directory on the driver for checkpoints of the model, in the format of the daemon. None (the default): none.
    trigger
        Arguments of Spark's `trigger`, such as ``{"processingTime": "10 seconds"}``. None (the default): as fast as
        micro-batches are learnt.
    query_name
        The name of the query in Spark's pages. None (the default): none.
    watch
        Called on the driver with the report of each micro-batch that was learnt.

    Returns
    -------
    The query, which runs: `awaitTermination` waits for its end and raises what ended it. With that, or `stop`, it lets
    go of the checkpoints.

    Raises
    ------
    ValueError
        The data frame is no stream, a column is missing or no input, or the model takes no batch steps.
    CheckpointError
        The checkpoint is in use, damaged, or of another model.

    """
    if not df.isStreaming:
        raise ValueError("the data frame is no stream: give it to learn_batch_of")
    roles, chunks = _prepare(df, model, target, weight, inputs)
    books: Books = MemoryBooks() if checkpoint is None else CheckpointBooks(Path(checkpoint), model)
    select: Callable[[DataFrame], DataFrame] = partial(_columns, roles)
    writer = df.writeStream.foreachBatch(MicroBatches(model, chunks, books, select, watch))
    if query_name is not None:
        writer = writer.queryName(query_name)
    if trigger is not None:
        writer = writer.trigger(**trigger)
    try:
        query = writer.option("checkpointLocation", str(checkpoint_location)).start()
    except BaseException:
        books.close()
        raise
    return LearningQuery(query, books)


def _columns(roles: ColumnRoles, df: DataFrame) -> DataFrame:
    return df.select(*roles.names)


class _FrameChunks:
    """Makes chunks of the Arrow batches of columns that have roles."""

    def __init__(self, roles: ColumnRoles, unsupervised: bool) -> None:
        self._roles = roles
        self._unsupervised = unsupervised

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[SourceChunk]:
        return self._roles.chunks(batches, self._unsupervised)


def _prepare(
    df: DataFrame, model: BatchModel, target: str | None, weight: str | None, inputs: Iterable[str] | None
) -> tuple[ColumnRoles, _FrameChunks]:
    check_model(model)
    unsupervised = isinstance(model, KernelNoveltyDetector)
    if target is None and not unsupervised:
        raise ValueError(f"target must name a column: {type(model).__name__} learns one")
    roles = roles_of(df, target, weight, inputs)
    return roles, _FrameChunks(roles, unsupervised)
