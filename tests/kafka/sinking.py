"""Lines for the sink of Kafka, and what stands in a topic because of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafka.consumer.fetcher import ConsumerRecord

from connectors import Position
from connectors.kafka.writing.sink import KafkaSink
from tests.kafka.cluster import Cluster
from tests.kafka.producing import consume

STREAM = "cluster/clicks/number"


def at(offset: int, partition: int = 0) -> Position:
    """Give the position of a record."""
    return Position(STREAM, partition, offset)


def put(sink: KafkaSink, positions: Iterable[Position]) -> None:
    """Write a line for each position."""
    places = list(positions)
    sink.write([{"partition": place.partition, "n": place.offset} for place in places], places)


def opened(cluster: Cluster, topic: str, mark: Any = None, **more: Any) -> KafkaSink:
    """Open a sink."""
    sink = KafkaSink(topic, cluster.bootstrap, **more)
    sink.open(mark)
    return sink


def place_of(record: ConsumerRecord) -> tuple[int, int]:
    """Tell partition and offset of the record a line is for, from its headers."""
    headers = dict(record.headers)
    return int(headers["source.partition"]), int(headers["source.offset"])


def standing(cluster: Cluster, topic: str, **options: Any) -> dict[int, list[int]]:
    """Tell which lines stand in a topic: the offsets of their records, by partition of the source, in order."""
    found: dict[int, list[int]] = {}
    for records in consume(cluster.bootstrap, topic, **options).values():
        for record in records:
            partition, offset = place_of(record)
            found.setdefault(partition, []).append(offset)
    return found
