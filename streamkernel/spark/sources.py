"""The streaming data frame of a configuration's source, and what makes chunks of its rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

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
    df = reader.load(path).selectExpr("value", "_metadata.file_path as path", "_metadata.file_block_start as start")
    columns = ("value", "path", "start")
    if isinstance(source, JsonlSourceConfig):
        return StreamSource(df, columns, JsonlChunks(settings))
    header = _header(path)
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
    df = spark.readStream.format("kafka").options(**options).load()
    return StreamSource(df, tuple(columns), KafkaChunks(settings, stream, positions, source.include))


def _header(path: str) -> str:
    """The first line of the first file of a directory or pattern on this machine."""
    place = Path(path)
    found = sorted(place.glob("*")) if place.is_dir() else sorted(place.parent.glob(place.name))
    files = [one for one in found if one.is_file() and not one.name.startswith((".", "_"))]
    if not files:
        raise SourceError(f"source.path: there is no file at {path} yet, whose header would name the columns")
    with files[0].open(encoding="utf-8-sig", newline="") as file:
        line = file.readline().rstrip("\r\n")
    if not line:
        raise SourceError(f"source.path: the first line of {files[0]} is empty: it must name the columns")
    return line
