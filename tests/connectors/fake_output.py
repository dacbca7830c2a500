"""An output topic in memory, and producers of it that do as a real one, unless a test breaks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamkernel.connectors.kafka.base.client import Unreachable
from streamkernel.connectors.kafka.writing.line import Line, Provenance
from streamkernel.connectors.kafka.writing.mark import Marker
from streamkernel.connectors.kafka.writing.producer import Broken, Patient
from streamkernel.connectors.kafka.writing.sink import KafkaSink
from streamkernel.connectors.kafka.writing.topic import OutputTopic
from streamkernel.connectors.ports import ConnectorError, OutageError, Position, SinkError
from tests.processes import wait_until

STREAM = "cluster/clicks/number"


class FakeTopic:
    """One topic: the messages that count, by partition, and the marker of each transactional id.

    Attributes
    ----------
    down
        Whether no broker answers.
    refusal
        Why nobody can connect; None while anybody can.
    doubtful
        Of the next commits, whether each is carried out before it fails.
    largest
        The longest value it takes.

    """

    def __init__(self, partitions: int = 1) -> None:
        self.found = OutputTopic("c/out/1", partitions, 1000)
        self.messages: dict[int, list[dict[str, Any]]] = {partition: [] for partition in range(partitions)}
        self.markers: dict[str, Marker] = {}
        self.holders: dict[str, FakeProducer] = {}
        self.down = False
        self.refusal: ConnectorError | None = None
        self.doubtful: list[bool] = []
        self.connections = 0

    def connect(self, transactional_id: str | None, attempt: int) -> Any:  # noqa: ARG002
        if self.down:
            raise Unreachable("connection refused")
        if self.refusal is not None:
            raise self.refusal
        self.connections += 1
        producer = FakeProducer(self, transactional_id)
        if transactional_id is not None:
            self.holders[transactional_id] = producer
        return producer

    def values(self) -> list[bytes]:
        """Return the values of the first partition."""
        return [message["value"] for message in self.messages[0]]

    def lines(self) -> dict[int, list[Position]]:
        """Return the positions of the lines that count, by the partition of their source."""
        found: dict[int, list[Position]] = {}
        for messages in self.messages.values():
            for message in messages:
                headers = dict(message["headers"])
                stream, partition, offset = (
                    headers[f"source.{part}"].decode() for part in ("stream", "partition", "offset")
                )
                found.setdefault(int(partition), []).append(Position(stream, int(partition), int(offset)))
        return found


class FakeProducer:
    """A producer of it; see `TopicProducer`."""

    def __init__(self, topic: FakeTopic, transactional_id: str | None) -> None:
        self.transactional_id = transactional_id
        self.found = topic.found
        self._topic = topic
        self._open: list[tuple[int, dict[str, Any]]] = []
        self.linger = 0.0

    def _check(self) -> None:
        if self._topic.down:
            raise Broken("connection refused")
        if self.transactional_id is not None and self._topic.holders[self.transactional_id] is not self:
            raise SinkError(f"another process writes with the transactional_id {self.transactional_id}")

    def marker(self) -> Marker | None:
        return self._topic.markers.get(self.transactional_id or "")

    def send(self, lines: Sequence[Line], provenance: Provenance, patient: Patient) -> None:
        for line in lines:
            self._check()
            sent = message_of(line, provenance)
            if len(sent["value"]) > 1000:
                raise SinkError(f"the line of offset {line.position.offset} is too large")
            place = (line.position.partition % self.found.partitions, sent)
            if self.transactional_id is None:
                self._topic.messages[place[0]].append(sent)
            else:
                self._open.append(place)
            patient(1)

    def commit(self, marker: Marker, patient: Patient) -> None:  # noqa: ARG002
        self._check()
        doubtful = self._topic.doubtful.pop(0) if self._topic.doubtful and marker.number else None
        if doubtful is not False:
            for partition, message in self._open:
                self._topic.messages[partition].append(message)
            self._topic.markers[self.transactional_id or ""] = marker
        self._open = []
        if doubtful is not None:
            raise Broken("the answer is lost")

    def verify(self) -> bool:
        self._check()
        return True

    def failure(self) -> str:
        return "connection refused" if self._topic.down else "no answer"

    def close(self) -> None:
        pass


def message_of(line: Line, provenance: Provenance) -> dict[str, Any]:
    """A line as arguments of ``KafkaProducer.send``."""
    value, position, copied = line
    sent: dict[str, Any] = {
        "value": value,
        "key": provenance.key(position),
        "headers": provenance.headers(position),
    }
    if copied is not None:
        sent["headers"] = [*copied.headers, *sent["headers"]]
        sent["timestamp_ms"] = copied.timestamp
        if copied.keyed:
            sent["key"] = copied.key
    return sent


def at(offset: int, partition: int = 0) -> Position:
    return Position(STREAM, partition, offset)


def made(topic: FakeTopic, **more: Any) -> KafkaSink:
    return KafkaSink("out", "broker:9092", connect=topic.connect, **more)


def put(sink: KafkaSink, *positions: Position) -> None:
    sink.write([{"n": position.offset} for position in positions], positions)


def flushed(sink: KafkaSink) -> Any:
    """Flush, and return the mark, or None where that was not answered."""
    try:
        return sink.flush()
    except OutageError:
        return None


def finish(sink: KafkaSink) -> Any:
    """Make a checkpoint, wait until its lines count, and return its mark."""
    mark = sink.flush()
    sink.commit()
    wait_until(lambda: flushed(sink), "the lines to be committed")
    return mark
