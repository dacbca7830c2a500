"""How far Spark's checkpoint location is: its query, micro-batches and offsets; and the facts of a topic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from streamkernel.connectors.kafka.base.client import Unreachable
from streamkernel.connectors.kafka.base.options import client_settings
from streamkernel.connectors.kafka.base.topic import KafkaTopic
from streamkernel.connectors.ports import SourceError
from streamkernel.daemon.base.errors import UnfitError
from streamkernel.daemon.config.kafka import KafkaSourceConfig

__all__ = ["NEVER", "check_ahead", "committed", "committed_offsets", "topic_facts"]

#: The state of a location that no query has used.
NEVER = ("", -1)


def topic_facts(source: KafkaSourceConfig) -> tuple[str, frozenset[int]]:
    """Ask the cluster for the identity of a topic, ``"cluster/topic/number"``, and its partitions."""
    options = source.options.given()
    options.pop("group_id", None)
    settings = client_settings(source.bootstrap_servers, options)
    try:
        topic = KafkaTopic(source.topic, {**settings, "enable_auto_commit": False, "auto_offset_reset": "none"})
    except Unreachable as error:
        raise SourceError(f"topic {source.topic} at {','.join(source.bootstrap_servers)}: {error}") from error
    try:
        return topic.identity, topic.partitions
    finally:
        topic.close()


def committed(spark: SparkSession, location: str) -> tuple[str, int]:
    """Return the id of the query of a checkpoint location, and its last committed micro-batch, -1 before the first.

    `NEVER` where no query has used it. UnfitError where it is damaged.
    """
    if not _files(spark, f"{location}/metadata"):
        return NEVER
    try:
        query = json.loads(_read(spark, f"{location}/metadata"))["id"]
    except (ValueError, KeyError, TypeError):
        raise _damaged(location, "metadata") from None
    return str(query), max(_commits(spark, location), default=-1)


def committed_offsets(spark: SparkSession, location: str, topic: str) -> dict[int, int]:
    """Return the end of the last committed micro-batch by partition of a topic; empty before the first."""
    commits = _commits(spark, location)
    if not commits:
        return {}
    name = f"offsets/{max(commits)}"
    try:
        for line in _read(spark, f"{location}/{name}").splitlines()[2:]:
            offsets = json.loads(line) if line.startswith("{") else {}
            if topic in offsets:
                return {int(partition): int(offset) for partition, offset in offsets[topic].items()}
    except (ValueError, AttributeError):
        raise _damaged(location, name) from None
    return {}


def _damaged(location: str, name: str) -> UnfitError:
    return UnfitError(
        f"Spark's checkpoint location {location} is damaged, its {name} cannot be read: restore a valid copy. For a "
        "topic, a new --checkpoint-location also works: the job continues at the offsets of the model"
    )


def _commits(spark: SparkSession, location: str) -> list[int]:
    return [int(name) for name in _files(spark, f"{location}/commits") if name.isdigit()]


def check_ahead(committed: Mapping[int, int], positions: Mapping[int, int], directory: str) -> None:
    """Raise an UnfitError for a checkpoint location that has read further than the model has learned."""
    for partition, end in sorted(committed.items()):
        reached = positions.get(partition, 0)
        if positions and end > reached:
            raise UnfitError(
                f"Spark's checkpoint location has read partition {partition} up to offset {end:,}, and the model in "
                f"{directory} has learned it up to {reached:,}: the records between would be lost. Use another "
                "checkpoint location: the job then continues at the offsets of the model"
            )
    if committed and not positions:
        raise UnfitError(
            f"Spark's checkpoint location has read up to {sum(committed.values()):,} offsets, and {directory} has no "
            "model that has learned any: restore its checkpoints, or use another checkpoint location"
        )


def _path(spark: SparkSession, name: str) -> tuple[Any, Any]:
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(name)
    return path.getFileSystem(spark._jsc.hadoopConfiguration()), path


def _files(spark: SparkSession, name: str) -> list[str]:
    """The names of the files in a folder, or of a file itself; none where it is not there."""
    system, path = _path(spark, name)
    return [one.getPath().getName() for one in system.listStatus(path)] if system.exists(path) else []


def _read(spark: SparkSession, name: str) -> str:
    system, path = _path(spark, name)
    jvm: Any = spark._jvm
    stream = system.open(path)
    try:
        return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()
