"""Learning data frames: one as a batch step, a streaming one micro-batch by micro-batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming import DataStreamWriter
from pyspark.sql.types import DecimalType

from streamkernel.estimators.novelty import KernelNoveltyDetector
from streamkernel.spark.failures import failure_of
from streamkernel.spark.frames import ColumnRoles, roles_of
from streamkernel.spark.learner import BatchModel, BatchReport, MicroBatches, check_model
from streamkernel.spark.progress import CheckpointProgress, MemoryProgress, ProgressStore
from streamkernel.spark.query import LearningQuery, check_free
from streamkernel.spark.rows import Chunks, SparkRows
from streamkernel.spark.score_sums import ScoreSums

__all__ = ["learn_batch_of", "learn_stream"]


def learn_batch_of(
    df: DataFrame,
    model: BatchModel,
    target: str | None = None,
    *,
    weight: str | None = None,
    inputs: Iterable[str] | None = None,
) -> ScoreSums:
    """Make one batch step on the rows of a data frame, which stay on the executors.

    The result equals the model's `batch_step` on the same rows, except for the rounding of sums, for any partitioning.

    Parameters
    ----------
    df
        A data frame that is not a stream.
    model
        A growing or a least-squares estimator, on the driver.
    target
        The column of the target. A row with null is only predicted. None (the default) is for novelty detection.
    weight
        The column of the weight. None (the default) means all 1.
    inputs
        The columns of the inputs. None (the default) means all other columns of numbers, booleans and strings.

    Returns
    -------
    Counts and sums of the predictions made before the step.

    Raises
    ------
    ValueError
        A column is missing or cannot be an input, the model has no batch step, or a row is unusable. Nothing is
        learned.
    TypeError
        An argument has the wrong type.
    NotFiniteError
        The kernel, loss, step schedule or policy returned a value that is not finite. Nothing is learned.
    SparkJobError
        A function of the data frame, such as a UDF, failed, or Spark failed. Nothing is learned.

    """
    _check_frame(df)
    if df.isStreaming:
        raise ValueError("the data frame is a stream: use learn_stream")
    roles, chunks = _prepare(df, model, target, weight, inputs)
    try:
        with SparkRows(roles.select(df), model, chunks) as rows:
            return rows.learn().sums
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
    """Start a query that learns a streaming data frame, with one batch step for each micro-batch.

    The model learns each micro-batch once. Its checkpoint records the last one it learned, and the query skips a
    micro-batch that Spark repeats. Without a checkpoint, this holds only for this model object in this process.

    Parameters
    ----------
    df
        A streaming data frame.
    model
        A growing or a least-squares estimator, on the driver. No other query may train it at the same time. If the
        checkpoint has a model with the same arguments, the query continues with that state.
    target, weight, inputs
        As for `learn_batch_of`.
    checkpoint_location
        Where Spark keeps its offsets and commits. Use it for one model only.
    checkpoint
        A directory on the driver for checkpoints of the model, in the format of the daemon. None (the default) writes
        none.
    trigger
        Arguments of Spark's `trigger`, for example ``{"processingTime": "10 seconds"}``. None (the default) starts each
        micro-batch when the previous one is learned.
    query_name
        The name of the query in Spark's pages. None (the default) sets no name.
    watch
        A function that receives the report of each learned micro-batch, on the driver.

    Returns
    -------
    The running query. `awaitTermination` waits for its end and raises the error that ended it. That call, or `stop`,
    releases the checkpoints. If a query ends without either call, the next `learn_stream` of this process releases
    them.

    Raises
    ------
    ValueError
        The data frame is not a stream, a column is missing or cannot be an input, or the model has no batch step. Or
        Spark has no such trigger, or the checkpoint is not a directory on the driver.
    TypeError
        An argument has the wrong type.
    CheckpointError
        The checkpoint is in use, damaged, or from another model.
    SparkJobError
        Spark cannot start the query.

    """
    _check_frame(df)
    if not df.isStreaming:
        raise ValueError("the data frame is not a stream: use learn_batch_of")
    roles, chunks = _prepare(df, model, target, weight, inputs)
    directory = None if checkpoint is None else _directory_of(checkpoint)
    writer = df.writeStream.option("checkpointLocation", os.fspath(checkpoint_location))
    if query_name is not None:
        writer = writer.queryName(query_name)
    if trigger is not None:
        writer = _triggered(writer, trigger)
    progress: ProgressStore = MemoryProgress(model) if directory is None else CheckpointProgress(directory, model)
    learn = MicroBatches(model, chunks, progress, roles.select, watch)
    return LearningQuery.start(writer.foreachBatch(learn), progress, learn)


def _directory_of(checkpoint: str | PathLike[str]) -> Path:
    """Return the directory of a model's checkpoints, given as a path or as a URI of the scheme file.

    Examples
    --------
    >>> _directory_of("file:///srv/my%20state").as_posix(), _directory_of("state").as_posix()
    ('/srv/my state', 'state')
    >>> _directory_of("s3://bucket/state")
    Traceback (most recent call last):
    ValueError: checkpoint 's3://bucket/state' is a URI, and checkpoints of the model are local files: name a \
directory of the driver, on storage that outlives it

    """
    text = os.fspath(checkpoint)
    parts = urlsplit(text)
    if len(parts.scheme) < 2 or ":/" not in text:  # one letter is a drive of Windows
        return Path(text)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return Path(unquote(parts.path))
    raise ValueError(
        f"checkpoint {text!r} is a URI, and checkpoints of the model are local files: name a directory of the driver, "
        "on storage that outlives it"
    )


def _triggered(writer: DataStreamWriter, trigger: dict[str, Any]) -> DataStreamWriter:
    try:
        return writer.trigger(**trigger)
    except (TypeError, ValueError, PySparkException, Py4JError) as error:
        raise ValueError(
            f"trigger {trigger!r} is not a trigger of Spark ({failure_of(error)}): pass arguments such as "
            '{"processingTime": "10 seconds"} or {"availableNow": True}'
        ) from error


def _check_frame(df: Any) -> None:
    if not isinstance(df, DataFrame):
        raise TypeError(
            f"df must be a data frame of Spark, got {type(df).__module__}.{type(df).__name__}: for rows of "
            "this process, call the model's batch_step, or createDataFrame of the session"
        )


def _prepare(
    df: DataFrame, model: BatchModel, target: str | None, weight: str | None, inputs: Iterable[str] | None
) -> tuple[ColumnRoles, Chunks]:
    check_model(model)
    unsupervised = isinstance(model, KernelNoveltyDetector)
    if target is None and not unsupervised:
        raise ValueError(f"target must name a column: {type(model).__name__} needs one")
    roles = roles_of(df, target, weight, inputs)
    if target is not None and hasattr(model, "classes") and isinstance(kind := df.schema[target].dataType, DecimalType):
        raise ValueError(
            f"column {target!r} is of type {kind.simpleString()}, which a label cannot have: cast it to a string"
        )
    check_free(model)
    return roles, partial(roles.chunks, unsupervised=unsupervised)
