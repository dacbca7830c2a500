"""Lines for the sink of Kafka, and what stands in a topic because of them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable
from typing import Any

from kafka.consumer.fetcher import ConsumerRecord

from streamkernel.connectors import Position
from streamkernel.connectors.kafka.writing.sink import KafkaSink
from streamkernel.connectors.ports import OutageError
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
    """Open a sink, with transactions unless told otherwise."""
    sink = KafkaSink(topic, cluster.bootstrap, **{"transactional_id": topic, **more})
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


class Writing:
    """A thread that writes lines and makes checkpoints now and then, as a daemon does, until it is told to end."""

    def __init__(self, sink: KafkaSink) -> None:
        self._sink = sink
        self._ending = threading.Event()
        self.written = 0
        self.outages = 0
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                put(self._sink, (at(offset) for offset in range(self.written, self.written + 20)))
                self.written += 20
                if self.written % 200 == 0:
                    try:
                        self._sink.flush()
                        self._sink.commit()
                    except OutageError:
                        self.outages += 1
                time.sleep(0.01)
        except Exception as error:
            self.failure = error

    def end(self) -> None:
        """Stop, and wait until every line is there."""
        self._ending.set()
        self._thread.join()
        assert self.failure is None, self.failure
        finish(self._sink)


def finish(sink: KafkaSink) -> Any:
    """Make a checkpoint, however long that takes, wait until its lines are committed, and give its mark."""
    mark = flushed(sink)
    sink.commit()
    flushed(sink)
    return mark


def flushed(sink: KafkaSink) -> Any:
    """Flush, however long that takes, and give the mark."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return sink.flush()
        except OutageError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def write_on(sink: KafkaSink) -> None:
    """Write lines and make checkpoints until something is wrong."""
    deadline = time.monotonic() + 30
    offset = 100
    while time.monotonic() < deadline:
        put(sink, [at(offset)])
        with contextlib.suppress(OutageError):
            sink.flush()
            sink.commit()
        offset += 1
        time.sleep(0.05)
