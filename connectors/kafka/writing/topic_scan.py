"""Reads an output topic before a producer writes to it: its limits, where it ends, which lines are there."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition, errors
from kafka.admin import ConfigResource, ConfigResourceType

from streamkernel.connectors.kafka.base.client import Unreachable, connect
from streamkernel.connectors.kafka.consumer.damage import Unreadable
from streamkernel.connectors.kafka.consumer.topic import Bounds, KafkaTopic, Message, OutOfRange
from streamkernel.connectors.kafka.consumer.transaction_index import TransactionIndex
from streamkernel.connectors.kafka.writing.mark import Producer
from streamkernel.connectors.kafka.writing.provenance import origin
from streamkernel.connectors.ports import ConnectorError, Position

__all__ = ["FoundLine", "TopicScan", "fitting"]

_log = logging.getLogger(__name__)

_POLL_SECONDS = 0.1
_SEQUENCES = 2**31
# How much of a topic is looked at, without a mark, for lines of the same records.
_TAIL = 10_000
_MOST_PLACES, _LONGEST_STREAM = 1000, 1000


def fitting(make: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return those settings that a class of kafka-python knows: an option may be for another one."""
    return {name: value for name, value in settings.items() if name in make.DEFAULT_CONFIG}


class FoundLine(NamedTuple):
    """A line in a partition of a topic, with the position of its record and whether it is committed."""

    partition: int
    origin: Position
    committed: bool


