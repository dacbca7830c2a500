"""How an output stands before a producer writes to it: what the topic is, where it ends, which lines are there."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any

from connectors.kafka.client import Unreachable, connect
from connectors.kafka.reading.topic import Bounds, KafkaTopic
from connectors.kafka.writing.stamps import origin
from connectors.ports import ConnectorError, Position

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition, errors
    from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec

__all__ = ["Survey", "fitting"]

_POLL_SECONDS = 0.1


def fitting(make: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Give those settings a class of kafka-python knows: an option may be for another one."""
    return {name: value for name, value in settings.items() if name in make.DEFAULT_CONFIG}


class Survey:
    """A topic as it stands, read by clients that do not write.

    Parameters
    ----------
    topic
        Its name.
    settings
        What every client is made with.
    committed
        Whether lines count only once they are committed.
    attempt
        How many attempts to connect failed before.

    Attributes
    ----------
    stream
        ``"cluster/topic/number"``.
    partitions
        How many there are.
    largest
        The longest batch the topic takes, in bytes; None where this may not be asked.

    Raises
    ------
    Unreachable
        Where no broker answers.
    ConnectorError
        Where trying again would not help.

    """

    def __init__(self, topic: str, settings: Mapping[str, Any], committed: bool, attempt: int = 0) -> None:
        self._name = topic
        isolation = "read_committed" if committed else "read_uncommitted"
        reading = {**fitting(KafkaConsumer, settings), "isolation_level": isolation, "auto_offset_reset": "none"}
        self._topic: KafkaTopic | None = KafkaTopic(topic, {**reading, "enable_auto_commit": False}, attempt)
        try:
            self._admin, _ = connect(KafkaAdminClient, fitting(KafkaAdminClient, settings), attempt)
        except BaseException:
            self._topic.close()
            raise
        try:
            self.stream = self._topic.identity
            self.partitions = len(self._topic.partitions)
            self._check_rights()
            self.largest = self._find_largest()
        except BaseException:
            self.close()
            raise

    def _places(self, partitions: Collection[int]) -> list[TopicPartition]:
        return [TopicPartition(self._name, partition) for partition in partitions]

    def _ask(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except errors.AuthorizationError:
            raise
        except (errors.RetriableError, RuntimeError):
            assert self._topic is not None
            raise Unreachable(self._topic.failure()) from None

    def _check_rights(self) -> None:
        [about] = self._ask(lambda: self._admin.describe_topics([self._name]))
        rights = about.get("authorized_operations")
        if rights and "WRITE" not in rights:
            raise ConnectorError("not authorised to write to the topic: grant Write on it")

    def _find_largest(self) -> int | None:
        wanted = ConfigResource(ConfigResourceType.TOPIC, self._name, ["max.message.bytes"])
        try:
            found = self._ask(lambda: self._admin.describe_configs([wanted], config_filter="all"))
            return int(found["topic"][self._name]["max.message.bytes"]["value"])
        except (errors.KafkaError, LookupError, TypeError, ValueError):
            return None

    def sequences(self, producer: int) -> dict[int, int] | None:
        """Tell by partition which number the next line of a producer has; None where this may not be asked."""
        places = self._places(range(self.partitions))
        try:
            found = self._ask(lambda: self._admin.describe_producers(places))
        except errors.KafkaError:
            return None
        return {
            place.partition: 0 if one.last_sequence == 2**31 - 1 else one.last_sequence + 1
            for place, state in found.items()
            for one in state.active_producers
            if one.producer_id == producer
        }

    def bounds(self) -> dict[int, Bounds]:
        """Tell where each partition begins and ends, with what is not committed."""
        assert self._topic is not None
        places = self._places(range(self.partitions))
        begins = self._topic.bounds(range(self.partitions))
        ends = self._ask(lambda: self._admin.list_partition_offsets(dict.fromkeys(places, OffsetSpec.LATEST)))
        return {place.partition: Bounds(begins[place.partition].first, ends[place].offset) for place in places}

    def origins(
        self,
        starts: Mapping[int, int],
        ends: Mapping[int, int],
        writer: str,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> list[Position]:
        """Find out for which records there are lines.

        Parameters
        ----------
        starts, ends
            Where to begin and to end, by partition.
        writer
            Whose lines count.
        cancelled
            Asked now and then: True ends the reading, with `Unreachable`.

        """
        assert self._topic is not None
        topic = self._topic
        left = {partition for partition, start in starts.items() if start < ends[partition]}
        found: list[Position] = []
        topic.start({partition: starts[partition] for partition in left})
        waiting_since = time.monotonic()
        while left:
            if cancelled():
                raise Unreachable("it is given up")
            for partition, messages in topic.poll(_POLL_SECONDS).items():
                for message in messages:
                    if message.offset < ends[partition]:
                        place = origin(message.headers, writer)
                        if place is not None:
                            found.append(place)
            # Not by the messages: the last offsets may be marks of transactions, or compacted away.
            left = {partition for partition in left if topic.reached(partition) < ends[partition]}
            if time.monotonic() - max(topic.heard(), waiting_since) > topic.patience:
                raise Unreachable(topic.failure())
        return found

    def origin_at(self, partition: int, offset: int, writer: str) -> Position | None:
        """Tell for which record the line at an offset is; None where it is not one of this writer's."""
        found = self.origins({partition: offset}, {partition: offset + 1}, writer)
        return found[0] if found else None

    def close(self) -> None:
        """End the connections; closing twice does nothing."""
        if self._topic is not None:
            topic, self._topic = self._topic, None
            topic.close()
            self._admin.close()
