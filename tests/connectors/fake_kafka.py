"""A cluster in memory, as `reader` sees one: it is ill at a word, as a real one is not."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest
from kafka.consumer.fetcher import ConsumerRecord

from streamkernel.connectors.kafka.base.client import Unreachable
from streamkernel.connectors.kafka.base.fetched import Unreadable
from streamkernel.connectors.kafka.base.messages import Messages
from streamkernel.connectors.kafka.base.topic import Bounds, OutOfRange
from streamkernel.connectors.kafka.reading.buffers import Buffers
from streamkernel.connectors.kafka.reading.reader import TopicReader
from streamkernel.connectors.kafka.reading.source import KafkaSource
from streamkernel.connectors.ports import Position, Record, SourceError
from tests.processes import wait_until

Make = Callable[..., KafkaSource]
STREAM = "cluster/t/1"


def message(
    offset: int,
    value: bytes | None,
    *,
    partition: int = 0,
    key: bytes | None = None,
    headers: Sequence[tuple[str, bytes | None]] = (),
    timestamp: int = -1,
) -> Any:
    """A message as kafka-python hands it out."""
    sizes = [-1 if part is None else len(part) for part in (key, value)]
    in_headers = sum(len(name) + len(one or b"") for name, one in headers) if headers else -1
    return ConsumerRecord("t", partition, 0, offset, timestamp, 0, key, value, list(headers), None, *sizes, in_headers)


class FakeCluster:
    """One topic, and whatever happens to it.

    Attributes
    ----------
    logs
        The messages by partition; None stands where none can be read, and the offset in front is the place in the list.
    first
        The first offset there still is.
    identity
        What the positions count in.
    down
        Why no broker answers; None while one does.
    failure
        What is wrong with the topic for good; None while nothing is.
    committed
        By partition, the first offset of a transaction that is still open; nothing from there on is handed out.
    connections
        How often the topic was connected to.

    """

    def __init__(self, partitions: int = 1, identity: str = STREAM) -> None:
        self.logs: dict[int, list[Any]] = {partition: [] for partition in range(partitions)}
        self.first = dict.fromkeys(self.logs, 0)
        self.identity = identity
        self.down: str | None = None
        self.failure: str | None = None
        self.committed: dict[int, int] = {}
        self.connections = 0
        self.closed = 0
        self.changed = threading.Condition()

    def produce(self, values: Iterable[bytes | None], partition: int = 0, **parts: Any) -> None:
        """Append messages."""
        with self.changed:
            log = self.logs[partition]
            for value in values:
                log.append(message(len(log), value, partition=partition, **parts))
            self.changed.notify_all()

    def damage(self, partition: int, offsets: Iterable[int]) -> None:
        """Make messages unreadable."""
        for offset in offsets:
            self.logs[partition][offset] = None

    def add(self, *partitions: int) -> None:
        """Add partitions to the topic."""
        with self.changed:
            self.first |= dict.fromkeys(partitions, 0)
            self.logs |= {partition: [] for partition in partitions}

    def remove(self, partition: int, before: int) -> None:
        """Let retention pass an offset."""
        self.first[partition] = before

    def skip(self, partition: int, offsets: Iterable[int]) -> None:
        """Leave holes, as compaction does."""
        for offset in offsets:
            self.logs[partition][offset] = ...

    def connect(self, *_: object) -> FakeTopic:
        """Connect, as `streamkernel.connectors.kafka.base.topic.KafkaTopic` does."""
        if self.down is not None:
            raise Unreachable(self.down)
        if self.failure is not None:
            raise SourceError(self.failure)
        self.connections += 1
        return FakeTopic(self)


class FakeTopic:
    """A connection to it."""

    patience = 0.2

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster
        self.places: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._turn = 0
        self._heard = time.monotonic()
        self.identity = cluster.identity

    @property
    def partitions(self) -> frozenset[int]:
        return frozenset(self._cluster.logs)

    def bounds(self, partitions: Iterable[int]) -> dict[int, Bounds]:
        self._answer()
        cluster = self._cluster
        return {one: Bounds(cluster.first[one], self.committed_end(one)) for one in partitions}

    def high_watermark(self, partition: int) -> int:
        self._answer()
        return len(self._cluster.logs[partition])

    def committed_end(self, partition: int) -> int:
        return self._cluster.committed.get(partition, len(self._cluster.logs[partition]))

    def add(self, offsets: Mapping[int, int]) -> None:
        self.places |= offsets

    def poll(self, seconds: float) -> Mapping[int, Messages]:
        deadline = time.monotonic() + seconds
        with self._cluster.changed:
            while not (found := self.find()) and (left := deadline - time.monotonic()) > 0:
                self._cluster.changed.wait(left)
        return {partition: Messages.of(chunk) for partition, chunk in found.items()}

    def find(self) -> dict[int, list[Any]]:
        if self._cluster.down is not None:
            return {}
        self._heard = time.monotonic()
        self._turn += 1
        for partition in sorted(self.places, key=lambda one: (one + self._turn) % len(self.places)):
            place, log = self.places[partition], self._cluster.logs[partition]
            if place < self._cluster.first[partition] or place > len(log):
                raise OutOfRange(partition)
            self._ends[partition] = len(log)
            chunk: list[Any] = []
            committed = self.committed_end(partition)
            while place < committed and log[place] is not None and len(chunk) < 100:
                chunk += [log[place]] if log[place] is not ... else []
                place += 1
            self.places[partition] = place
            if chunk:
                return {partition: chunk}
            if place < committed:
                raise Unreadable(partition, place, place + 1, "it is damaged")
        return {}

    def seek(self, partition: int, offset: int) -> None:
        self.places[partition] = offset

    def reached(self, partition: int) -> int:
        return self.places[partition]

    def end(self, partition: int) -> int | None:
        return self._ends.get(partition)

    def heard(self) -> float:
        return self._heard

    def failure(self) -> str:
        return self._cluster.down or "no answer"

    def refresh(self) -> None:
        self._answer()

    def verify(self) -> None:
        if self._cluster.failure is not None:
            raise SourceError(self._cluster.failure)
        if self._cluster.identity != self.identity:
            raise SourceError("the topic was deleted and created again while it was read")

    def close(self) -> None:
        self._cluster.closed += 1

    def _answer(self) -> None:
        if self._cluster.down is not None:
            raise Unreachable(self._cluster.down)
        self._heard = time.monotonic()


def values(count: int, start: int = 0) -> list[bytes]:
    return [b'{"n": %d}' % number for number in range(start, start + count)]


def drain(source: KafkaSource, count: int, most: int = 1000) -> list[Record]:
    """Poll until so many records came; each poll is of one partition."""
    records: list[Record] = []
    deadline = time.monotonic() + 20
    while len(records) < count:
        assert time.monotonic() < deadline, f"only {len(records)} of {count} came"
        polled = source.poll(most, 0.1)
        assert len(polled) <= most
        assert len({record.position[:2] for record in polled}) <= 1
        records += polled
    assert len(records) == count
    return records


def places(*offsets: int) -> dict[int, Position]:
    return {partition: Position(STREAM, partition, offset) for partition, offset in enumerate(offsets)}


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that happens on another thread."""
    wait_until(condition)


def reader_of(source: KafkaSource) -> TopicReader:
    """Look at the thread that reads, and through it at what was read and not handed out yet."""
    assert source._reader is not None
    return source._reader


def buffers_of(source: KafkaSource) -> Buffers:
    """Look at what was read and not handed out yet."""
    buffers = reader_of(source).buffers
    assert buffers is not None
    return buffers


def failing(source: KafkaSource, message: str) -> None:
    """Poll until it fails."""
    with pytest.raises(SourceError, match=re.escape(message)):  # noqa: PT012 - how long it takes is not said
        for _ in range(200):
            source.poll(10, 0.1)