class TopicScan:
    """A consumer and an admin client that look at an output topic; `Unreachable` where no broker answers.

    Attributes
    ----------
    stream
        The topic: ``"cluster/topic/number"``.
    partitions
        How many there are.
    largest
        The longest batch the topic takes, in bytes; None where this may not be asked.

    """

    def __init__(self, topic: str, settings: Mapping[str, Any], attempt: int = 0) -> None:
        self.name = topic
        reading = {"isolation_level": "read_uncommitted", "auto_offset_reset": "none", "enable_auto_commit": False}
        self._indexes: defaultdict[int, TransactionIndex] = defaultdict(TransactionIndex)
        with contextlib.ExitStack() as clients:
            reading = {**fitting(KafkaConsumer, settings), **reading}
            self._topic = KafkaTopic(topic, reading, attempt, indexes=self._indexes)
            clients.callback(self._topic.close)
            self._admin, _ = connect(KafkaAdminClient, fitting(KafkaAdminClient, settings), attempt)
            clients.callback(self._admin.close)
            self.stream = self._topic.identity
            self.partitions = len(self._topic.partitions)
            self._check_rights()
            self.largest = self._find_largest()
            self._clients = clients.pop_all()

    def _ask(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except errors.AuthorizationError:
            raise
        except (errors.RetriableError, RuntimeError):
            raise Unreachable(self._topic.failure()) from None

    def _check_rights(self) -> None:
        [about] = self._ask(lambda: self._admin.describe_topics([self.name]))
        rights = about.get("authorized_operations")
        if rights and "WRITE" not in rights:
            raise ConnectorError("not authorized to write to the topic: grant Write on it")

    def _find_largest(self) -> int | None:
        wanted = ConfigResource(ConfigResourceType.TOPIC, self.name, ["max.message.bytes"])
        try:
            found = self._ask(lambda: self._admin.describe_configs([wanted], config_filter="all"))
            return int(found["topic"][self.name]["max.message.bytes"]["value"])
        except (errors.KafkaError, LookupError, TypeError, ValueError):
            return None

    def sequences(self, producer: Producer) -> dict[int, int] | None:
        """Return by partition the sequence number of a producer's next line; None where this may not be asked.

        Left out are partitions where the broker does not know of any line of its epoch.
        """
        places = [TopicPartition(self.name, partition) for partition in range(self.partitions)]
        try:
            found = self._ask(lambda: self._admin.describe_producers(places))
        except errors.KafkaError:
            return None
        return {
            place.partition: (one.last_sequence + 1) % _SEQUENCES
            for place, state in found.items()
            for one in state.active_producers
            if (one.producer_id, one.producer_epoch) == (producer.number, producer.epoch)
        }

    def holder(self, transactional_id: str) -> Producer | None:
        """Return the producer that has a transactional id; None where there is none, or this may not be asked."""
        try:
            found = self._ask(lambda: self._admin.describe_transactions([transactional_id]))
        except errors.KafkaError:
            return None
        return Producer(found[transactional_id].producer_id, found[transactional_id].producer_epoch)

    def bounds(self) -> dict[int, Bounds]:
        """Return where each partition begins and ends, with what is not committed."""
        return self._topic.bounds(range(self.partitions))

    def lines(
        self,
        starts: Mapping[int, int],
        ends: Mapping[int, int],
        writer: str | None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> list[FoundLine]:
        """Return a writer's lines between two offsets of each partition; of any writer, without open transactions.

        Transactions of others are not waited for. Those of this writer are over, because whoever asks has ended them.
        Raises `Unreachable` also where one is open all the same, and once `cancelled` says so.
        """
        topic = self._topic
        left = {partition for partition, start in starts.items() if start < ends[partition]}
        found: list[tuple[int, int, Position]] = []
        self._indexes.clear()
        topic.start({partition: starts[partition] for partition in left})
        waiting_since = time.monotonic()
        while left:
            if cancelled():
                raise Unreachable("it is given up")
            for partition, messages in self._poll(topic).items():
                for message in messages:
                    if message.offset < ends[partition]:
                        place = origin(message.headers, writer)
                        if place is not None:
                            found.append((partition, message.offset, place))
            # Not by the messages: the last offsets may be marks of transactions, or compacted away.
            left = {partition for partition in left if topic.reached(partition) < ends[partition]}
            if time.monotonic() - max(topic.heard(), waiting_since) > topic.patience:
                raise Unreachable(topic.failure())
        return [line for place in found if (line := self._line(*place, writer)) is not None]

    def _poll(self, topic: KafkaTopic) -> Mapping[int, list[Message]]:
        try:
            return topic.poll(_POLL_SECONDS)
        except OutOfRange:
            raise Unreachable("retention removes what is read") from None
        except Unreadable as damage:
            _log.warning(
                "kafka topic %s, partition %d: offsets %d to %d cannot be read (%s): lines at these offsets may be "
                "written again",
                *(self.name, damage.partition, damage.first, damage.end - 1, damage),
            )
            topic.seek(damage.partition, damage.end)
            return {}

    def _line(self, partition: int, offset: int, place: Position, writer: str | None) -> FoundLine | None:
        committed = self._indexes[partition].committed(offset)
        if committed is not None:
            return FoundLine(partition, place, committed)
        if writer is None:
            return None
        raise Unreachable(
            f"a transaction that holds lines of this daemon is open, at partition {partition}, offset {offset:,}: "
            "it ends with its process, or with its timeout"
        )

    def existing(self, bounds: Mapping[int, Bounds]) -> Counter[tuple[str, int]]:
        """Return how many of the last lines there are for each partition of a source, whoever wrote them."""
        most = max(_TAIL // self.partitions, 10)
        starts = {partition: max(there.first, there.end - most) for partition, there in bounds.items()}
        ends = {partition: there.end for partition, there in bounds.items()}
        places = (line.origin[:2] for line in self.lines(starts, ends, None) if line.committed)
        # Anybody may write anything there, and what is returned here is kept.
        counted = Counter((stream, partition) for stream, partition in places if len(stream) <= _LONGEST_STREAM)
        return Counter(dict(counted.most_common(_MOST_PLACES)))

    def origin_at(self, partition: int, offset: int, writer: str) -> Position | None:
        """Return the position of the record that a writer's line at an offset is for; None where there is none."""
        found = self.lines({partition: offset}, {partition: offset + 1}, writer)
        return found[0].origin if found else None

    def close(self) -> None:
        """End the connections; closing twice does nothing."""
        self._clients.close()
