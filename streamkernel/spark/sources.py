"""The streaming data frame of a configuration's source, and what makes chunks of its rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from connectors.files.rows import split_fields
from connectors.ports import SourceError
from streamkernel.daemon.config.kafka import KafkaSourceConfig
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.sources import CsvSourceConfig, JsonlSourceConfig
from streamkernel.spark.decoding import CsvChunks, JsonlChunks, KafkaChunks, RecordSettings
from streamkernel.spark.kafka_options import java_options
from streamkernel.spark.rows import Chunks

__all__ = ["StreamSource", "source_of"]


class StreamSource(NamedTuple):
    """A streaming data frame, the columns that are sent to Python, and what makes chunks of them."""

    df: DataFrame
    columns: tuple[str, ...]
    chunks: Chunks

    def select(self, df: DataFrame) -> DataFrame:
        """The columns of a micro-batch that are sent to Python."""
        return df.selectExpr(*self.columns)


def source_of(
    plan: Plan, spark: SparkSession, stream: str, positions: Mapping[int, int], most: int | None
) -> StreamSource:
    """Make the source of a configuration.

    Parameters
    ----------
    plan
        The configuration.
    spark
        The session.
    stream
        The identity of a topic; of files empty.
    positions
        By partition of a topic, where a query without a checkpoint location of its own begins; all of them, or none.
    most
        The most messages, or files, of a micro-batch; None: no bound.

    Raises
    ------
    SourceError
        Files cannot be read, or CSV files have no header.

    """
    source, limits = plan.config.source, plan.config.limits
    assert isinstance(source, KafkaSourceConfig | CsvSourceConfig | JsonlSourceConfig)
    settings = RecordSettings(
        source.target,
        source.target_type,
        None if source.inputs is None else source.inputs.settings(),
        limits.max_string,
        limits.max_record_bytes,
        plan.task == "novelty",
    )
    if isinstance(source, KafkaSourceConfig):
        return _kafka(spark, source, settings, stream, positions, most)
    reader: Any = spark.readStream.format("text")
    if most is not None:
        reader = reader.option("maxFilesPerTrigger", most)
    path = str(source.path)
    header = "" if isinstance(source, JsonlSourceConfig) else _header(spark, path)
    df = reader.load(path).selectExpr("value", "_metadata.file_path as path", "_metadata.file_block_start as start")
    columns = ("value", "path", "start")
    if isinstance(source, JsonlSourceConfig):
        return StreamSource(df, columns, JsonlChunks(settings))
    names = split_fields(header, source.delimiter)
    if settings.target is not None and settings.target not in names:
        raise SourceError(f"source.target: {path} has no column {settings.target!r}: it has {', '.join(names[:20])}")
    return StreamSource(df, columns, CsvChunks(settings, header, names, source.delimiter))


def _kafka(
    spark: SparkSession,
    source: KafkaSourceConfig,
    settings: RecordSettings,
    stream: str,
    positions: Mapping[int, int],
    most: int | None,
) -> StreamSource:
    options = {"kafka.isolation.level": "read_committed", **java_options(source.bootstrap_servers, source.options)}
    if source.partitions == "all":
        options["subscribe"] = source.topic
    else:
        options["assign"] = json.dumps({source.topic: sorted(source.partitions)})
    options["startingOffsets"] = source.start
    if positions:
        at = {str(partition): offset for partition, offset in sorted(positions.items())}
        options["startingOffsets"] = json.dumps({source.topic: at})
    options["failOnDataLoss"] = str(source.on_gap == "stop").lower()
    options["includeHeaders"] = str("headers" in source.include).lower()
    if most is not None:
        options["maxOffsetsPerTrigger"] = str(most)
    columns = ["partition", "offset", "value"]
    beside = {"key": "key", "headers": "headers", "timestamp": "unix_millis(timestamp) as millis"}
    columns += [beside[name] for name in source.include]
    try:
        df = spark.readStream.format("kafka").options(**options).load()
    except AnalysisException as error:
        package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}"
        raise SourceError(f"{_first_line(error)}; Spark's source of Kafka comes with --packages {package}") from error
    return StreamSource(df, tuple(columns), KafkaChunks(settings, stream, positions, source.include))


def _header(spark: SparkSession, path: str) -> str:
    """The first line of one of the files of a directory or pattern, wherever Spark finds them."""
    try:
        first = spark.read.format("text").load(path).first()
    except AnalysisException as error:
        raise SourceError(f"source.path: {_first_line(error)}") from error
    if first is None:
        raise SourceError(f"source.path: there is no line at {path} yet, which would name the columns")
    line = str(first.value).removeprefix("\ufeff")
    if not line:
        raise SourceError(f"source.path: the first line of a file at {path} is empty: it must name the columns")
    return line


def _first_line(error: AnalysisException) -> str:
    """What Spark says is wrong, without the plan behind it."""
    return str(error).splitlines()[0]
