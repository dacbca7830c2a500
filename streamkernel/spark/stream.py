"""Learning data frames: one as a batch step, a streaming one micro-batch by micro-batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming import DataStreamWriter
from pyspark.sql.types import DecimalType

from streamkernel.estimators.novelty import KernelNoveltyDetector
from streamkernel.spark.books import Books, CheckpointBooks, MemoryBooks
from streamkernel.spark.directories import directory_of, location_of
from streamkernel.spark.failures import failure_of
from streamkernel.spark.frames import ColumnRoles, roles_of
from streamkernel.spark.learner import BatchModel, BatchReport, MicroBatches, check_model, learn_rows
from streamkernel.spark.partials import SourceChunk
from streamkernel.spark.query import LearningQuery, check_free
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
    TypeError
        An argument is of another kind than above.
    NotFiniteError
        Kernel, loss, step schedule or policy gave what is not finite; nothing is learnt.
    SparkJobError
        A function of the data frame, such as a UDF, or Spark itself failed; nothing is learnt.

    """
    _check_frame(df)
    if df.isStreaming:
        raise ValueError("the data frame is a stream: give it to learn_stream")
    roles, chunks = _prepare(df, model, target, weight, inputs)
    try:
        rows = SparkRows(roles.select(df), model, chunks)
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
    is passed over. Without a checkpoint that holds for this very model in this process alone.

    Parameters
    ----------
    df
        A streaming data frame.
    model
        A growing estimator or one of least squares, on the driver, that no other query learns meanwhile. Where the
        checkpoint holds one of the same arguments, it goes on with that.
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
    go of the checkpoints; after a query that ended by itself, so does the next `learn_stream` of this process.

    Raises
    ------
    ValueError
        The data frame is no stream, a column is missing or no input, the model takes no batch steps, Spark has no such
        trigger, or the checkpoint is no directory of the driver.
    TypeError
        An argument is of another kind than above.
    CheckpointError
        The checkpoint is in use, damaged, or of another model.
    SparkJobError
        Spark does not start the query.

    """
    _check_frame(df)
    if not df.isStreaming:
        raise ValueError("the data frame is no stream: give it to learn_batch_of")
    roles, chunks = _prepare(df, model, target, weight, inputs)
    directory = None if checkpoint is None else directory_of(checkpoint)
    writer = df.writeStream.option("checkpointLocation", location_of(checkpoint_location))
    if query_name is not None:
        writer = writer.queryName(query_name)
    if trigger is not None:
        writer = _triggered(writer, trigger)
    books: Books = MemoryBooks(model) if directory is None else CheckpointBooks(directory, model)
    try:
        learn = MicroBatches(model, chunks, books, roles.select, watch)
        return LearningQuery(writer.foreachBatch(learn).start(), books, learn)
    except (PySparkException, Py4JError) as error:
        books.close()
        raise failure_of(error) from error
    except BaseException:
        books.close()
        raise


def _triggered(writer: DataStreamWriter, trigger: dict[str, Any]) -> DataStreamWriter:
    try:
        return writer.trigger(**trigger)
    except (TypeError, ValueError, PySparkException, Py4JError) as error:
        raise ValueError(
            f"trigger {trigger!r} is none of Spark's ({failure_of(error)}): give arguments of its trigger, such as "
            '{"processingTime": "10 seconds"} or {"availableNow": True}'
        ) from error


def _check_frame(df: Any) -> None:
    if not isinstance(df, DataFrame):
        raise TypeError(
            f"df must be a data frame of Spark, got {type(df).__module__}.{type(df).__name__}: rows of this process "
            "are learnt by the model's batch_step, or become one by createDataFrame of the session"
        )
    if df.sparkSession.sparkContext._jsc is None:
        raise ValueError("the session of the data frame was stopped: make it anew in a new session")


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
    if target is not None and hasattr(model, "classes") and isinstance(kind := df.schema[target].dataType, DecimalType):
        raise ValueError(f"column {target!r} is of type {kind.simpleString()}, which no label has: cast it to a string")
    check_free(model)
    return roles, _FrameChunks(roles, unsupervised)
