"""The streaming data frame of a configuration's source, and what makes chunks of its rows."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Mapping
from typing import NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.settings import InputSettings
from streamkernel.connectors.files.header import UnusableHeaderError, header_columns
from streamkernel.connectors.ports import SourceError
from streamkernel.daemon.config.kafka import KafkaSourceConfig
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.sources import CsvSourceConfig, JsonlSourceConfig
from streamkernel.spark.decoding import CsvChunks, JsonlChunks, KafkaChunks, RecordSettings
from streamkernel.spark.failures import failure_of
from streamkernel.spark.kafka_options import java_options
from streamkernel.spark.rows import Chunks

__all__ = ["StreamSource", "first_line", "source_of"]

#: A line ends as the daemon's does; Spark's own would end at a carriage return, too.
_LINES = {"lineSep": "\n"}
_ANY_AGE = "36500d"


class StreamSource(NamedTuple):
    """A streaming data frame, the columns that are sent to Python, and what makes chunks of them."""

    df: DataFrame
    columns: tuple[str, ...]
    chunks: Chunks

    def select(self, df: DataFrame) -> DataFrame:
        """The columns of a micro-batch that are sent to Python."""
        return df.selectExpr(*self.columns)


def source_of(
    plan: Plan,
    spark: SparkSession,
    stream: str,
    positions: Mapping[int, int],
    most: int | None,
    header: bytes | None = None,
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
    header
        The first line of CSV files; None: of other sources.

    Raises
    ------
    SourceError
        Files cannot be read, or the header of CSV files cannot be used.

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
    path = str(source.path)
    # A file may be moved in long after it was written, which Spark would pass over without a word.
    reader = spark.readStream.format("text").options(**_LINES, maxFileAge=_ANY_AGE)
    if most is not None:
        reader = reader.option("maxFilesPerTrigger", most)
    try:
        df = reader.load(path).selectExpr(
            # Bytes, for what is no text is a dead letter.
            "cast(value as binary) as value",
            "_metadata.file_path as path",
            "_metadata.file_block_start as start",
        )
    except AnalysisException as error:
        raise _unreadable(path, error) from error
    columns = ("value", "path", "start")
    if isinstance(source, JsonlSourceConfig):
        return StreamSource(df, columns, JsonlChunks(settings))
    assert header is not None
    rules = settings.rules or ColumnRules(InputSettings(), settings.max_string)
    try:
        names = header_columns(header, source.delimiter, "utf-8", settings.target, rules)
    except UnusableHeaderError as error:
        raise SourceError(f"source.path: {path}: {error}") from error
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
        raise SourceError(f"{failure_of(error)}; install Spark's Kafka source with --packages {package}") from error
    return StreamSource(df, tuple(columns), KafkaChunks(settings, stream, positions, source.include))


def first_line(spark: SparkSession, path: str) -> bytes | None:
    """The first line of one of the files of a directory or pattern, wherever Spark finds them; None where none has any.

    Raises
    ------
    SourceError
        Where they cannot be read.

    """
    try:
        lines = spark.read.format("text").options(**_LINES).load(path).selectExpr("cast(value as binary) as value")
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return None
        raise _unreadable(path, error) from error
    try:
        first = lines.first()
    except (PySparkException, Py4JError) as error:
        raise SourceError(f"source.path: {path} cannot be read: {failure_of(error)}") from error
    return None if first is None else bytes(first.value).removeprefix(BOM_UTF8).removesuffix(b"\r")


def _unreadable(path: str, error: AnalysisException) -> SourceError:
    if error.getCondition() == "PATH_NOT_FOUND":
        return SourceError(f"source.path: there is no {path}: create the directory, or name another one")
    return SourceError(f"source.path: {path} cannot be read: {failure_of(error)}")
