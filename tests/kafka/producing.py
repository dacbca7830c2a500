"""Puts records into a topic, and reads all of a topic back."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import orjson
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord

_SECONDS = 120
"""How long reading may take: only a broker that hangs gets there."""


def produce(
    bootstrap: str,
    topic: str,
    rows: Iterable[Mapping[str, Any] | bytes | None],
    *,
    partition: int | Callable[[int], int] = 0,
    keys: Callable[[int], bytes] | None = None,
    headers: Callable[[int], list[tuple[str, bytes]]] | None = None,
    timestamps: Callable[[int], int] | None = None,
    abort: bool = False,
    **options: Any,
) -> None:
    """Produce records in order, and return when the broker has them all.

    Parameters
    ----------
    bootstrap
        The broker's address.
    topic
        The topic.
    rows
        The values: a mapping is sent as JSON, bytes as they are, None as a tombstone, which must have a key.
    partition
        The partition, or the one of each row by the row's number.
    keys, headers, timestamps
        What goes with a row, by its number; a time stamp in milliseconds.
    abort
        End the transaction by aborting it.
    options
        Those of `KafkaProducer`. With a `transactional_id`, everything is one transaction.

    Raises
    ------
    KafkaError
        The first record's that the broker did not take.

    """
    # Large batches, because the time goes by batch; a test that cares says otherwise.
    settings = {"linger_ms": 20, "batch_size": 1 << 18, "reconnect_backoff_max_ms": 200, **options}
    failures: list[Exception] = []
    producer = KafkaProducer(bootstrap_servers=bootstrap, **settings)
    try:
        if "transactional_id" in options:
            producer.init_transactions()
            producer.begin_transaction()
        for number, row in enumerate(rows):
            producer.send(
                topic,
                orjson.dumps(row) if isinstance(row, Mapping) else row,
                key=keys(number) if keys else None,
                headers=headers(number) if headers else None,
                partition=partition(number) if callable(partition) else partition,
                timestamp_ms=timestamps(number) if timestamps else None,
            ).add_errback(failures.append)
        producer.flush()
        if failures:
            raise failures[0]
        if abort:
            producer.abort_transaction()
        elif "transactional_id" in options:
            producer.commit_transaction()
    finally:
        producer.close(timeout=5)


@contextlib.contextmanager
def open_transaction(bootstrap: str, topic: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[Callable[[], None]]:
    """Begin a transaction of another producer with these records in each partition, and give what aborts it."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"other-{topic}")
    try:
        producer.init_transactions()
        producer.begin_transaction()
        for row in rows:
            for partition in producer.partitions_for(topic):
                producer.send(topic, orjson.dumps(row), partition=partition)
        producer.flush()
        yield producer.abort_transaction
    finally:
        producer.close(timeout=5)


def consume(bootstrap: str, topic: str, **options: Any) -> dict[int, list[ConsumerRecord]]:
    """Read what stands in a topic now: by partition and in order, without what is not committed.

    Parameters
    ----------
    bootstrap
        The broker's address.
    topic
        The topic.
    options
        Those of `KafkaConsumer`.

    Returns
    -------
    dict of int to list of ConsumerRecord
        With `offset`, `key`, `value` (bytes), `headers` and `timestamp`.

    """
    settings = {
        "isolation_level": "read_committed",
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "reconnect_backoff_max_ms": 200,
        **options,
    }
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, **settings)
    try:
        numbers = consumer.partitions_for_topic(topic)
        assert numbers, f"there is no topic {topic}"
        partitions = [TopicPartition(topic, number) for number in sorted(numbers)]
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)
        read: dict[int, list[ConsumerRecord]] = {each.partition: [] for each in partitions}
        deadline = time.monotonic() + _SECONDS
        while any(consumer.position(each) < ends[each] for each in partitions):
            assert time.monotonic() < deadline, f"{topic} could not be read to its end in {_SECONDS} s"
            for each, records in consumer.poll(timeout_ms=100).items():
                read[each.partition] += [record for record in records if record.offset < ends[each]]
        return read
    finally:
        consumer.close()
