"""A topic of Kafka that is read by partitions and offsets, on kafka-python's consumer."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from kafka import KafkaConsumer, TopicPartition, errors
from kafka.consumer.fetcher import Fetcher

from streamkernel.connectors.kafka.base.client import Unreachable, connect
from streamkernel.connectors.kafka.consumer.batches import mend
from streamkernel.connectors.kafka.consumer.damage import damage
from streamkernel.connectors.ports import ConnectorError, SourceError

__all__ = ["Bounds", "ConnectTopic", "KafkaTopic", "Message", "OutOfRange"]

Message: TypeAlias = Any
"""A `kafka.consumer.fetcher.ConsumerRecord`: ``offset``, ``timestamp``, ``key``, ``value``, ``headers``, as bytes."""

ConnectTopic: TypeAlias = Callable[[str, Mapping[str, Any], int, Callable[[], bool]], "KafkaTopic"]
"""Makes a topic, as `KafkaTopic` does."""

_REQUEST_SECONDS = 5.0
_PATIENCE, _PATIENCE_AFTER_FAILURE = 5.0, 1.0
# Brokers hear of a new topic one after the other.
SETTLING_SECONDS = 2.0
# Each poll costs a round trip between the client's threads, and what it brings is of one partition, mostly.
_MOST_MESSAGES = 2048


class Bounds(NamedTuple):
    """The offsets of the first message of a partition, and of the next one to come.

    To a reader of what is committed, a partition ends before the first transaction that is still open.
    """

    first: int
    end: int


class OutOfRange(Exception):
    """A partition has no such offset as it is to be read from."""

    def __init__(self, partition: int) -> None:
        super().__init__(partition)
        self.partition = partition


class KafkaTopic:
    """A connected topic; any of its methods may raise `Unreachable` or `SourceError`.

    Parameters
    ----------
    settings
        What `kafka.KafkaConsumer` is made with.
    attempt, cancelled
        See `streamkernel.connectors.kafka.base.client.connect`.

    Attributes
    ----------
    identity
        ``"cluster/topic/number"``: what a position's offset counts in.
    partitions
        All there are: those there were at the beginning, and those that came and have a leader.

    """

    def __init__(
        self,
        name: str,
        settings: Mapping[str, Any],
        attempt: int = 0,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self.name = name
        settings = {**settings, "max_poll_records": _MOST_MESSAGES}
        self._consumer, self._network = connect(KafkaConsumer, settings, attempt, cancelled=cancelled)
        mend(self._consumer)
        self._cluster = self._network.cluster
        self._wait: float = self._consumer.config["fetch_max_wait_ms"] / 1000
        self._missing_since: float | None = None
        try:
            self._find()
            self.partitions = frozenset(self._cluster.partitions_for_topic(name))
            self.identity = f"{self._cluster.cluster_id}/{name}/{self._id()}"
        except BaseException:
            self.close()
            raise

    def _find(self) -> None:
        """Ask for the topic until it is there, for a moment."""
        try:
            self._cluster.set_topics([self.name])
        except (ValueError, TypeError) as error:
            raise SourceError(str(error)) from None
        deadline = time.monotonic() + SETTLING_SECONDS
        while True:
            self.refresh()
            if self._cluster.partitions_for_topic(self.name):
                return
            if time.monotonic() > deadline:
                raise SourceError("the cluster has no such topic: check the name, or create it first")
            time.sleep(0.2)

    def refresh(self) -> None:
        """Ask the cluster for the metadata of the topic."""
        future = self._cluster.request_update()
        with self._asking():
            try:
                self._network.connections.run(self._network.connections.wait_for, future, 1000 * _REQUEST_SECONDS)
            except (errors.UnknownTopicOrPartitionError, errors.LeaderNotAvailableError):
                return
            except errors.InvalidTopicError:
                raise SourceError("the cluster does not accept this topic name") from None
        if self.name in self._cluster.unauthorized_topics:
            raise self._not_authorised()

    def _id(self) -> str:
        # Brokers before 2.8 give their topics no numbers.
        return str(self._cluster.topic_id(self.name) or "-")

    def bounds(self, partitions: Iterable[int]) -> dict[int, Bounds]:
        """Return where partitions begin and end, as the broker says."""
        places = [TopicPartition(self.name, partition) for partition in partitions]
        if not places:
            return {}
        with self._asking():
            first = self._consumer.beginning_offsets(places, timeout_ms=1000 * _REQUEST_SECONDS)
            end = self._consumer.end_offsets(places, timeout_ms=1000 * _REQUEST_SECONDS)
        return {place.partition: Bounds(first[place], end[place]) for place in places}

    def high_watermarks(self, partitions: Iterable[int]) -> dict[int, int]:
        """Return where partitions end, with what belongs to transactions that are still open, as the broker says."""
        places = [TopicPartition(self.name, partition) for partition in partitions]
        # The consumer's own asks as it reads. This one sends nothing but the question.
        asking = Fetcher(self._network, self._consumer._subscription, isolation_level="read_uncommitted")
        with self._asking():
            ends = asking.end_offsets(places, timeout_ms=1000 * _REQUEST_SECONDS)
        return {place.partition: ends[place] for place in places}

    def start(self, offsets: Mapping[int, int]) -> None:
        """Read these partitions alone, from these offsets on."""
        self._assign(offsets, offsets)

    def add(self, offsets: Mapping[int, int]) -> None:
        """Read these partitions too, from these offsets on."""
        self._assign({place.partition for place in self._consumer.assignment()} | offsets.keys(), offsets)

    def _assign(self, partitions: Iterable[int], offsets: Mapping[int, int]) -> None:
        self._consumer.assign([TopicPartition(self.name, partition) for partition in partitions])
        for partition, offset in offsets.items():
            self.seek(partition, offset)

    def seek(self, partition: int, offset: int) -> None:
        """Read a partition from another offset on."""
        self._consumer.seek(TopicPartition(self.name, partition), offset)

    def poll(self, seconds: float) -> Mapping[int, list[Message]]:
        """Return messages by partition; raises `Unreadable` and `OutOfRange`, each once for its cause."""
        try:
            found = self._consumer.poll(timeout_ms=round(1000 * seconds))
        except errors.OffsetOutOfRangeError as error:
            ((place, _),) = error.args[0].items()
            raise OutOfRange(place.partition) from None
        except errors.LogTruncationError as error:
            raise self._truncated(error) from None
        except Exception as error:
            unreadable = damage(error, self.end)
            if unreadable is not None:
                raise unreadable from error
            if isinstance(error, errors.RetriableError):
                return {}
            if isinstance(error, errors.KafkaError | RuntimeError):
                raise self._failure_of(error) from None
            raise
        return {place.partition: messages for place, messages in found.items()}

    def reached(self, partition: int) -> int:
        """Return the offset at which a partition is read on."""
        try:
            return int(self._consumer.position(TopicPartition(self.name, partition), timeout_ms=0))
        except errors.LogTruncationError as error:
            raise self._truncated(error) from None

    def end(self, partition: int) -> int | None:
        """Return where a partition ended when it was last read; None before."""
        offset = self._consumer.highwater(TopicPartition(self.name, partition))
        return None if offset is None else int(offset)

    @property
    def patience(self) -> float:
        """Seconds after which a broker that is well has answered; fewer where a connection failed since it did."""
        known = self._network.connections
        return self._wait + (_PATIENCE_AFTER_FAILURE if known.failed > known.heard else _PATIENCE)

    def heard(self) -> float:
        """Return when a broker last answered anything, by the monotonic clock."""
        return self._network.connections.heard

    def failure(self) -> str:
        """Return why the last connection failed, as a phrase."""
        return self._network.connections.failure or "no answer"

    def verify(self) -> None:
        """Raise `SourceError` if the topic is known to be deleted, or deleted and created again."""
        there = self._cluster.partitions_for_topic(self.name)
        if there:
            self._missing_since = None
            # One without a leader cannot be asked where it begins.
            self.partitions |= frozenset(self._cluster.available_partitions_for_topic(self.name) or ())
            if self._id() != self.identity.rpartition("/")[2]:
                raise SourceError("the topic was deleted and created again while it was read")
        elif self.name in self._cluster.unauthorized_topics:
            raise self._not_authorised()
        elif self._missing_since is None:
            self._missing_since = time.monotonic()
            self._cluster.request_update()
        elif time.monotonic() - self._missing_since > SETTLING_SECONDS:
            raise SourceError("the topic was deleted while it was read")

    def close(self) -> None:
        """End the connection, within seconds."""
        self._consumer.close(autocommit=False, timeout_ms=1000)

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except (errors.KafkaError, RuntimeError) as error:
            raise self._failure_of(error) from None

    def _failure_of(self, error: Exception) -> Exception:
        """Return `Unreachable` for an error that may pass, `SourceError` for another one."""
        if isinstance(error, errors.AuthorizationError):
            return self._not_authorised()
        if isinstance(error, errors.RetriableError | RuntimeError):
            return Unreachable(self.failure())
        return SourceError(f"the client of Kafka failed: {type(error).__name__}: {error}")

    def _not_authorised(self) -> ConnectorError:
        user = self._consumer.config["sasl_plain_username"]
        who = f"the user {user}" if user else "a user without a name"
        return SourceError(
            f"{who} is not authorized to read the topic: grant it Read and Describe, or check sasl_plain_username "
            "under options"
        )

    def _truncated(self, error: Any) -> SourceError:
        # A topic that was created again looks like that too, and which one it is may be heard later: of an answer that
        # was already on its way, or of brokers that have not heard themselves.
        deadline = time.monotonic() + SETTLING_SECONDS
        while True:
            self.refresh()
            self.verify()
            if self._missing_since is None and time.monotonic() > deadline:
                break
            time.sleep(0.2)
        cuts = ", ".join(
            f"partition {place.partition}" + ("" if there is None else f" to offset {there.offset}")
            for place, there in sorted(error.divergent_offsets.items())
        )
        return SourceError(
            f"the log was truncated before the offset that was read ({cuts}), as after an unclean leader election: "
            "the topic lost records that were learned. Start over with --fresh, or restore an older checkpoint"
        )
